# SPDX-License-Identifier: Apache-2.0
"""How well an arm of 6 axes weighs by its motor currents, after 60 s of empty motion.

    tools/environment.sh python benchmarks/arm_weighing.py [ARM ...] [--runs 50] [--seconds 12] [--jobs 1]
        [--rows out/arm_weighing.jsonl] [--page docs/arm.md]

Each draw is another arm of the maker's lengths and masses. Coulomb and viscous friction of each joint, the gains of the
currents and the rotors are off by up to 10 %, the currents' zeros by 0.05 A (1 sigma). The file ``ur10e`` is calibrated
by 60 s of another empty motion, then a load of 0.5 to 10 kg is weighed, its centre within 5 cm of that in the file.
The arms are ``equations``, a recursive Newton-Euler; ``mujoco``, moved by MuJoCo under a controller, with sensors that
have a resolution; ``worn``, the same with elastic gears that ripple, friction that grows with the load, and a base that
tilts; ``untold``, that of ``mujoco`` by a file which calls its wrong numbers exact, and is not calibrated. None shares
code with the package. 40 s of processor a draw. Draws that are in the file ``--rows`` are not done again;
``--runs 0``: the table alone. The package ``mujoco`` is not among the requirements: ``pip install mujoco``.
"""

from __future__ import annotations

import argparse
import datetime
import importlib.util
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

sys.path[:0] = [str(Path(__file__).resolve().parents[1] / folder) for folder in ('', 'test/support')]

import arm_mujoco  # noqa: E402
import arm_plant  # noqa: E402

import mbse_ros as mbse  # noqa: E402
from mbse_ros.payload.mass import center_of  # noqa: E402
from mbse_ros.report.files import write_between  # noqa: E402
from mbse_ros.studies.many import add_workers, kept  # noqa: E402

JOINTS = tuple(f'{name}_joint' for name in ('shoulder_pan', 'shoulder_lift', 'elbow', 'wrist_1', 'wrist_2', 'wrist_3'))
LARGEST = np.array([330.0, 330.0, 150.0, 56.0, 56.0, 56.0])     # N m
RATIO = 101.0
PER_AMPERE = RATIO * np.array([0.12, 0.12, 0.12, 0.10, 0.10, 0.10])     # N m, of the file
NOISE, ANGLE, ZERO = np.array([0.2, 0.2, 0.1, 0.05, 0.05, 0.05]), 5e-5, 0.05    # A, rad, A
WRONG, FULL, RATE = 0.1, 12.5, 125.0        # share, kg, Hz
START = np.array([0.0, -1.3, 1.2, -1.2, -1.2, 0.0])
CENTER = 0.02       # m, the bar of the centre
SENSORS = {'current': 0.01, 'angle': 2.4e-5}        # resolution
BEYOND = {
    'equations': None, 'mujoco': arm_mujoco.Beyond(**SENSORS),
    'worn': arm_mujoco.Beyond(ripple=0.005, load=0.03, stiffness=np.array([3e4, 3e4, 2e4, 1e4, 1e4, 1e4]), base=5e5,
                              **SENSORS),
    'untold': arm_mujoco.Beyond(**SENSORS)}
WORDS = {'equations': 'by equations', 'mujoco': 'MuJoCo', 'worn': 'MuJoCo, with more than the file describes',
         'untold': 'MuJoCo, not calibrated, a file that calls its numbers exact'}
Log = dict[str, tuple[np.ndarray, np.ndarray]]
Row = dict[str, Any]


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

    def __init__(self, kind: str, rng: np.random.Generator) -> None:
        self.arm, self.beyond, self.rng = arm_plant.ur10e(), BEYOND[kind], rng
        for numbers in (self.arm.coulomb, self.arm.viscous, self.arm.rotor):
            numbers *= 1 + WRONG * rng.uniform(-1, 1, 6)
        self.gain, self.zero = 1 + WRONG * rng.uniform(-1, 1, 6), ZERO * rng.standard_normal(6)

    def log(self, duration: float, load: float = 0.0, center: np.ndarray | None = None) -> Log:
        """Samples of a motion with a load, kg, at ``center`` (3,), m, of the last link."""
        arm = self.arm if center is None else self.arm.carrying(load, center)
        t, *moved = motion(duration, self.rng)
        angles, efforts = moved[0], arm.torques(*moved) if self.beyond is None else None
        if self.beyond is not None:
            angles, _, efforts = arm_mujoco.MovedArm(arm, LARGEST, RATIO, self.beyond).moved(t, *moved)
        currents = self.gain * efforts / PER_AMPERE + self.zero + NOISE * self.rng.standard_normal(angles.shape)
        angles = angles + ANGLE * self.rng.standard_normal(angles.shape)
        if self.beyond is not None:
            angles, currents = (step * np.round(values / step) for step, values in (
                (self.beyond.angle, angles), (self.beyond.current, currents)))
        found: Log = {}
        for k, name in enumerate(JOINTS):
            found[f'position/{name}'], found[f'effort/{name}'] = (t, angles[:, k]), (t, currents[:, k])
        return found


def row_of(job: tuple[str, int, float]) -> Row:
    """Calibrate and weigh once."""
    kind, number, seconds = job
    rng, found = np.random.default_rng([number, list(BEYOND).index(kind)]), {'arm': kind, 'number': number}
    arm = DrawnArm(kind, rng)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / 'arm.yaml'
        if kind == 'untold':
            file.write_text(exact(), encoding='utf-8')
        else:
            mbse.write_bag(Path(folder) / 'empty', arm.log(60.0), 'ur10e')
            calibration = mbse.calibrate(Path(folder) / 'empty', 'ur10e')
            calibration.write(file, force=True)
            found['good'] = calibration.good
        load, center = rng.uniform(0.5, 10.0), np.array([0.0, 0.0, 0.05]) + rng.uniform(-0.05, 0.05, 3)
        estimate = mbse.estimate(arm.log(seconds, load, center), file)
    state = estimate.last.state
    where = center_of(estimate.machine, state.names, state.mean[-1], state.covariance)
    off = np.array([where[axis][0] - c for axis, c in zip('xyz', center)])
    wide = np.array([where[axis][1] for axis in 'xyz'])
    return {**found, 'load': load, 'mass': float(estimate.mass[-1]), 'lower': float(estimate.lower[-1]),
            'upper': float(estimate.upper[-1]), 'status': str(estimate.status[-1]), 'warnings': list(estimate.warnings),
            'center': off.tolist(), 'center_stddev': wide.tolist()}


def exact() -> str:
    """The text of the file without a deviation of friction, gains and zeros, masses and centres of the arm."""
    text = (Path(__file__).resolve().parents[1] / 'config/arms/ur10e.yaml').read_text(encoding='utf-8')
    return re.sub(r', stddev: (?!50 mm|[\d.e-]+ (rad|A),)[^}\n]*\}', '}', text)


def line(kind: str, rows: list[Row]) -> str:
    """Of the table: what a draw without a mass has counts neither as an error nor as an interval that holds."""
    rows, every = [row for row in rows if np.isfinite(row['mass'])], len(rows)
    if not rows:
        return f'| {WORDS[kind]} | {every}, none with a mass |' + ' |' * 7
    error = np.array([abs(row['mass'] - row['load']) for row in rows]) / FULL
    off = np.array([np.linalg.norm(row['center']) for row in rows])
    share = np.array([np.abs(row['center']) <= 1.96 * np.array(row['center_stddev']) for row in rows])
    holds = np.array([row['lower'] <= row['load'] <= row['upper'] for row in rows])
    half = np.median([row['upper'] - row['lower'] for row in rows]) / 2
    says = np.array([bool(row['warnings']) for row in rows])
    draws = str(every) + f' ({every - len(rows)} without a mass)' * (len(rows) < every)
    cells = [draws, f'{100 * error.mean():.2f} %, {100 * error.max():.2f} %', f'{half:.2g} kg',
             f'{holds.sum()} of {len(rows)}', f'{1e3 * np.median(off):.0f} mm, {(off <= CENTER).sum()} of {len(rows)}',
             f'{100 * share.mean():.0f} %', f'{says.sum()}', f'{(~holds & ~says).sum()}']
    return f'| {WORDS[kind]} | {" | ".join(cells)} |'


def main() -> None:
    """Run what is missing, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('arms', nargs='*', choices=[[], *BEYOND], default=[])
    parser.add_argument('--runs', type=int, default=50)
    parser.add_argument('--seconds', type=float, default=12.0)
    parser.add_argument('--rows', type=Path, default=Path('out/arm_weighing.jsonl'))
    parser.add_argument('--page', type=Path)
    add_workers(parser)
    given = parser.parse_args()
    kinds = given.arms or list(BEYOND)
    if importlib.util.find_spec('mujoco') is None and given.runs:
        kinds = [kind for kind in kinds if BEYOND[kind] is None]
        print('the package mujoco is not installed: its arms are not run', file=sys.stderr)
    rows = kept(row_of, {(kind, number): (kind, number, given.seconds) for number in range(given.runs)
                         for kind in kinds}, ('arm', 'number'), given.rows, given.jobs, given.cluster, 'arms')
    table = '\n'.join([
        f'{datetime.date.today().isoformat()}, `python benchmarks/arm_weighing.py`:', '',
        '| arm | draws | error of full scale, mean and largest | half-width (median) | intervals that hold | centre '
        'off by (median), within 2 cm | its intervals that hold | says that something is wrong | wrong and silent |',
        '|---' * 9 + '|',
        *(line(kind, own) for kind in BEYOND if (own := [row for row in rows if row['arm'] == kind]))])
    print(table)
    if given.page:
        write_between(given.page, 'drawn arms', table)


if __name__ == '__main__':
    main()
