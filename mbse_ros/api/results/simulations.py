# SPDX-License-Identifier: Apache-2.0
"""Results of ``simulate``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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

KINDS = ('position', 'velocity', 'acceleration', 'pressure')


@dataclass(frozen=True, repr=False)
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


@dataclass(frozen=True, repr=False)
class MachineTruth(Result):
    """True state of a simulated machine at times ``t`` (k,), s, SI.

    ``position``, ``velocity``, ``acceleration`` (k, g) of ``machine.coordinates``, ``pressure`` (k, volumes),
    ``payload`` (k,), kg.
    """

    t: np.ndarray
    machine: Machine
    position: np.ndarray
    velocity: np.ndarray
    acceleration: np.ndarray
    pressure: np.ndarray
    payload: np.ndarray

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns."""
        return tuple(item.name for item in self.series())

    def series(self) -> list[ResultSeries]:
        """The mass, then positions, velocities, accelerations and pressures in one panel, under the names of the
        estimates."""
        return [ResultSeries('mass', 'kg', self.payload), *entry_series(self.machine, self)]


@dataclass(frozen=True, repr=False)
class MachineSimulation(MachineTruth):
    """Work of a machine: ``samples`` of its sensors with the commands, and the truth beside them at the same times, SI.

    ``frames`` (k): the same one by one.
    """

    frames: tuple[SensorFrame, ...]
    samples: Samples


def entry_series(machine: Machine, of: object, stddev: Mapping[str, np.ndarray] | None = None) -> list[ResultSeries]:
    """The arrays (k, g or volumes) of an object, those of KINDS, with their deviations by kind, under the names of the
    observer's state; pressures in one panel."""
    return [ResultSeries(f'{kind}/{name}', entry_unit(machine, f'{kind}/{name}'), getattr(of, kind)[:, k],
                         None if stddev is None else stddev[kind][:, k],
                         panel='pressures' if kind == 'pressure' else '')
            for kind in KINDS
            for k, name in enumerate(machine.volumes if kind == 'pressure' else machine.coordinates)]
