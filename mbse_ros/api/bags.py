# SPDX-License-Identifier: Apache-2.0
"""``read_bag`` and ``write_bag``: samples out of a rosbag2 and into one, without ROS."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Union

import numpy as np

from ..bags.channels import UNITS
from ..bags.messages import header
from ..bags.reader import SampleReader
from ..bags.sensor_series import read_sensors
from ..bags.topics import TopicMap
from ..bags.writer import BagWriter
from ..dynamics.model import Model
from ..errors import SettingError
from ..machine import Machine
from ..streams.linkage.sources import FLOAT64, JOINT_STATE, Sources
from .load import Loadable, loaded
from .machine_units import channel_unit
from .motion import channel_units
from .samples import Columns, Samples, as_samples
from .simulations import MachineSimulation, MotionSimulation

Written = Union[Samples, Columns, MachineSimulation, MotionSimulation]


def read_bag(path: str | Path, machine: Loadable, *, sensors: Sequence[str] | None = None,
             namespace: str | None = None) -> Samples:
    """Samples of a machine's channels and commands, or of a mechanism's ``sensors`` (default all) and inputs.

    ``machine``: name, path, or what ``load`` gave. Of a machine the times are those of the bag, as many as there are
    different ones; of a mechanism even ones. t = 0 is the first sample. Channels that the bag does not have are NaN, of
    a mechanism an error. Raises BagError, SampleError, DescriptionError.
    """
    item = loaded(machine)
    if isinstance(item, Machine):
        return _read_machine(Path(path), item, namespace)
    chosen = tuple(item.description.mechanical_sensors if sensors is None else sensors)
    from ..estimators.filters.problem import problem        # here, because it takes its time to import
    channels = problem(item, chosen).channels
    table = read_sensors(Path(path), item.description, channels, item.inputs)
    inputs = np.vstack([table.inputs[:1], table.inputs[:-1]])       # over the step before each time
    names = (*channels, *(f'input/{name}' for name in item.inputs))
    return Samples(table.t, names, np.hstack([table.values, inputs]), channel_units(item, names))


def _read_machine(path: Path, machine: Machine, namespace: str | None) -> Samples:
    reader = SampleReader(path, machine.channels, machine.commands, TopicMap(namespace=namespace))
    names = (*machine.channels, *machine.commands)
    found = list(reader)
    stamps = np.array([sample.stamp_ns for sample in found], dtype=np.int64)
    rows, places = np.unique(stamps, return_inverse=True)
    values, at = np.full((len(rows), len(names)), np.nan), {name: k for k, name in enumerate(names)}
    for sample, place in zip(found, places.tolist()):
        values[place, at[sample.channel]] = sample.value
    units = {c.name: channel_unit(machine, c) for c in machine.all_channels}
    start = int(rows[0])
    return Samples((rows - start) * 1e-9, names, values,
                   units | dict.fromkeys(machine.commands, UNITS['command'][0]), start)


def write_bag(path: str | Path, samples: Written, machine: Loadable | None = None, *, storage: str = 'mcap',
              namespace: str = '') -> Path:
    """Write samples as a rosbag2 that the command line and the nodes read; gives its path.

    ``samples``: what ``simulate`` gave, with the truth in the bag, or ``Samples`` or a mapping from channels to
    (t, values), of the ``machine`` (name, path, or what ``load`` gave). ``storage``: 'mcap' or 'sqlite3'. Nothing is
    ever overwritten. Raises BagError, SettingError.
    """
    if isinstance(samples, MachineSimulation):
        from ..bags.frames import write_frame
        with BagWriter(path, storage, namespace, samples.machine.name) as writer:
            for frame in samples.frames:
                write_frame(writer, samples.machine, frame)
        return Path(path)
    if isinstance(samples, MotionSimulation):
        if samples.samples is None:
            raise SettingError('samples', None, 'a simulation with sensors')
        return _write_mechanism(path, samples.samples, samples.model, storage, namespace, samples)
    if machine is None:
        raise SettingError('machine', None, 'the machine or mechanism that the samples are of')
    item, found = loaded(machine), as_samples(samples)
    if isinstance(item, Machine):
        return _write_machine(path, found, item, storage, namespace)
    return _write_mechanism(path, found, item, storage, namespace)


def _write_machine(path: str | Path, samples: Samples, machine: Machine, storage: str, namespace: str) -> Path:
    with BagWriter(path, storage, namespace, machine.name) as writer:
        for stamp, row in zip(samples.stamps_ns.tolist(), samples.values.tolist()):
            here = {name: value for name, value in zip(samples.names, row) if value == value}
            commands = {name: value for name, value in here.items() if name.startswith('command/')}
            writer.write_samples(stamp, {name: v for name, v in here.items() if name not in commands}, commands)
    return Path(path)


def _write_mechanism(path: str | Path, samples: Samples, model: Model, storage: str, namespace: str,
                     truth: MotionSimulation | None = None) -> Path:
    """Messages on the topics of the linkage's nodes; the true coordinates beside them."""
    from ..offline.linkage import TRUTH
    from .estimate import stage_rows
    channels = [name for name in samples.names if not name.startswith('input/')]
    inputs = [name.partition('/')[2] for name in samples.names if name.startswith('input/')]
    model_of_channels = {name.partition('.')[0] for name in channels} - set(model.description.mechanical_sensors)
    if model_of_channels or set(inputs) - set(model.inputs):
        strangers = sorted(model_of_channels | (set(inputs) - set(model.inputs)))
        raise SettingError('samples', strangers, f'sensors and inputs of {model.description.name}: '
                           + ', '.join([*model.description.mechanical_sensors, *model.inputs]))
    of_sensors, of_inputs = Sources(model.description, channels), Sources(model.description, (), inputs)
    rows = np.searchsorted(truth.t, samples.t - 1e-9) if truth is not None else []
    name = model.description.name
    with BagWriter(path, storage, namespace, name) as writer:
        for stamp, values in stage_rows(samples):
            sources = of_inputs if next(iter(values)).startswith('input/') else of_sensors
            whole = values if sources is of_inputs else {channel: values.get(channel, np.nan) for channel in channels}
            for topic, message in sources.spread(whole).items():
                _write(writer, topic, sources.topics[topic], stamp, message, name)
        for stamp, row in zip(samples.stamps_ns.tolist(), rows):
            _write(writer, TRUTH, JOINT_STATE, stamp, {'name': list(model.names), 'position': truth.q[row],
                                                       'velocity': truth.qd[row]}, name)
    return Path(path)


def _write(writer: BagWriter, topic: str, kind: str, stamp: int, message: dict[str, Any], frame: str) -> None:
    """A message, with a header where its type has one."""
    stamped = message if kind == FLOAT64 else {'header': header(stamp, frame), **message}
    writer.write(topic, kind, stamp, stamped)
