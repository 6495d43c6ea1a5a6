# SPDX-License-Identifier: Apache-2.0
"""Sound traffic of a graph as serialized messages, and what can be wrong with one of them. ROS-free."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from random import Random
from typing import Any

import numpy as np

from mbse_ros.bags.channel_samples import SensorFields
from mbse_ros.bags.messages import header, make_message, record_message, typestore
from mbse_ros.bags.topics import FLOAT64, JOINT_STATE, PAYLOAD, SEGMENT, STATE, Sources
from mbse_ros.description.model import fingerprint
from mbse_ros.dynamics.model import load_model
from mbse_ros.machine import Machine, load_machine
from mbse_ros.simulation.crane import SimulatedCrane, cycle_by_name
from mbse_ros.simulation.linkage import SimulatedLinkage
from mbse_ros.streams.pipeline import Pipeline

from .raw import DOUBLES, INTEGERS, WORDS, mutate_bytes

PERIOD_NS = 10_000_000
INSTANTS, LATER = 50, 20
HOLE_NS = 2_000_000_000     # before the LATER instants: a wrong stamp may silence a node for a second


@dataclass(frozen=True)
class Sent:
    """A message: topic, type, serialized."""

    topic: str
    kind: str
    cdr: bytes


def packed(kind: str, values: dict, stamp_ns: int, frame: str) -> bytes:
    """Serialized message of nested mappings."""
    stamped = {} if kind == FLOAT64 else {'header': header(stamp_ns, frame)}
    return bytes(typestore().serialize_cdr(make_message(kind, {**stamped, **values}), kind))


@cache
def crane_sensors(name: str) -> tuple[tuple[Sent, ...], ...]:
    """By instant, the sensors' messages of a simulated machine."""
    machine = load_machine(name)
    return tuple(_sensors(machine, frame.stamp_ns, frame.samples | frame.commands) for frame in _frames(name))


def _sensors(machine: Machine, stamp_ns: int, samples: dict[str, float]) -> tuple[Sent, ...]:
    fields = SensorFields(machine.channels, machine.valves)
    return tuple(Sent(topic, fields.topics[topic], packed(fields.topics[topic], values, stamp_ns, machine.name))
                 for topic, values in fields.spread(samples).items())


@cache
def _frames(name: str) -> tuple:
    machine = load_machine(name)
    plant = SimulatedCrane(machine, 50.0, 1, cycle_by_name('random', machine, 1))
    return tuple(_shifted(k, plant.frame()) for k in range(INSTANTS))


def _shifted(k: int, frame: Any) -> Any:
    return replace(frame, stamp_ns=frame.stamp_ns + (k >= LATER) * HOLE_NS)


@cache
def crane_records(name: str) -> tuple[tuple[Sent, ...], ...]:
    """By sensor period, segment, state and payload of the same run."""
    machine = load_machine(name)
    pipeline, found, mark = Pipeline(machine, backend='vm'), [], fingerprint(machine.description)
    for frame in _frames(name):
        for channel, value in (frame.samples | frame.commands).items():
            found += [tuple(_record(record, machine, mark) for record in vars(output).values())
                      for output in pipeline.add(channel, frame.stamp_ns, value)]
    return tuple(found)


def _record(record: Any, machine: Machine, mark: str) -> Sent:
    kind, message = record_message(record, machine.name, mark)
    topic = {SEGMENT: 'segment', STATE: 'state', PAYLOAD: 'payload'}[kind]
    return Sent(topic, kind, bytes(typestore().serialize_cdr(message, kind)))


@cache
def linkage_sensors(name: str, sensors: tuple[str, ...], unstamped: tuple[str, ...] = ()) -> tuple:
    """By instant, the sensors' messages of a simulated mechanism."""
    model = load_model(name, backend='vm')
    plant = SimulatedLinkage(model, sensors)
    sources, found = Sources(model.description, plant.channels, model.inputs, unstamped), []
    for k in range(INSTANTS):
        frame = _shifted(k, plant.frame())
        samples = dict(zip((*plant.channels, *sources.inputs.values()),
                           (*frame.samples.tolist(), *frame.inputs.tolist())))
        kinds, stamp = sources.topics, frame.stamp_ns
        truth = {'name': model.names, 'position': frame.q, 'velocity': frame.qd}
        found.append((*(Sent(topic, kinds[topic], packed(kinds[topic], values, stamp, name))
                        for topic, values in sources.spread(samples).items()),
                      Sent('truth/joint_states', JOINT_STATE, packed(JOINT_STATE, truth, stamp, name))))
    return tuple(found)


def changed(sent: Sent, random: Random, others: Sequence[Sent] = ()) -> Sent:
    """The message with other bytes, other fields, cut or too long; or another one in its place."""
    kind = random.random()
    if kind < 0.5:
        return Sent(sent.topic, sent.kind, mutate_bytes(sent.cdr, random))
    if kind < 0.55 and others:
        return Sent(sent.topic, sent.kind, random.choice(others).cdr)
    message = typestore().deserialize_cdr(sent.cdr, sent.kind)
    for _ in range(random.choice([1, 1, 2, 3])):
        message = _other_field(message, sent.kind, random)
    try:
        return Sent(sent.topic, sent.kind, bytes(typestore().serialize_cdr(message, sent.kind)))
    except (struct.error, ValueError, TypeError, OverflowError, UnicodeEncodeError, AssertionError):
        return Sent(sent.topic, sent.kind, mutate_bytes(sent.cdr, random))      # the field cannot hold it


def _other_field(message: Any, kind: str, random: Random) -> Any:
    """The message with one field changed, of itself or of a message in it."""
    names = [name for name, _ in typestore().fielddefs[kind][1]]
    name = random.choice(names)
    value = getattr(message, name)
    if hasattr(value, '__msgtype__'):
        value = _other_field(value, value.__msgtype__, random)
    elif isinstance(value, np.ndarray):
        value = _other_array(value, random)
    elif isinstance(value, list):
        value = random.choice([value[:-1], value * 2, value[::-1], [*value, random.choice(WORDS)], [],
                               [random.choice(WORDS) for _ in value], value * 40])
    elif isinstance(value, str):
        value = random.choice(WORDS)
    elif isinstance(value, bool):
        value = not value
    elif isinstance(value, float):
        value = random.choice(DOUBLES)
    else:
        value = random.choice([value + 1, value - 1, 2 * value, random.choice(INTEGERS), -random.choice(INTEGERS),
                               value + 10 ** random.randrange(12)])
    return _with(message, name, value)


def _with(message: Any, name: str, value: Any) -> Any:
    values = {field: getattr(message, field) for field in message.__dataclass_fields__ if field != '__msgtype__'}
    return type(message)(**{**values, name: value})


def _other_array(values: np.ndarray, random: Random) -> np.ndarray:
    values = values.copy()
    action = random.randrange(5)
    if action < 3 and values.size and values.dtype.kind == 'f':
        places = slice(None) if random.random() < 0.3 else random.randrange(values.size)
        values[places] = random.choice(DOUBLES)
        return values
    if action == 3 and values.dtype.kind == 'f':
        return values * np.float64(random.choice([-1.0, 1e3, 1e-3, 1e9, 1.01]))
    return random.choice([values[:-1], np.tile(values, 2), values[:0], np.tile(values, 30), values[::-1].copy()])
