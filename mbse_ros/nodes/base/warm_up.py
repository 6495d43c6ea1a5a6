# SPDX-License-Identifier: Apache-2.0
"""First runs of compiled stages before the first real sample, which would have to wait for them."""

from __future__ import annotations

import numpy as np

from ...estimators.hydraulic_state import state_names
from ...estimators.mass_information import OWN_COLUMNS, columns
from ...machine import Machine
from ...simulation.crane import TrueSamples
from ...streams.records import ObserverStatus, Segment, StateEstimate
from ...streams.stages import ObserverStage, PayloadStage

STEPS, STEP_NS = 10, 1_000_000
PRESSURE = 2e6      # Pa


def warm_up_observer(stage: ObserverStage, machine: Machine) -> None:
    """Run the observer over a made-up segment, at rest where the machine's file starts, and forget it."""
    model, rest, none = machine.model, np.zeros(len(machine.coordinates)), np.zeros(len(machine.channels))
    samples = TrueSamples(machine, machine.all_channels).read(
        model.start.q, model.start.q[model.z], rest, rest, np.full(len(machine.volumes), PRESSURE), none, {})
    row = [samples[channel] for channel in machine.channels]
    stage.process(Segment(1, 0, STEP_NS, True, machine.channels, np.tile(row, (STEPS, 1)),
                          np.full(len(row), float(STEPS)), machine.commands, np.zeros((STEPS, len(machine.commands)))))
    stage.reset()


def warm_up_payload(stage: PayloadStage, machine: Machine) -> None:
    """Run the payload estimators over a made-up state, at rest where the machine's file starts, and forget it: which of
    them is used, the observer's states will show."""
    names, _ = state_names(machine)
    position = {f'position/{name}': machine.model.start.q[k] for name, k in zip(machine.coordinates, machine.model.z)}
    row = [position.get(name, PRESSURE if name.startswith('pressure/') else 0.0) for name in names]
    empty = np.zeros(len(machine.channels))
    for weighing in np.zeros((0, OWN_COLUMNS)), np.zeros((STEPS, columns(len(machine.parameters.consider)))):
        stage.process(StateEstimate(1, STEPS * STEP_NS, STEP_NS, True, names, np.tile(row, (STEPS, 1)),
                                    np.eye(len(names)) * 1e-6, machine.channels, empty, empty, empty + 1.0, 0.0,
                                    len(empty), ObserverStatus.OK, weighing=weighing))
        stage.reset()
