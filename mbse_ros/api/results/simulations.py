# SPDX-License-Identifier: Apache-2.0
"""Results of ``simulate``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ...dynamics.model import Model
from ...machine import Machine
from ..samples import Samples
from .motion_estimate import motion_series
from .result import Result
from .series import ResultSeries, entry_unit

if TYPE_CHECKING:
    from ...dynamics.motion import Motion
    from ...simulation.crane import SensorFrame


@dataclass(frozen=True)
class MotionSimulation(Result):
    """Motion of a mechanism, SI: ``motion`` has all of it (energies, multipliers, violations); ``samples``: what the
    sensors gave, None where none were asked for.

    ``t`` (k,), ``names`` (n,) of the coordinates, ``q``, ``qd``, ``qdd`` (k, n).
    """

    model: Model
    motion: Motion
    samples: Samples | None

    @property
    def t(self) -> np.ndarray:
        """Times (k,), s."""
        return self.motion.t

    @property
    def names(self) -> tuple[str, ...]:
        """Names (n,) of the coordinates."""
        return self.motion.names

    @property
    def q(self) -> np.ndarray:
        """Coordinates (k, n)."""
        return self.motion.q

    @property
    def qd(self) -> np.ndarray:
        """Velocities (k, n)."""
        return self.motion.qd

    @property
    def qdd(self) -> np.ndarray:
        """Accelerations (k, n)."""
        return self.motion.qdd

    def series(self) -> list[ResultSeries]:
        """Coordinates with both rates, the independent ones first, then the energies."""
        return [*self._motion(), *self._energies()]

    def main_series(self) -> list[ResultSeries]:
        """Independent coordinates with both rates, and the energies."""
        return [*self._motion(self.model.independent), *self._energies()]

    def _motion(self, names: Sequence[str] = ()) -> list[ResultSeries]:
        return motion_series(self.model, {'position': self.q, 'velocity': self.qd, 'acceleration': self.qdd}, names)

    def _energies(self) -> list[ResultSeries]:
        return [ResultSeries(name, 'J', getattr(self.motion, name), panel='energy')
                for name in ('kinetic', 'potential')]


@dataclass(frozen=True)
class MachineSimulation(Result):
    """Work of a machine: ``samples`` of its sensors with the commands, and the truth beside them at the same times, SI.

    ``position``, ``velocity``, ``acceleration`` (k, g) of ``machine.coordinates``, ``pressure`` (k, volumes),
    ``payload`` (k,), kg. ``frames`` (k): the same one by one.
    """

    machine: Machine
    frames: tuple[SensorFrame, ...]
    samples: Samples

    @property
    def t(self) -> np.ndarray:
        """Times (k,), s."""
        return self.samples.t

    @property
    def position(self) -> np.ndarray:
        """Independent coordinates (k, g), m or rad."""
        return self._column('position')

    @property
    def velocity(self) -> np.ndarray:
        """Their velocities (k, g)."""
        return self._column('velocity')

    @property
    def acceleration(self) -> np.ndarray:
        """Their accelerations (k, g)."""
        return self._column('acceleration')

    @property
    def pressure(self) -> np.ndarray:
        """Pressures (k, volumes), Pa."""
        return self._column('pressure')

    @property
    def payload(self) -> np.ndarray:
        """Mass of the payload (k,), kg."""
        return self._column('payload')

    def _column(self, name: str) -> np.ndarray:
        return np.array([getattr(frame, name) for frame in self.frames])

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns of the truth, those of the estimates."""
        return tuple(item.name for item in self.series())

    def series(self) -> list[ResultSeries]:
        """The mass, then positions, velocities, accelerations and pressures, under the names of the estimates."""
        return [ResultSeries('mass', 'kg', self.payload), *truth_series(
            self.machine, {kind: self._column(kind) for kind in ('position', 'velocity', 'acceleration', 'pressure')})]


def truth_series(machine: Machine, arrays: dict[str, np.ndarray]) -> list[ResultSeries]:
    """Series of ``arrays`` (k, g or volumes) by kind, named as entries of the observer's state; pressures in one
    panel."""
    found = []
    for kind, values in arrays.items():
        for name, column in zip(machine.volumes if kind == 'pressure' else machine.coordinates, values.T):
            entry = f'{kind}/{name}'
            found.append(ResultSeries(entry, entry_unit(machine, entry), column,
                                      panel='pressures' if kind == 'pressure' else ''))
    return found
