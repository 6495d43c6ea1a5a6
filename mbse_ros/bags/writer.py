# SPDX-License-Identifier: Apache-2.0
"""Writes bags as rosbag2 does: a folder with metadata.yaml and one mcap or sqlite3 file."""

from __future__ import annotations

import math
import sqlite3
import struct
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from ..description.model import fingerprint
from ..errors import BagError, DiskError
from ..streams.records import PayloadEstimate, Segment, StateEstimate
from .channels import COMMANDS, IMU_FIELDS, NOT_THERE, UNITS, parse_channel
from .messages import RECORDS, SensorTemplate, header, make_message, record_message, serialized, type_hash
from .storage.disk_room import LEAST_FREE, free_bytes, megabytes
from .storage.storage_writer import STORAGES, Contents, TopicInfo, offered_qos
from .topics import IMU, JOINT_STATE, TRUTH, TopicMap, normalized

if TYPE_CHECKING:
    from ..machine import Machine
    from ..simulation.crane import SensorFrame
    from ..streams.pipeline import Output

LOOK_SECONDS, LOOK_BYTES = 1.0, 1 << 20     # between two looks at the disk: the first that is over
_UNKNOWN = [0.0] * 9      # covariance of an Imu


class BagWriter:
    """A bag being written; use it in a `with` statement, whose end (also by an exception) completes the bag.

    ``namespace`` ('/crane') goes before topics that are not absolute, ``frame`` (the machine's name) into the headers,
    its fingerprint ``machine`` into the records; ``topics`` names the topics of the typed methods. A message's time in
    the bag is its stamp, ns. ``least_free``: bytes of the disk that must stay free.
    Raises BagError: the folder exists already (nothing is ever overwritten), cannot be made, or an unknown storage;
    and in each write for a value that the message cannot hold. Raises DiskError, at the start and in each write, where
    less than ``least_free`` is left or the disk refuses a write: the bag is closed then, and whole unless it says so.
    """

    def __init__(self, folder: str | Path, storage: str = 'mcap', namespace: str = '', frame: str = '',
                 topics: TopicMap = TopicMap(), machine: str = '', least_free: int = LEAST_FREE) -> None:
        self.folder, self.namespace, self.frame, self.topics = Path(folder), normalized(namespace), frame, topics
        self.machine, self.least_free = machine, least_free
        if storage not in STORAGES:
            raise BagError(str(folder), f'storage {storage!r} is not one of {", ".join(STORAGES)}')
        kind = STORAGES[storage]
        name = self.folder.absolute().name + '_0' + kind.suffix
        self._contents = Contents(storage, name)
        try:
            if not self.folder.exists() and (free := free_bytes(self.folder)) < least_free:
                raise DiskError(str(folder), f'is not begun: {_too_little(free, least_free)}')
            self.folder.mkdir(parents=True)
            self._storage = kind(self.folder / name)
        except FileExistsError:
            raise BagError(str(folder), 'exists already and is not overwritten') from None
        except (OSError, sqlite3.Error) as error:
            raise BagError(str(folder), f'cannot be made: {error}') from error
        self._templates: dict[tuple[str, tuple[str, ...] | None], SensorTemplate] = {}
        self._open = True
        self._looked, self._unseen = time.monotonic(), 0

    def __enter__(self) -> BagWriter:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def count(self) -> int:
        """Messages written so far."""
        return sum(topic.count for topic in self._contents.topics.values())

    @property
    def size(self) -> int:
        """Bytes on the disk so far; 0 where somebody has taken the file away."""
        try:
            return (self.folder / self._contents.file).stat().st_size
        except OSError:
            return 0

    def check_room(self) -> int:
        """Bytes that are free on the disk; raises DiskError, with the bag closed, where these are too few."""
        self._looked, self._unseen = time.monotonic(), 0
        try:
            free = free_bytes(self.folder)
        except OSError as error:
            self._end(f'its disk is gone: {error}')
        if free < self.least_free and self._open:
            self._end(_too_little(free, self.least_free))
        return free

    def close(self) -> None:
        """Complete the bag; a second call does nothing."""
        if not self._open:
            return
        self._open = False
        try:
            self._storage.close(self._contents)
            self._contents.write(self.folder)
        except (OSError, sqlite3.Error) as error:
            raise BagError(str(self.folder), f'cannot be completed: {error}') from error

    def write(self, topic: str, msgtype: str, stamp_ns: int, message: Mapping[str, Any] | Any) -> None:
        """Write a message: nested mappings, or a message object of the typestore."""
        try:
            if isinstance(message, Mapping):
                message = make_message(msgtype, message)
            data = serialized(msgtype, message)
        except KeyError:
            raise BagError(str(self.folder), f'{topic}: unknown message type {msgtype!r}') from None
        except (ValueError, TypeError, AttributeError, AssertionError, struct.error) as error:
            raise BagError(str(self.folder), f'{topic}: no {msgtype}: {error}') from error
        self.write_cdr(topic, msgtype, stamp_ns, data)

    def write_cdr(self, topic: str, msgtype: str, stamp_ns: int, data: bytes, qos: Callable[[], str] = offered_qos
                  ) -> None:
        """Write a message that is serialized already; ``qos``: what its publishers offer, asked once of each topic."""
        if not self._open:
            raise BagError(str(self.folder), 'is closed')
        if not 0 <= stamp_ns < 1 << 63:
            raise BagError(str(self.folder), f'{topic}: stamp {stamp_ns} ns is not from 0 to 2^63')
        self._unseen += len(data)
        if self._unseen > LOOK_BYTES or time.monotonic() - self._looked > LOOK_SECONDS:
            self.check_room()
        try:
            info = self._contents.topics.get(topic) or self._add_topic(topic, msgtype, qos())
            if info.msgtype != msgtype:
                raise BagError(str(self.folder), f'{topic} holds {info.msgtype}, not {msgtype}')
            self._storage.write(info, int(stamp_ns), data)
        except (OSError, sqlite3.Error) as error:
            self._open = False
            self._storage.abandon()
            raise DiskError(str(self.folder), f'cannot be written: {error}: it ends before the last messages, without '
                            'an index and metadata.yaml', self.count) from error
        info.count += 1
        contents = self._contents
        contents.first_ns = stamp_ns if contents.first_ns is None else min(contents.first_ns, stamp_ns)
        contents.last_ns = max(contents.last_ns, stamp_ns)
        if self._storage.failure is not None:
            self._end(f'cannot be written any more: {self._storage.failure}')

    def _end(self, reason: str) -> NoReturn:
        """Complete the bag and say why."""
        try:
            self.close()
        except BagError as error:
            raise DiskError(str(self.folder), f'{reason}; {error.reason}', self.count) from error
        raise DiskError(str(self.folder), f'{reason}: it is closed, with {self.count} messages', self.count)

    def _add_topic(self, topic: str, msgtype: str, qos: str) -> TopicInfo:
        name = self.topics.absolute(topic, self.namespace)
        try:
            info = TopicInfo(name, msgtype, type_hash(msgtype), len(self._contents.topics) + 1, qos)
        except KeyError:
            raise BagError(str(self.folder), f'{topic}: unknown message type {msgtype!r}') from None
        if any(other.name == name for other in self._contents.topics.values()):
            raise BagError(str(self.folder), f'{name} was written under another name')
        self._storage.add_topic(info)
        self._contents.topics[topic] = info
        return info

    # Topics of the crane graph

    def write_samples(self, stamp_ns: int, samples: Mapping[str, float], commands: Mapping[str, float] = {}) -> None:
        """Samples of one instant by channel, SI (``bags.channels``); nothing is written of those of an unknown kind."""
        values: dict[str, dict[str, float]] = {kind: {} for kind in UNITS}
        imus: dict[str, dict[str, dict[str, float]]] = {}
        try:
            for name, value in samples.items():
                channel = parse_channel(name)
                if channel.axis:
                    axes = imus.setdefault(channel.name, {}).setdefault(channel.kind, {})
                    if channel.axis in axes:
                        raise ValueError(f'{name} is a second value of axis {channel.axis}')
                    axes[channel.axis] = value
                else:
                    values[channel.kind][channel.name] = value
            values['command'] = {parse_channel(name, COMMANDS).name: value for name, value in commands.items()}
        except ValueError as error:
            raise BagError(str(self.folder), str(error)) from error
        for volume, value in values['pressure'].items():
            self.write_pressure(stamp_ns, volume, value)
        if values['position'] or values['velocity'] or values['effort']:
            self.write_position(stamp_ns, values['position'], values['velocity'], values['effort'])
        for sensor, fields in imus.items():
            self.write_imu(stamp_ns, sensor, **fields)
        if values['command']:
            self.write_command(stamp_ns, values['command'])

    def write_position(self, stamp_ns: int, position: Mapping[str, float], velocity: Mapping[str, float] = {},
                       effort: Mapping[str, float] = {}) -> None:
        """Piston positions from closed, m, or angles, rad, their rates, and efforts of drives, N m, N or A, by name;
        NaN where a name has only one."""
        if not velocity and not effort:
            self._write_sensor(self.topics.position, stamp_ns, tuple(position), position.values())
            return
        names = list(dict.fromkeys([*position, *velocity, *effort]))
        fields = {'position': position, 'velocity': velocity, 'effort': effort}
        self.write(self.topics.position, JOINT_STATE, stamp_ns, {
            'header': self._header(stamp_ns), 'name': names,
            **{field: [values.get(name, math.nan) for name in names] if values else []
               for field, values in fields.items()}})

    def write_imu(self, stamp_ns: int, sensor: str, gyro: Mapping[str, float] | None = None,
                  accelerometer: Mapping[str, float] | None = None) -> None:
        """Angular velocity, rad/s, and specific force, m/s^2, by axis 'x', 'y', 'z'; NaN where an axis is left out.

        What is None is not measured: its covariance begins with -1, as that of the orientation.
        """
        message: dict[str, Any] = {'header': self._header(stamp_ns), 'orientation_covariance': NOT_THERE}
        for kind, given in (('gyro', gyro), ('accelerometer', accelerometer)):
            field = IMU_FIELDS[kind]
            message[field] = {'x': math.nan, 'y': math.nan, 'z': math.nan, **(given or {})}
            message[f'{field}_covariance'] = _UNKNOWN if given else NOT_THERE
        self.write(f'{self.topics.imu}/{sensor}', IMU, stamp_ns, message)

    def write_pressure(self, stamp_ns: int, volume: str, pressure: float) -> None:
        """Pressure of a volume, Pa."""
        self._write_sensor(f'{self.topics.pressure}/{volume}', stamp_ns, None, (pressure,))

    def write_command(self, stamp_ns: int, command: Mapping[str, float]) -> None:
        """Commands, V, by valve."""
        self._write_sensor(self.topics.command, stamp_ns, tuple(command), command.values())

    def write_record(self, record: Segment | StateEstimate | PayloadEstimate, topic: str = '') -> None:
        """A record of the pipeline, on its topic."""
        topic = topic or getattr(self.topics, RECORDS[type(record)][0])
        try:
            msgtype, message = record_message(record, self.frame, self.machine)
        except (ValueError, TypeError) as error:
            raise BagError(str(self.folder), f'{topic}: {error}') from error
        self.write(topic, msgtype, record.stamp_ns, message)

    def write_truth(self, stamp_ns: int, cylinders: Iterable[str], position: Iterable[float],
                    velocity: Iterable[float], acceleration: Iterable[float], volumes: Iterable[str],
                    pressure: Iterable[float], payload: float) -> None:
        """True state of a simulated machine: m, m/s, m/s^2, Pa, kg."""
        self.write(self.topics.truth, TRUTH, stamp_ns, {
            'header': self._header(stamp_ns), 'cylinders': cylinders, 'position': position, 'velocity': velocity,
            'acceleration': acceleration, 'volumes': volumes, 'pressure': pressure, 'payload': payload})

    def _write_sensor(self, topic: str, stamp_ns: int, names: tuple[str, ...] | None, values: Iterable[float]) -> None:
        """Write a JointState, or without names a FluidPressure."""
        template = self._templates.get((topic, names))
        try:
            if template is None:
                template = self._templates[topic, names] = SensorTemplate(self.frame, names)
            data = template.fill(stamp_ns, values)
        except (ValueError, TypeError, AttributeError, struct.error) as error:
            raise BagError(str(self.folder), f'{topic} at {stamp_ns} ns: {error}') from error
        self.write_cdr(topic, template.msgtype, stamp_ns, data)

    def _header(self, stamp_ns: int) -> Any:
        try:
            return header(stamp_ns, self.frame)
        except ValueError as error:
            raise BagError(str(self.folder), str(error)) from error


def _too_little(free: int, least: int) -> str:
    return f'{megabytes(free)} of the disk are free, {megabytes(least)} must stay free'


def write_frame(writer: BagWriter, machine: Machine, frame: SensorFrame) -> None:
    """One instant of a simulated machine: samples, commands, and the truth in the independent coordinates."""
    writer.write_samples(frame.stamp_ns, frame.samples, frame.commands)
    writer.write_truth(frame.stamp_ns, machine.coordinates, frame.position, frame.velocity, frame.acceleration,
                       machine.volumes, frame.pressure, frame.payload)


@contextmanager
def written_outputs(machine: Machine, folder: Path | None) -> Iterator[Callable[[Output], None] | None]:
    """Gives what writes the records of an Output into a bag, which is made for the first one; None without a folder."""
    with ExitStack() as stack:
        writers: list[BagWriter] = []

        def take(output: Output) -> None:
            if not writers:
                assert folder is not None
                writers.append(stack.enter_context(BagWriter(folder, frame=machine.name,
                                                             machine=fingerprint(machine.description))))
            for record in (output.segment, output.state, output.payload):
                writers[0].write_record(record)
            for name, payload in output.payload.payloads.items():
                writers[0].write_record(payload, f'payloads/{name}')
        yield take if folder is not None else None
