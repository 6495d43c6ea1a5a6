# SPDX-License-Identifier: Apache-2.0
"""Records to messages and back: pure functions, SI on both sides, each value cast to the type of its field.

A wrong scalar type (an int or a numpy scalar in a float64) passes rclpy in silence and ends the process at publish().
Arrays travel as array('d', bytes), 20 times cheaper than a list of floats.
"""

from __future__ import annotations

import struct
from array import array
from collections.abc import Iterable
from math import prod

import numpy as np
from builtin_interfaces.msg import Time
from sensor_msgs.msg import FluidPressure, JointState
from std_msgs.msg import Header

from mbse_ros.msg import HydraulicState, MachineTruth, SensorSegment
from mbse_ros.msg import PayloadEstimate as PayloadMessage

from ..errors import SampleError
from ..machine import Machine
from ..simulation.crane import SensorFrame
from ..streams.records import ObserverStatus, PayloadEstimate, PayloadStatus, Segment, StateEstimate

SECOND = 1_000_000_000


def to_ns(stamp: Time) -> int:
    """Nanoseconds of a message's stamp."""
    return stamp.sec * SECOND + stamp.nanosec


def stamp_of(cdr: bytes) -> int:
    """Stamp, ns, of a serialized message that begins with a header, without unpacking the rest."""
    sec, nanosec = struct.unpack_from('<iI' if cdr[1] & 1 else '>iI', cdr, 4)
    return sec * SECOND + nanosec


def to_time(stamp_ns: int) -> Time:
    """Message stamp of nanoseconds."""
    sec, nanosec = divmod(int(stamp_ns), SECOND)
    return Time(sec=sec, nanosec=nanosec)


def doubles(values: np.ndarray | Iterable[float]) -> array:
    """float64[] field, row by row."""
    return array('d', np.asarray(values, dtype=np.float64).tobytes())


def header(stamp_ns: int, frame: str) -> Header:
    """Header with a stamp in nanoseconds."""
    return Header(stamp=to_time(stamp_ns), frame_id=frame)


def segment_to_message(segment: Segment, frame: str) -> SensorSegment:
    """SensorSegment of a segment."""
    message = SensorSegment(header=header(segment.stamp_ns, frame))
    message.sequence, message.start_ns = int(segment.sequence), int(segment.start_ns)
    message.step_ns, message.steps = int(segment.step_ns), len(segment.values)
    message.restart = bool(segment.restart)
    message.channels, message.commands = list(segment.channels), list(segment.commands)
    message.values, message.repeats = doubles(segment.values), doubles(segment.repeats)
    message.command_values = doubles(segment.command_values)
    return message


def segment_from_message(message: SensorSegment) -> Segment:
    """Segment of a message; raises SampleError where the lengths of its arrays disagree."""
    stamp, n = to_ns(message.header.stamp), message.steps
    if n < 1 or message.step_ns < 1:
        raise SampleError('segment', stamp, (n, message.step_ns), 'at least one step of at least 1 ns')
    channels, commands = tuple(message.channels), tuple(message.commands)
    return Segment(
        message.sequence, message.start_ns, message.step_ns, message.restart, channels,
        _shaped('segment.values', stamp, message.values, n, len(channels)),
        _shaped('segment.repeats', stamp, message.repeats, len(channels)), commands,
        _shaped('segment.command_values', stamp, message.command_values, n, len(commands)))


def state_to_message(state: StateEstimate, frame: str) -> HydraulicState:
    """HydraulicState of a state estimate."""
    message = HydraulicState(header=header(state.stamp_ns, frame))
    message.sequence, message.step_ns, message.steps = int(state.sequence), int(state.step_ns), len(state.mean)
    message.restart = bool(state.restart)
    message.names, message.channels = list(state.names), list(state.channels)
    message.mean, message.covariance = doubles(state.mean), doubles(state.covariance)
    message.measured, message.innovation = doubles(state.measured), doubles(state.innovation)
    message.innovation_stddev = doubles(state.innovation_stddev)
    message.nis, message.nis_dof = float(state.nis), int(state.nis_dof)
    message.status, message.reason = int(state.status), str(state.reason)
    return message


def state_from_message(message: HydraulicState) -> StateEstimate:
    """State estimate of a message; raises SampleError where the lengths of its arrays disagree."""
    stamp, names, channels = to_ns(message.header.stamp), tuple(message.names), tuple(message.channels)
    if message.steps < 1:
        raise SampleError('state.steps', stamp, message.steps, 'at least one step')
    nx, ny = len(names), len(channels)
    return StateEstimate(
        message.sequence, stamp, message.step_ns, message.restart, names,
        _shaped('state.mean', stamp, message.mean, message.steps, nx),
        _shaped('state.covariance', stamp, message.covariance, nx, nx), channels,
        _shaped('state.measured', stamp, message.measured, ny),
        _shaped('state.innovation', stamp, message.innovation, ny),
        _shaped('state.innovation_stddev', stamp, message.innovation_stddev, ny),
        message.nis, message.nis_dof, _status(ObserverStatus, 'state.status', stamp, message.status), message.reason)


def payload_to_message(payload: PayloadEstimate, frame: str) -> PayloadMessage:
    """PayloadEstimate message of an estimate."""
    message = PayloadMessage(header=header(payload.stamp_ns, frame))
    message.sequence, message.samples = int(payload.sequence), int(payload.samples)
    for name in ('mass', 'stddev', 'lower', 'upper', 'raw', 'low_passed'):
        setattr(message, name, float(getattr(payload, name)))
    message.status, message.reason = int(payload.status), str(payload.reason)
    return message


def payload_from_message(message: PayloadMessage) -> PayloadEstimate:
    """Payload estimate of a message; raises SampleError for an unknown status."""
    stamp = to_ns(message.header.stamp)
    return PayloadEstimate(
        message.sequence, stamp, message.mass, message.stddev, message.lower, message.upper, message.raw,
        message.low_passed, message.samples, _status(PayloadStatus, 'payload.status', stamp, message.status),
        message.reason)


def joint_state(stamp_ns: int, frame: str, names: Iterable[str], position: Iterable[float],
                velocity: Iterable[float] = (), effort: Iterable[float] = ()) -> JointState:
    """JointState with the fields that are given."""
    return JointState(header=header(stamp_ns, frame), name=list(names), position=doubles(position),
                      velocity=doubles(velocity), effort=doubles(effort))


def fluid_pressure(stamp_ns: int, frame: str, pressure: float) -> FluidPressure:
    """FluidPressure, Pa."""
    return FluidPressure(header=header(stamp_ns, frame), fluid_pressure=float(pressure))


def truth_message(frame: SensorFrame, stamp_ns: int, machine: Machine) -> MachineTruth:
    """MachineTruth of a simulated machine's frame."""
    return MachineTruth(
        header=header(stamp_ns, machine.name), cylinders=list(machine.coordinates), position=doubles(frame.position),
        velocity=doubles(frame.velocity), acceleration=doubles(frame.acceleration), volumes=list(machine.volumes),
        pressure=doubles(frame.pressure), payload=float(frame.payload))


def _shaped(name: str, stamp_ns: int, values: array, *shape: int) -> np.ndarray:
    """Array of a float64[] field in its shape, or SampleError."""
    flat = np.array(values, dtype=np.float64)
    if flat.size != prod(shape):
        raise SampleError(name, stamp_ns, flat.size, f'{" x ".join(map(str, shape))} values')
    return flat.reshape(shape)


def _status(kind: type, name: str, stamp_ns: int, value: int):
    """The status word of a number, or SampleError."""
    try:
        return kind(value)
    except ValueError:
        raise SampleError(name, stamp_ns, value, ', '.join(f'{s.value} {s.name}' for s in kind)) from None
