# SPDX-License-Identifier: Apache-2.0
"""How well an arm of 6 axes weighs by its motor currents, after 60 s of empty motion.

    tools/environment.sh python benchmarks/arm_weighing.py [--draws 12] [--seconds 20] [--json F]

Each draw is another arm of the maker's lengths, masses and centres, with Coulomb and viscous friction of each joint and
the gain of each current off by up to 10 %, the currents' zeros by 0.05 A (1 sigma), and another motion of all joints.
The samples, 125 Hz with noise, are those of a recursive Newton-Euler that shares no code with the package. The file
``ur10e`` is calibrated by the empty motion, then a load of 0.5 to 10 kg is weighed over ``--seconds``, its centre
within 5 cm of that in the file. Printed: mass with its 95 % interval, error in shares of full scale, and of the centre.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path

import numpy as np

sys.path[:0] = [str(Path(__file__).resolve().parents[1] / folder) for folder in ('', 'test/support')]

import arm_plant  # noqa: E402

import mbse_ros as mbse  # noqa: E402
from mbse_ros.payload.mass import center_of  # noqa: E402

JOINTS = tuple(f'{name}_joint' for name in ('shoulder_pan', 'shoulder_lift', 'elbow', 'wrist_1', 'wrist_2', 'wrist_3'))
PER_AMPERE = 101 * np.array([0.12, 0.12, 0.12, 0.10, 0.10, 0.10])       # N m, of the file
NOISE, ANGLE, ZERO = np.array([0.2, 0.2, 0.1, 0.05, 0.05, 0.05]), 5e-5, 0.05    # A, rad, A
WRONG, FULL, RATE = 0.1, 12.5, 125.0        # share, kg, Hz
START = np.array([0.0, -1.3, 1.2, -1.2, -1.2, 0.0])
Log = dict[str, tuple[np.ndarray, np.ndarray]]


def motion(duration: float, rng: np.random.Generator) -> tuple[np.ndarray, ...]:
    """Times (n,), positions, speeds and accelerations (n, 6): sums of sines, from rest."""
    t = np.arange(0.0, duration, 1.0 / RATE)
    x = np.clip(t / 2.0, 0.0, 1.0)
    phase = np.where(t < 2.0, 2.0 * (x ** 6 - 3 * x ** 5 + 2.5 * x ** 4), t - 1.0)
    rate = 6 * x ** 5 - 15 * x ** 4 + 10 * x ** 3
    change = np.where(t < 2.0, (30 * x ** 4 - 60 * x ** 3 + 30 * x ** 2) / 2.0, 0.0)
    q, qd, qdd = np.tile(START, (len(t), 1)), np.zeros((len(t), 6)), np.zeros((len(t), 6))
    for joint in range(6):
        for _ in range(4):
            size, w, start = rng.uniform(0.1, 0.35), rng.uniform(0.3, 2.2), rng.uniform(0.0, 2 * np.pi)
            angle = w * phase + start
            q[:, joint] += size * (np.sin(angle) - np.sin(start))
            qd[:, joint] += size * w * np.cos(angle) * rate
            qdd[:, joint] += size * w * (np.cos(angle) * change - w * np.sin(angle) * rate ** 2)
    return t, q, qd, qdd


class DrawnArm:
    """One arm with its errors."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.arm, self.rng = arm_plant.ur10e(), rng
        self.arm.coulomb *= 1 + WRONG * rng.uniform(-1, 1, 6)
        self.arm.viscous *= 1 + WRONG * rng.uniform(-1, 1, 6)
        self.gain, self.zero = 1 + WRONG * rng.uniform(-1, 1, 6), ZERO * rng.standard_normal(6)

    def log(self, duration: float, load: float = 0.0, center: np.ndarray | None = None) -> Log:
        """Samples of a motion with a load, kg, at ``center`` (3,), m, of the last link."""
        arm = self.arm if center is None else self.arm.carrying(load, center)
        t, *moved = motion(duration, self.rng)
        currents = self.gain * arm.torques(*moved) / PER_AMPERE + self.zero
        found: Log = {}
        for k, name in enumerate(JOINTS):
            found[f'position/{name}'] = t, moved[0][:, k] + ANGLE * self.rng.standard_normal(len(t))
            found[f'effort/{name}'] = t, currents[:, k] + NOISE[k] * self.rng.standard_normal(len(t))
        return found


def draw(seed: int, seconds: float, folder: Path) -> dict[str, object]:
    """Calibrate and weigh once."""
    rng = np.random.default_rng(seed)
    arm = DrawnArm(rng)
    bag, file = folder / f'empty_{seed}', folder / f'arm_{seed}.yaml'
    mbse.write_bag(bag, arm.log(60.0), 'ur10e')
    calibration = mbse.calibrate(bag, 'ur10e')
    calibration.write(file, force=True)
    load, center = rng.uniform(0.5, 10.0), np.array([0.0, 0.0, 0.05]) + rng.uniform(-0.05, 0.05, 3)
    found = mbse.estimate(arm.log(seconds, load, center), file)
    state = found.last.state
    where = center_of(found.machine, state.names, state.mean[-1], state.covariance)
    return {'seed': seed, 'load': load, 'mass': float(found.mass[-1]), 'lower': float(found.lower[-1]),
            'upper': float(found.upper[-1]), 'good': calibration.good, 'warnings': list(found.warnings),
            'center_error': float(np.linalg.norm([where[axis][0] - c for axis, c in zip('xyz', center)]))}


def main() -> None:
    """Draw after draw."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--draws', type=int, default=12)
    parser.add_argument('--first', type=int, default=1)
    parser.add_argument('--seconds', type=float, default=20.0)
    parser.add_argument('--json', type=Path)
    options = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(options.first, options.first + options.draws):
            row = draw(seed, options.seconds, Path(folder))
            rows.append(row)
            print(f'{row["load"]:6.2f} kg: {row["mass"]:6.2f} ({row["lower"]:.2f} to {row["upper"]:.2f}) kg, '
                  f'{100 * abs(row["mass"] - row["load"]) / FULL:.2f} % of full scale, centre off by '
                  f'{1e3 * row["center_error"]:.0f} mm {row["warnings"] or ""}', flush=True)
    errors = np.array([abs(row['mass'] - row['load']) / FULL for row in rows])
    held = [row['lower'] <= row['load'] <= row['upper'] for row in rows]
    middle = 1e3 * np.median([row['center_error'] for row in rows])
    print(f'{len(rows)} draws: error {100 * errors.mean():.2f} % of full scale, the largest {100 * errors.max():.2f} '
          f'%; {sum(held)} intervals hold; centre {middle:.0f} mm (median)')
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1))


if __name__ == '__main__':
    main()
