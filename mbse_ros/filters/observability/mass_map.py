# SPDX-License-Identifier: Apache-2.0
"""How well a machine weighs over its work area: the half-width of the mass pose by pose, and where the load is then."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np

from ...errors import PositionProblemError, SingularConfigurationError
from ...machine import Machine
from ...machine.frames import MachineFrames
from .machine import MOVING, SHARES, Poses, mass_half_widths

COUNTS = {1: 41, 2: 15, 3: 7}       # places of each coordinate that cylinders move, by how many there are
FEW = 5                             # ... of more


@dataclass(frozen=True)
class MassMap:
    """Poses (n,) that the mechanism reaches: coordinates ``z`` (n, g), ``pistons`` (n, c), m; ``reach`` and ``height``
    (n,), m, of the load in the machine's frame: its horizontal distance from the origin, and against gravity;
    ``half_width`` (n,), kg, of the 95 % interval of a mass; infinite where the mass does not show."""

    z: np.ndarray
    pistons: np.ndarray
    reach: np.ndarray
    height: np.ndarray
    half_width: np.ndarray

    @property
    def middle(self) -> float:
        """Median of the half-widths, kg."""
        return float(np.median(self.half_width))

    @property
    def best(self) -> int:
        """Place of the pose with the narrowest interval."""
        return int(np.argmin(self.half_width))

    @property
    def worst(self) -> int:
        """Place of the pose with the widest interval."""
        return int(np.argmax(self.half_width))


def mass_map(machine: Machine) -> MassMap:
    """Of half of the largest mass, by the errors of sensors and numbers that the file states, while all cylinders move
    slowly out: coordinates that cylinders move over their ranges, the others at the start.

    Raises DescriptionError without a payload, PositionProblemError where no pose is reached.
    """
    low, high = machine.range.T
    start, moved = np.array(machine.model.start.q)[list(machine.model.z)], machine.actuated
    shares = np.linspace(SHARES[0], SHARES[-1], COUNTS.get(len(moved), FEW))
    z, q = [], []
    last: PositionProblemError | SingularConfigurationError | None = None
    for chosen in product(shares, repeat=len(moved)):
        row = start.copy()
        row[moved] = low[moved] + np.array(chosen) * (high - low)[moved]
        try:
            q.append(machine.position(row))
        except (PositionProblemError, SingularConfigurationError) as error:
            last = error
            continue
        z.append(row)
    if last is not None and not q:
        raise last
    still = np.zeros((len(z), len(start)))
    slowly = still.copy()
    slowly[:, moved] = MOVING[0]
    half = mass_half_widths(machine, Poses(np.array(q), slowly, still))[:, -1]
    frames = MachineFrames(machine)
    loads = [frames.load(item) for item in q]
    places, down = np.array([load.place for load in loads]), loads[0].rotation @ loads[0].gravity
    up = -down / (np.linalg.norm(down) or 1.0)       # without gravity no load has a height
    height = places @ up
    return MassMap(np.array(z), np.array(q)[:, machine.pistons], np.linalg.norm(places - np.outer(height, up), axis=1),
                   height, half)
