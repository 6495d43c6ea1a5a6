# SPDX-License-Identifier: Apache-2.0
"""A scale that made-up shifts are put on."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from unittest.mock import patch

import numpy as np

from mbse_ros.filters.hydraulic_state import state_names
from mbse_ros.machine import Machine, load_machine
from mbse_ros.machine.parameters import Parameters
from mbse_ros.scale.reading import Reading
from mbse_ros.scale.record import TAKEN, Record
from mbse_ros.scale.scale_file import ScaleFile, ScaleSettings
from mbse_ros.scale.stage import Journal, ScaleStage
from mbse_ros.streams.records import ObserverStatus, StateEstimate
from studies.shifts import NAMES, Shift, payload_of


@cache
def excavator() -> Machine:
    """An excavator with limits of 0 and 2500 kg."""
    return load_machine('zx200')


def scale(journal: Journal | None = None, file: ScaleFile = ScaleFile(), **settings: float) -> ScaleStage:
    """A scale whose machine has the numbers of the made-up shifts."""
    with patch.object(Parameters, 'consider_names', NAMES):
        return ScaleStage(excavator(), ScaleSettings(**settings), file, journal)


def state(machine: Machine, stamp_ns: int, z: np.ndarray, status: ObserverStatus = ObserverStatus.OK) -> StateEstimate:
    """A state at independent coordinates (g,) that says nothing of a mass."""
    names, _ = state_names(machine, True)
    mean = np.zeros((1, len(names)))
    mean[0, :len(z)] = z
    nothing = np.zeros(0)
    return StateEstimate(1, stamp_ns, 1_000_000, False, names, mean, np.eye(len(names)), (), nothing, nothing, nothing,
                         0.0, 0, status)


def weighed(stage: ScaleStage, shift: Shift | Iterable[Reading]) -> list[Record]:
    """Records of all its readings, but those that a load hangs there."""
    readings = shift.readings() if isinstance(shift, Shift) else shift
    return [record for reading in readings for record in stage.take(reading, payload_of(reading))
            if record.kind != TAKEN]
