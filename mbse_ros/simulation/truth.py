# SPDX-License-Identifier: Apache-2.0
"""The true state of a simulated machine, and arrays of its state as series under the names of the estimates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from ..machine import Machine
from ..report.result import Result, ResultSeries, entry_unit

KINDS = ('position', 'velocity', 'acceleration', 'pressure')


@dataclass(frozen=True, repr=False)
class MachineTruth(Result):
    """True state of a simulated machine at times ``t`` (k,), s, SI.

    ``position``, ``velocity``, ``acceleration`` (k, g) of ``machine.coordinates``, ``pressure`` (k, volumes),
    ``payload`` (k,), kg, of several the first; ``payloads``: each of several by name, (k,), kg, where they are known.
    """

    t: np.ndarray
    machine: Machine
    position: np.ndarray
    velocity: np.ndarray
    acceleration: np.ndarray
    pressure: np.ndarray
    payload: np.ndarray
    payloads: Mapping[str, np.ndarray] = field(default_factory=dict, kw_only=True)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns."""
        return tuple(item.name for item in self.series())

    def series(self) -> list[ResultSeries]:
        """The mass, then positions, velocities, accelerations and pressures in one panel, and each of several masses,
        under the names of the estimates."""
        return [ResultSeries('mass', 'kg', self.payload), *entry_series(self.machine, self),
                *(ResultSeries(f'mass/{name}', 'kg', mass) for name, mass in self.payloads.items())]


def entry_series(machine: Machine, of: object, stddev: Mapping[str, np.ndarray] | None = None) -> list[ResultSeries]:
    """The arrays (k, g or volumes) of an object, those of KINDS, with their deviations by kind, under the names of the
    observer's state; pressures in one panel."""
    return [ResultSeries(f'{kind}/{name}', entry_unit(machine.description, f'{kind}/{name}'), getattr(of, kind)[:, k],
                         None if stddev is None else stddev[kind][:, k],
                         panel='pressures' if kind == 'pressure' else '')
            for kind in KINDS
            for k, name in enumerate(machine.volumes if kind == 'pressure' else machine.coordinates)]
