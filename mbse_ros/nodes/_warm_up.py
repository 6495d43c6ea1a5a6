# SPDX-License-Identifier: Apache-2.0
"""First runs of compiled stages before the first real sample, which would have to wait for them."""

from __future__ import annotations

import numpy as np

from ..estimators.hydraulic_model import state_names
from ..machine import Machine
from ..streams.records import ObserverStatus, Segment, StateEstimate
from ..streams.stages import ObserverStage, PayloadStage

STEPS, STEP_NS = 10, 1_000_000
PRESSURE = 2e6


def warm_up_observer(stage: ObserverStage, machine: Machine) -> None:
    """Run the observer over a made-up segment at mid stroke and forget it."""
    row = [_middle(machine)[c.split('/')[1]] if c.startswith('position/') else PRESSURE for c in machine.channels]
    stage.process(Segment(1, 0, STEP_NS, True, machine.channels, np.tile(row, (STEPS, 1)),
                          np.full(len(row), float(STEPS)), machine.commands, np.zeros((STEPS, len(machine.commands)))))
    stage.reset()


def warm_up_payload(stage: PayloadStage, machine: Machine) -> None:
    """Run the payload estimator over a made-up state at mid stroke and forget it."""
    names, _ = state_names(machine)
    middle, count = _middle(machine), len(machine.channels)
    row = [middle[name.split('/')[1]] if name.startswith('position/') else PRESSURE if name.startswith('pressure/')
           else 0.0 for name in names]
    empty = np.zeros(count)
    stage.process(StateEstimate(1, STEPS * STEP_NS, STEP_NS, True, names, np.tile(row, (STEPS, 1)),
                                np.eye(len(names)) * 1e-6, machine.channels, empty, empty, empty + 1.0, 0.0, count,
                                ObserverStatus.OK))
    stage.reset()


def _middle(machine: Machine) -> dict[str, float]:
    """Middle of each cylinder's stroke, m."""
    return dict(zip(machine.cylinders, machine.stroke.mean(axis=1)))
