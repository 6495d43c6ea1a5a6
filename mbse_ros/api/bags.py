# SPDX-License-Identifier: Apache-2.0
"""``read_bag``, ``write_bag``, ``import_log``: samples as arrays out of bags and into them; those of a mechanism also
out of a CSV table, on an even grid of time.
"""

from __future__ import annotations

import csv
import re
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np

from ..bags.channel_samples import Sample
from ..bags.channels import UNITS
from ..bags.messages import header
from ..bags.table import import_table
from ..bags.topics import FLOAT64, JOINT_STATE, Sources
from ..bags.writer import BagWriter, write_frame
from ..description.coordinate_units import measured_unit
from ..dynamics.model import Model
from ..errors import BagError, SettingError, refuse_options
from ..filters.parts.problem import problem
from ..machine import Machine, load_machine
from ..offline.filtered_motion import TRUTH
from ..offline.motion_estimate import channel_units
from ..report.result import Written
from ..resources import regular, said_of
from ..sources.map import SourceMap
from ..sources.reader import mechanism_reader, sample_reader
from ..sources.topic_samples import UnusableSample
from .checked import checked
from .load import Loadable, loaded, loaded_sources
from .results.simulations import MachineSimulation, MotionSimulation
from .samples import Columns, Samples, as_samples, stage_rows

NAMESPACE = r'/?([A-Za-z_]\w*(/[A-Za-z_]\w*)*)?/?'
Writable = Samples | Columns | MachineSimulation | MotionSimulation
LONGEST = 2_000_000     # instants


@checked
def read_bag(path: str | Path, machine: Loadable, *, sensors: Sequence[str] | None = None,
             namespace: str | None = None, sources: str | Path | None = None) -> Samples:
    """Samples of a machine's channels and commands, or of a mechanism's ``sensors`` (default all) and inputs.

    ``machine``: name, path, or what ``load`` gave. Of a machine the times are those of the bag, as many as there are
    different ones; of a mechanism even ones. t = 0 is the first sample. Channels that the bag does not have are NaN, of
    a mechanism left out with a warning; of ``sensors`` that are named, an error. ``sources``: the map of a bag of
    messages of other packages (docs/sources.md), a path or a name.
    Raises BagError, SampleError, DescriptionError.

    >>> read_bag('lift', 'patu655_lift').names
    ('position/lift', 'pressure/lift_piston', 'pressure/lift_rod', 'command/lift_valve')
    """
    item = loaded(machine)
    if isinstance(item, Machine):
        refuse_options('a mechanism', {'sensors': sensors})
        return read_machine(Path(path), item, namespace, loaded_sources(sources))
    return read_mechanism(Path(path), item, sensors, namespace, loaded_sources(sources))


@checked
def write_bag(path: str | Path, samples: Writable, machine: Loadable | None = None, *, storage: str = 'mcap',
              namespace: str = '') -> Path:
    """Write samples as a rosbag2 that the command line and the nodes read; gives its path.

    ``samples``: what ``simulate`` gave, with the truth in the bag, or ``Samples`` or a mapping from channels to
    (t, values), of the ``machine`` (name, path, or what ``load`` gave). ``storage``: 'mcap' or 'sqlite3'. Nothing is
    ever overwritten. Raises BagError, SettingError.

    >>> write_bag('lift', simulate('patu655_lift', payload=200.0, duration=8.0)).name
    'lift'
    """
    if not re.fullmatch(NAMESPACE, namespace):
        raise SettingError('namespace', namespace, 'a name of ROS, letters, digits and _, with / between parts')
    if isinstance(samples, (MachineSimulation, MotionSimulation)):
        refuse_options('Samples and mappings: a simulation has its own', {'machine': machine})
    if isinstance(samples, MachineSimulation):
        return write_frames(path, samples, storage, namespace)
    if isinstance(samples, MotionSimulation):
        if samples.samples is None:
            raise SettingError('samples', None, 'a simulation with sensors')
        return write_mechanism(path, samples.samples, samples.model, storage, namespace, samples)
    if machine is None:
        raise SettingError('machine', None, 'the machine or mechanism that the samples are of')
    item, found = loaded(machine), as_samples(samples)
    if isinstance(item, Machine):
        return write_machine(path, found, item, storage, namespace)
    return write_mechanism(path, found, item, storage, namespace)


@checked
def import_log(log: str | Path, output: str | Path, map_: str | Path | None = None, machine: str | Path | None = None,
               *, valve: str | None = None, sources: str | Path | None = None, namespace: str | None = None,
               storage: str = 'mcap') -> Written:
    """A CSV table with a ``map_`` of its columns, or a bag of a ``machine`` whose samples the map ``sources`` finds, as
    a bag of the topics of this package.

    Raises SettingError, DescriptionError, and BagError where nothing is found or written.
    """
    if (map_ is None) == (machine is None):
        raise SettingError('map_', map_, "the map of a table's columns, or the machine of a bag (and its sources)")
    if map_ is not None:
        refuse_options('a bag of a machine', {'sources': sources, 'valve': valve, 'namespace': namespace})
        table = import_table(Path(log), Path(map_), Path(output), storage=storage)
        missing = (f'{channel}: {count} {"cell" if count == 1 else "cells"} of {table.rows} without a value'
                   for channel, count in table.missing.items())
        return Written((f'{table.rows} rows over {(table.last_ns - table.first_ns) * 1e-9:.1f} s of '
                        + ', '.join(table.channels),), (*table.warnings, *missing))
    item = load_machine(str(machine), valve)
    reader = sample_reader(Path(log), item, namespace, loaded_sources(sources))
    samples = list(reader)
    if not samples:
        raise BagError(str(log), '; '.join(['has no sample of ' + item.name, *reader.warnings]))
    with BagWriter(output, storage, frame=item.name) as writer:
        for stamp, values in _instants(samples):
            commands = {channel: value for channel, value in values.items() if channel.startswith('command/')}
            writer.write_samples(stamp, {channel: value for channel, value in values.items()
                                         if channel not in commands}, commands)
    stamps = [sample.stamp_ns for sample in samples]
    return Written((f'{len(samples)} samples over {(max(stamps) - min(stamps)) * 1e-9:.1f} s of '
                    + ', '.join(dict.fromkeys(sample.channel for sample in samples)),), tuple(reader.warnings))


def _instants(samples: Iterable[Sample]) -> Iterator[tuple[int, dict[str, float]]]:
    """Stamps, ns, and values of samples with one stamp that follow each other, none of a channel twice."""
    for stamp, together in groupby(samples, key=lambda sample: sample.stamp_ns):
        left = list(together)
        while left:
            values, later = dict[str, float](), []
            for sample in left:
                if sample.channel in values:
                    later.append(sample)
                else:
                    values[sample.channel] = sample.value
            yield stamp, values
            left = later


def read_mechanism(path: Path, model: Model, sensors: Sequence[str] | None, namespace: str | None = None,
                   sources: SourceMap | None = None) -> Samples:
    """On an even grid; of all (None) those that have samples; raises BagError, SampleError, DescriptionError."""
    wanted = problem(model, tuple(model.description.mechanical_sensors if sensors is None else sensors)).channels
    table = read_sensors(path, model, wanted, None, namespace, sources, sensors is not None)
    channels = table.channels
    if missing := [name for name in wanted if name not in channels]:
        warnings.warn(f'{path}: no samples of {", ".join(missing)}', stacklevel=4)
    inputs = np.vstack([table.inputs[:1], table.inputs[:-1]])       # over the step before each time
    names = (*channels, *(f'input/{name}' for name in model.inputs))
    return Samples(table.t, names, np.hstack([table.values, inputs]), channel_units(model, names))


def read_machine(path: Path, machine: Machine, namespace: str | None, sources: SourceMap | None) -> Samples:
    """At the stamps of the bag; raises BagError, DescriptionError."""
    reader = sample_reader(path, machine, namespace, sources)
    names = (*machine.channels, *machine.commands)
    found = list(reader)
    stamps = np.array([sample.stamp_ns for sample in found], dtype=np.int64)
    rows, places = np.unique(stamps, return_inverse=True)
    values, at = np.full((len(rows), len(names)), np.nan), {name: k for k, name in enumerate(names)}
    for sample, place in zip(found, places.tolist()):
        values[place, at[sample.channel]] = sample.value
    units = {c.name: measured_unit(machine.description, c.sensor.name) for c in machine.all_channels}
    start = int(rows[0])
    return Samples((rows - start) * 1e-9, names, values,
                   units | dict.fromkeys(machine.commands, UNITS['command'][0]), start)


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


@dataclass(frozen=True)
class SensorTable:
    """Times (k,), s from the first sample; SI values (k, s) of the channels, NaN where there is no sample; inputs
    (k, u), held from sample to sample and 0 before the first; what was odd about the log."""

    t: np.ndarray
    values: np.ndarray
    inputs: np.ndarray
    warnings: tuple[str, ...] = ()
    channels: tuple[str, ...] = ()


def read_sensors(path: Path, model: Model, channels: Sequence[str], dt: float | None = None,
                 namespace: str | None = None, sources: SourceMap | None = None, all_: bool = True) -> SensorTable:
    """Samples of a mechanism's channels (a sensor's name, or ``sensor.x`` for each of several components) and inputs.

    CSV: a column of time, ``t`` or ``t [s]``, one for each channel, ``crank_gyro`` or ``crank_gyro [rad/s]``, SI, and
    those of the inputs by their names, if they act. Bag: as ``sources.reader.mechanism_reader`` finds them.
    ``dt``: the grid's; default the shortest usual time between the samples of a channel. ``all_``: a channel without
    samples is an error; else only if none has any, and it is not among ``channels`` of the result. Raises BagError,
    SampleError, DescriptionError.
    """
    samples, warnings = ((_from_table(path, channels, model.inputs), []) if path.suffix.lower() == '.csv'
                         else _from_bag(path, model, channels, namespace, sources))
    missing = [channel for channel in channels if not samples.get(channel)]
    if missing and (all_ or len(missing) == len(channels)):
        about = [line for line in warnings if {*line.partition(':')[0].split(', ')} & {*missing}]
        raise BagError(str(path), '; '.join([f'no samples of {", ".join(missing)}', *about]))
    channels = tuple(channel for channel in channels if channel not in missing)
    series = [np.array(samples[channel], dtype=float) for channel in channels]
    t = _grid(path, series, dt)
    held = [_held(t + series_start(series), np.array(samples.get(f'input/{name}', []), dtype=float).reshape(-1, 2))
            for name in model.inputs]
    return SensorTable(t, np.column_stack([_nearest(t, item, series_start(series)) for item in series]),
                       np.column_stack(held) if held else np.zeros((len(t), 0)), tuple(warnings), channels)


def table_samples(path: Path, model: Model, sensors: Sequence[str] = ()) -> Samples:
    """Samples of a mechanism's CSV table at its own times, see ``read_sensors``; ``sensors``: default those of which it
    has columns. Raises BagError."""
    try:
        with open(regular(path), newline='', encoding='utf-8-sig') as file:
            heads = {head.partition('[')[0].strip() for head in next(csv.reader(file), [])}
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise BagError(str(path), f'is not a table: {said_of(error)}') from error
    known = tuple(sensors) or tuple(model.description.mechanical_sensors)
    channels = [name for name in problem(model, known).channels if sensors or name in heads]
    if not channels:
        raise BagError(str(path), f'no column of {", ".join(known)}; there are {", ".join(sorted(heads))}')
    found = _from_table(path, channels, model.inputs)
    if not found:
        raise BagError(str(path), f'no samples of {", ".join(channels)}')
    return Samples.of({name: tuple(np.array(rows).T) for name, rows in found.items()})      # type: ignore[misc]


def series_start(series: Sequence[np.ndarray]) -> float:
    """Time of the first sample, s."""
    return min(float(item[0, 0]) for item in series)


def _grid(path: Path, series: Sequence[np.ndarray], dt: float | None) -> np.ndarray:
    """Even times from 0 over all samples."""
    usual = [float(np.median(np.diff(np.unique(item[:, 0])))) for item in series if len(np.unique(item[:, 0])) > 1]
    if not usual:
        raise BagError(str(path), 'only one sample of each channel')
    step = dt or min(usual)
    count = int(round((max(float(item[-1, 0]) for item in series) - series_start(series)) / step)) + 1
    if not 2 <= count <= LONGEST:
        raise BagError(str(path), f'{count} instants of {step:g} s, expected 2 to {LONGEST}')
    return step * np.arange(count)


def _nearest(t: np.ndarray, samples: np.ndarray, start: float) -> np.ndarray:
    """Each sample at the nearest instant, the later of two at the same one."""
    values = np.full(len(t), np.nan)
    places = np.rint((samples[:, 0] - start) / (t[1] - t[0])).astype(int)
    inside = (places >= 0) & (places < len(t))
    values[places[inside]] = samples[inside, 1]
    return values


def _held(times: np.ndarray, samples: np.ndarray) -> np.ndarray:
    """The last sample before each time, 0 before the first."""
    last = np.searchsorted(samples[:, 0], times + 1e-9, side='right') - 1
    return np.where(last >= 0, samples[np.maximum(last, 0), 1], 0.0) if len(samples) else np.zeros(len(times))


def _from_table(path: Path, channels: Sequence[str], inputs: Sequence[str]) -> dict[str, list[tuple[float, float]]]:
    try:
        with open(regular(path), newline='', encoding='utf-8-sig') as file:
            rows = [row for row in csv.reader(file) if row]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise BagError(str(path), f'is not a table: {said_of(error)}') from error
    heads = [head.partition('[')[0].strip() for head in rows[0]] if rows else []
    columns = {channel: channel for channel in channels} | {name: f'input/{name}' for name in inputs if name in heads}
    for wanted in ('t', *columns):
        if heads.count(wanted) != 1:
            raise BagError(str(path), f'{heads.count(wanted)} columns {wanted!r}, expected one; there are '
                           + ', '.join(heads))
    samples: dict[str, list[tuple[float, float]]] = {}
    at, time = {label: heads.index(name) for name, label in columns.items()}, heads.index('t')
    for line, row in enumerate(rows[1:], 2):
        try:
            t, numbers = float(row[time]), {label: float(row[place] or 'nan') for label, place in at.items()}
        except (ValueError, IndexError) as error:
            raise BagError(str(path), f'line {line}: expected numbers below t, {", ".join(columns)}') from error
        if abs(t) >= 2.0 ** 31:
            raise BagError(str(path), f'line {line}: t is {row[time]!r}, expected less than 2^31 s')
        for label, value in numbers.items():
            if np.isfinite(value) and np.isfinite(t):
                samples.setdefault(label, []).append((t, value))
    return {label: sorted(items) for label, items in samples.items()}


def _from_bag(path: Path, model: Model, channels: Sequence[str], namespace: str | None, sources: SourceMap | None
              ) -> tuple[dict[str, list[tuple[float, float]]], list[str]]:
    """Times, s, and values by channel, and what was odd; what cannot be read is an error."""
    reader = mechanism_reader(path, model, channels, namespace, sources)
    samples: dict[str, list[tuple[float, float]]] = {}
    origin: int | None = None
    for channel, stamp, value, _ in reader:
        origin = stamp if origin is None else origin        # seconds of an epoch would lose digits
        if np.isfinite(value):
            samples.setdefault(channel, []).append((1e-9 * (stamp - origin), value))
    for error in reader.refused:
        if not isinstance(error, UnusableSample) or error.source.own:
            raise error
    return {channel: sorted(items) for channel, items in samples.items()}, reader.warnings
