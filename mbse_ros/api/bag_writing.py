# SPDX-License-Identifier: Apache-2.0
"""Samples of a machine or a mechanism into a bag."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from ..bags.frames import write_frame
from ..bags.messages import header
from ..bags.writer import BagWriter
from ..dynamics.model import Model
from ..errors import SettingError
from ..machine import Machine
from ..offline.linkage import TRUTH
from ..streams.linkage.sources import FLOAT64, JOINT_STATE, Sources
from .estimate import stage_rows
from .results.simulations import MachineSimulation, MotionSimulation
from .samples import Samples


def write_frames(path: str | Path, simulation: MachineSimulation, storage: str, namespace: str) -> Path:
    """Samples and truth of a simulated machine."""
    with BagWriter(path, storage, namespace, simulation.machine.name) as writer:
        for frame in simulation.frames:
            write_frame(writer, simulation.machine, frame)
    return Path(path)


def write_machine(path: str | Path, samples: Samples, machine: Machine, storage: str, namespace: str) -> Path:
    """Samples of a machine; SettingError for channels that it does not have."""
    known = (*machine.channels, *(f'command/{name}' for name in machine.valves))
    strangers = [name for name in samples.names if name not in known]
    if strangers:
        raise SettingError('samples', strangers, f'channels of {machine.name}: ' + ', '.join(known))
    with BagWriter(path, storage, namespace, machine.name) as writer:
        for stamp, row in zip(samples.stamps_ns.tolist(), samples.values.tolist()):
            here = {name: value for name, value in zip(samples.names, row) if value == value}
            commands = {name: value for name, value in here.items() if name.startswith('command/')}
            writer.write_samples(stamp, {name: v for name, v in here.items() if name not in commands}, commands)
    return Path(path)


def write_mechanism(path: str | Path, samples: Samples, model: Model, storage: str, namespace: str,
                    truth: MotionSimulation | None = None) -> Path:
    """Messages on the topics of the linkage's nodes, the true coordinates beside them; SettingError as above."""
    channels = [name for name in samples.names if not name.startswith('input/')]
    inputs = [name.partition('/')[2] for name in samples.names if name.startswith('input/')]
    strange = {name.partition('.')[0] for name in channels} - set(model.description.mechanical_sensors)
    strangers = sorted(strange | (set(inputs) - set(model.inputs)))
    if strangers:
        raise SettingError('samples', strangers, f'sensors and inputs of {model.description.name}: '
                           + ', '.join([*model.description.mechanical_sensors, *model.inputs]))
    of_sensors, of_inputs = Sources(model.description, channels), Sources(model.description, (), inputs)
    name = model.description.name
    with BagWriter(path, storage, namespace, name) as writer:
        for stamp, values in stage_rows(samples):
            sources = of_inputs if next(iter(values)).startswith('input/') else of_sensors
            whole = values if sources is of_inputs else {channel: values.get(channel, np.nan) for channel in channels}
            for topic, message in sources.spread(whole).items():
                _write(writer, topic, sources.topics[topic], stamp, message, name)
        if truth is not None:
            for stamp, row in zip(samples.stamps_ns.tolist(), np.searchsorted(truth.t, samples.t - 1e-9)):
                _write(writer, TRUTH, JOINT_STATE, stamp, {'name': list(model.names), 'position': truth.q[row],
                                                           'velocity': truth.qd[row]}, name)
    return Path(path)


def _write(writer: BagWriter, topic: str, kind: str, stamp: int, message: dict[str, Any], frame: str) -> None:
    """A message, with a header where its type has one."""
    stamped = message if kind == FLOAT64 else {'header': header(stamp, frame), **message}
    writer.write(topic, kind, stamp, stamped)
