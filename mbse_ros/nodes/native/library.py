# SPDX-License-Identifier: Apache-2.0
"""The compiled estimator of a machine as a shared library: the exported C of observer and payload, with C that reads
and writes its messages (messages.c) and a thread that serves its topics (loop.c). No ROS is needed to import it.

The thread calls ``rcl`` by addresses that the node hands over: nothing is compiled or linked against ROS, so that a
computer without its headers, and each ROS 2 from Humble to Kilted, has it.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ...bags.channel_samples import own_place
from ...bags.channels import IMU_FIELDS, parse_channel
from ...bags.topics import FLUID_PRESSURE, IMU, JOINT_STATE, TopicMap
from ...compiled.cache import code_identity, library
from ...description.age import today
from ...description.model import content
from ...embedded.record import STATUS
from ...embedded.tables import EstimatorSetup
from ...embedded.write import estimator_parts
from ...errors import SettingError
from ...filters.hydraulic_state import state_names
from ...machine import Machine
from ...machine.equations import check_single
from ...monitor.faults import GATES, KINDS, ObserverStatus
from ...streams.regular import LARGEST
from .loop import RosCalls

PREFIX = 'machine'
ROOMS = 'description', 'embedded', 'export', 'filters', 'monitor', 'nodes', 'payload', 'streams'
KIND_OF = {JOINT_STATE: 'JOINTS', FLUID_PRESSURE: 'PRESSURE', IMU: 'IMU'}
JOINT_FIELDS = 'position', 'velocity', 'effort'
IMU_PLACES = 'angular_velocity', 'linear_acceleration'
MOST_TOPICS = 63        # bits
LONGEST_REASON = 600    # characters
AGES = 4096             # as loop.c has it
TOLERANCE = 0.1         # of a period, by which a stamp may be off the rate
FAR_BACK = 0.1          # s: a third of interpolation's max_gap
OFF_RATE = 'dropped, not at the rate'
COUNTS = ('', 'published', 'instants without a sample', OFF_RATE, 'dropped, repeated or backward',
          'dropped, unreadable', 'dropped, too many wait', 'dropped, infinite', 'ticks before their command',
          'commands between ticks', 'middleware busy', 'clock went back')


@dataclass(frozen=True)
class InputTopic:
    """A topic, its type, and ``entries``: name in the message, place of its field, place among channels or commands."""

    topic: str
    kind: str
    entries: tuple[tuple[str, int, int], ...]


@dataclass(frozen=True)
class Waits:
    """How long an instant waits, s: for a command, and for a sensor that is silent."""

    command: float
    sensor: float


def input_topics(machine: Machine) -> tuple[InputTopic, ...]:
    """Topics of a machine's sensors, then that of its commands, if it has any."""
    topics = TopicMap()
    found: dict[str, list[tuple[str, int, int]]] = {}
    kinds = {topics.position: JOINT_STATE, topics.command: JOINT_STATE}
    for place, channel in enumerate(machine.channels):
        kind, name, axis = parse_channel(channel)
        topic = own_place(channel, topics)[0]
        if kind in IMU_FIELDS:
            kinds[topic], field = IMU, 3 * IMU_PLACES.index(IMU_FIELDS[kind]) + 'xyz'.index(axis)
        elif kind == 'pressure':
            kinds[topic], field = FLUID_PRESSURE, 0
        else:
            field = JOINT_FIELDS.index(kind)
        found.setdefault(topic, []).append((name, field, place))
    if machine.commands:
        found[topics.command] = [(text.partition('/')[2], 0, place) for place, text in enumerate(machine.commands)]
    return tuple(InputTopic(topic, kinds[topic], tuple(entries)) for topic, entries in found.items())


def check_compiled(of: EstimatorSetup) -> None:
    """Raise SettingError, or DescriptionError, for what the compiled estimator does not do; the other nodes do it."""
    check_single(of.machine)
    if not of.joint:
        raise SettingError('weighing', of.observer.weighing, 'joint: the compiled estimator weighs inside the observer')
    if len(input_topics(of.machine)) > MOST_TOPICS:
        raise SettingError('machine', of.machine.name, f'at most {MOST_TOPICS} topics of sensors')


def compiled_estimator(of: EstimatorSetup, waits: Waits) -> ctypes.CDLL:
    """The library, from the cache or compiled now; raises as `check_compiled`, and CompilationError."""
    check_compiled(of)
    numbers = of.machine.parameters
    made_of = '\0'.join([code_identity(*ROOMS), *(path.read_text() for path in sources()), content(
        of.machine.description), repr((of.observer, of.payload, of.rate, of.step, waits, today())),
        np.concatenate([numbers.mean, numbers.stddev]).tobytes().hex()])
    return declared(ctypes.CDLL(str(library('mbse_estimator', lambda: source(of, waits), made_of))), of.machine)


def sources() -> tuple[Path, Path]:
    """The C files that each estimator has."""
    folder = Path(__file__).parent
    return folder / 'messages.c', folder / 'loop.c'


def source(of: EstimatorSetup, waits: Waits) -> str:
    """All C of a machine's estimator."""
    parts = estimator_parts(of, PREFIX)
    own = parts.source.replace(f'#include "{PREFIX}.h"\n', '')
    return '\n'.join(['#include <stddef.h>\n#include <stdint.h>\n#include <stdio.h>', parts.functions, parts.header,
                      own, tables(of, waits), *(path.read_text() for path in sources())])


def tables(of: EstimatorSetup, waits: Waits) -> str:
    """What messages.c and loop.c have of a machine: topics and their entries, times, words."""
    topics = input_topics(of.machine)
    entries = [entry for topic in topics for entry in topic.entries]
    firsts = np.cumsum([0, *(len(topic.entries) for topic in topics)]).tolist()
    names = sum(len(name.encode()) + 8 for name in (*of.machine.channels, *parts_of_state(of.machine)))
    # arrays of the state, with room for the largest number of entries, and all texts
    room = 4096 + 4 * LONGEST_REASON + names + 8 * (len(parts_of_state(of.machine)) + 4 * len(of.machine.channels) + 64)
    times = {'PERIOD': round(1e9 / of.rate), 'TOLERANCE': round(1e9 * TOLERANCE / of.rate),
             'COMMAND_WAIT': round(1e9 * waits.command), 'GIVE_UP': round(1e9 * waits.sensor),
             'FAR_BACK': round(1e9 * FAR_BACK), 'SECOND': 1_000_000_000}
    gates = {STATUS[status]: text for status, text in GATES.values()}
    words = [_text(next((kind.reason for fault, kind in KINDS.items() if fault == 1 << bit), '')) for bit in range(32)]
    return '\n'.join([
        'enum { JOINTS, PRESSURE, IMU };',
        f'enum {{ TOPICS = {len(topics)}, COMMAND_TOPIC = {len(topics) - 1 if of.machine.commands else -1}, '
        f'FIRST_ENTRY_END = {len(entries)}, LONGEST_REASON = {LONGEST_REASON}, '
        f'LARGEST_MESSAGE = {room} + 8 * NX * NX }};',
        *(f'static const int64_t {name} = {value};' for name, value in times.items()),
        f'static const double LARGEST_VALUE = {LARGEST!r};',
        f'static const int KIND[] = {{{", ".join(KIND_OF[topic.kind] for topic in topics)}}};',
        f'static const int FIRST_ENTRY[] = {{{", ".join(map(str, firsts))}}};',
        'typedef struct {\n  const char *name;\n  int field, place;\n} topic_entry;',
        _texts('topic_entry ENTRIES', (f'{{{_text(name)}, {field}, {place}}}' for name, field, place in entries)),
        _texts('char *const FAULT_WORDS', words),
        _texts('char *const STATUS_WORDS', (_text(gates.get(k, '')) for k in range(11))),
        _texts('char *const OBSERVER_WORDS', (_text(f'observer {item.name.lower()}: ') for item in ObserverStatus)),
        ''])


def _texts(name: str, values: Iterable[str]) -> str:
    """A constant array."""
    return f'static const {name}[] = {{{", ".join(values)}}};'


def _text(text: str) -> str:
    """A text as C has it, in its bytes."""
    return '"' + ''.join(chr(byte) if 32 <= byte < 127 and chr(byte) not in '"\\?' else f'\\{byte:03o}'
                         for byte in text.encode()) + '"'


def parts_of_state(machine: Machine) -> tuple[str, ...]:
    """Names of the entries of the state."""
    return state_names(machine, True)[0]


def look_type(topics: int) -> type[ctypes.Structure]:
    """The numbers that the thread gives, as loop.c has them."""
    return type('Look', (ctypes.Structure,), {'_fields_': [
        ('stamp', ctypes.c_int64), ('count', ctypes.c_uint64 * len(COUNTS)), ('missing', ctypes.c_uint64 * topics),
        ('waiting', ctypes.c_uint64), ('silent', ctypes.c_uint64), *((name, ctypes.c_double) for name in (
            'mass', 'lower', 'upper', 'mean_nis')),
        ('observer', ctypes.c_int32), ('status', ctypes.c_int32), ('ages', ctypes.c_int32),
        ('state_faults', ctypes.c_uint32), ('faults', ctypes.c_uint32), ('age', ctypes.c_float * AGES),
        ('state_words', ctypes.c_char * LONGEST_REASON), ('mass_words', ctypes.c_char * LONGEST_REASON)]})


def declared(found: ctypes.CDLL, machine: Machine) -> ctypes.CDLL:
    """The library with the types of its functions."""
    topics, pointer = len(input_topics(machine)), ctypes.c_void_p
    signatures: dict[str, tuple[Any, list[Any]]] = {
        'new': (pointer, [ctypes.POINTER(RosCalls), pointer * topics, pointer, pointer]),
        'start': (ctypes.c_int, [pointer]), 'stop': (None, [pointer, ctypes.c_int]), 'free': (None, [pointer]),
        'take': (None, [pointer, ctypes.c_int, ctypes.c_char_p, ctypes.c_size_t]), 'reset': (None, [pointer]),
        'want': (None, [pointer]), 'look': (ctypes.POINTER(look_type(topics)), [pointer])}
    for name, (result, arguments) in signatures.items():
        function = getattr(found, f'mbse_loop_{name}')
        function.restype, function.argtypes = result, arguments
    return found
