# SPDX-License-Identifier: Apache-2.0
"""States and payloads as the standard messages of ROS: TF, the load's pose, mass and weight, and what it asks of the
machine."""

from __future__ import annotations

import math
import time

import numpy as np
from geometry_msgs.msg import PoseWithCovarianceStamped, WrenchStamped
from rclpy.publisher import Publisher
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64

from ..bags.topics import TOOL_FORCE
from ..description.basics import GROUND
from ..errors import DescriptionError, MbseError, SettingError
from ..machine import Machine
from ..machine.frames import LOAD, LoadPose, MachineFrames, Transform
from ..machine.valve_commands import ValveFeedForward
from ..msg import HydraulicState, ToolForce
from ..msg import PayloadEstimate as PayloadMessage
from ..payload.tool_force import has_contact
from ..streams.records import ObserverStatus, PayloadEstimate, PayloadStatus, StateEstimate
from .base.diagnostics import status_text
from .base.lifecycle import ManagedNode
from .base.middleware import LATEST, OUTPUT, TF
from .base.node_settings import OutputsNodeSettings, OutputsSettings
from .base.record_node import received
from .base.timing import Pace, Pairs
from .messages.load_effects import LoadEffects, Pose
from .messages.wire import (
    TF_MESSAGE,
    message_class,
    packed_joints,
    packed_number,
    packed_pose,
    packed_transforms,
    packed_weight,
    packed_wrench,
    stamp_of,
    unpacked,
)

# The mass stays that of the load while it is only not measured for a moment; else it is not reliable.
RELIABLE = (PayloadStatus.UPDATING, PayloadStatus.TOO_SLOW, PayloadStatus.NOT_OBSERVABLE, PayloadStatus.OUTSIDE_STROKE,
            PayloadStatus.ACCELERATING)
PLACE = 0       # streams of what makes a weight, and of what the load asks of the machine
MASS = 1
SELDOM = 1.0    # Hz, where the diagnostics alone are read
OLD = 0.5       # s, after which pressures say nothing of a command
OVERDUE = 2_000_000_000     # ns, after which an estimate of the mass that does not come is missing


class FrameNames:
    """Names by what they are of; ``machine`` and ``load`` are two of them.

    Raises SettingError for a name that a frame of the machine has already, or that TF does not take.
    """

    def __init__(self, machine: Machine, settings: OutputsNodeSettings) -> None:
        self._prefix, self.all = settings.frame_prefix, settings.publish_tf == 'all'
        bodies, given = list(machine.description.bodies), settings
        for key, taken in (('frame_id', bodies), ('payload_frame', [*bodies, given.frame_id])):
            name = getattr(given, key)
            if not name or name in taken or name != name.strip() or name.startswith('/'):
                raise SettingError(key, name, 'a name without a leading / that no other frame has, not '
                                   + ', '.join(taken))
        if self._prefix.startswith('/'):
            raise SettingError('frame_prefix', self._prefix, 'no leading /, as TF wants it')
        self._names = {GROUND: given.frame_id, LOAD: given.payload_frame}
        self.machine, self.load = self(GROUND), self(LOAD)

    def __call__(self, name: str) -> str:
        """Full name of the frame of a body, of 'ground', or of the load, ''."""
        return self._prefix + self._names.get(name, name)


def tree_of(frames: MachineFrames, names: FrameNames, q: np.ndarray, load: LoadPose | None) -> list[Transform]:
    """Transforms of all bodies and the load, or, where others publish the bodies, of the load alone, in the machine's
    frame."""
    found = [*frames.transforms(q)] if names.all else []
    if load is not None:
        found.append(frames.load_transform(load, q, None if names.all else GROUND))
    return [item._replace(parent=names(item.parent), child=names(item.child)) for item in found]


class OutputsNode(ManagedNode[Machine]):
    """Publishes what is due and has a reader; the rest is neither unpacked nor computed."""

    executable = 'outputs_node'
    settings: OutputsNodeSettings
    tuning: OutputsSettings

    def build(self, machine: Machine) -> None:
        """The outputs, and the functions behind them."""
        self._names = FrameNames(machine, self.settings)
        self._frames = MachineFrames(machine)
        self._mass = self.output(Float64, 'payload/mass')
        self._weight = self.output(WrenchStamped, 'payload/wrench')
        self._force = self.output(WrenchStamped, 'tool_force') if has_contact(machine) else None
        self._pose = self.output(PoseWithCovarianceStamped, 'payload/pose')
        self._tf = self._broadcaster()
        try:
            self._valves: ValveFeedForward | None = ValveFeedForward(machine)
        except DescriptionError:        # unknown valves
            self._valves = None
        self._commands = None if self._valves is None else self.output(JointState, 'valve_feed_forward')
        self._effects = LoadEffects(machine, self.output, self.executable, self._names.machine)

    def connect(self) -> None:
        """Take states and payloads from here on."""
        self._pace = Pace()
        self._q: np.ndarray | None = None       # the last solution, where the next one begins
        self._pairs = Pairs()                   # of a load's pose and its mass
        self._matched = Pairs()                 # of the machine's and the estimate of its load
        self._pushed: tuple[float, int, dict[str, float]] | None = None      # when, stamp, entries of a state
        self._heard: int | None = None          # stamp of the newest payload, before it of the first state
        self.input(HydraulicState, 'state', self.on_state, OUTPUT, raw=True)
        self.input(PayloadMessage, 'payload', self.on_payload, OUTPUT, raw=True)
        if self._force is not None:
            self.input(ToolForce, 'tool_force/estimate', self.on_force, OUTPUT, raw=True)
        if self._valves is not None:
            self.input(JointState, 'wanted_speeds', self.on_wanted, LATEST)

    def on_wanted(self, message: JointState) -> None:
        """Commands of the valves for piston speeds that a controller wants; a cylinder that it does not name rests."""
        valves, pushed = self._valves, self._pushed
        if valves is None or self._commands is None or not _any(self._commands):
            return
        if pushed is None or time.monotonic() - pushed[0] > OLD:
            self.warnings('valves', 'no valve_feed_forward: no state of the last half second')
            return
        wanted = dict(zip(message.name, message.velocity))
        strange = [name for name in message.name if name not in valves.cylinders]
        if strange or len(message.velocity) != len(message.name):
            self.warnings('valves', f'wanted_speeds dropped: got {list(message.name)} with {len(message.velocity)} '
                                    f'velocities, expected a velocity for each of {", ".join(valves.cylinders)}')
            return
        _, stamp, entries = pushed
        try:
            found = valves(np.array([wanted.get(name, 0.0) for name in valves.cylinders]),
                           np.array([entries[f'pressure/{name}'] for name in self.machine.volumes]),
                           supplies={name: entries[f'supply/{name}'] for name in self.machine.measured_supplies})
        except MbseError as error:
            self.warnings('valves', f'no valve_feed_forward: {error}')
            return
        self._commands.publish(packed_joints(stamp, self._names.machine, valves.valves, found.commands))

    def on_state(self, cdr: bytes) -> None:
        """Where bodies and load are."""
        try:
            stamp = stamp_of(cdr)
            if not self._pace.is_due('state', stamp, self._rate):
                return
            state = received(StateEstimate, cdr, self.machine, self.fingerprint)
            self._pace.done('state', stamp)
            if state.status is not ObserverStatus.LOST:
                self._place(state)
            else:
                self._effects.unknown(stamp, f'the state, {status_text(state.status, state.reason)}')
        except MbseError as error:
            self._q = None      # the next one from the file's start: the branch may be a wrong one
            self.warnings('state', f'state dropped: {error}')

    def on_payload(self, cdr: bytes) -> None:
        """What the load weighs."""
        try:
            stamp = stamp_of(cdr)
            if not self._payload_is_read:
                return
            payload = received(PayloadEstimate, cdr, self.machine, self.fingerprint)
        except MbseError as error:
            self.warnings('payload', f'payload dropped: {error}')
            return
        self._heard = stamp
        if payload.status not in RELIABLE or not math.isfinite(payload.mass):
            self._effects.unknown(stamp, f'the mass, {status_text(payload.status, payload.reason)}')
            return
        if self._pace.is_due('mass', stamp, self.tuning.rate) and _any(self._mass):
            self._pace.done('mass', stamp)
            self._mass.publish(packed_number(payload.mass))
        self._weigh(MASS, stamp, payload.mass)
        self._ask(MASS, stamp, payload)

    def on_force(self, cdr: bytes) -> None:
        """What pushes at the tool; an axis that nothing shows is NaN."""
        try:
            stamp = stamp_of(cdr)
            if not _any(self._force) or not self._pace.is_due('force', stamp, self.tuning.rate):
                return
            message = unpacked('tool_force/estimate', TOOL_FORCE, cdr)
        except MbseError as error:
            self.warnings('force', f'tool_force dropped: {error}')
            return
        if self._force is not None and message.machine == self.fingerprint and message.body:
            self._pace.done('force', stamp)
            self._force.publish(packed_wrench(stamp, self._names(message.body), message.point, message.force))

    @property
    def _payload_is_read(self) -> bool:
        return _any(self._mass, self._weight, self._effects.watched, *self._effects.publishers)

    @property
    def _rate(self) -> float:
        """States per second that are wanted, 0 where nobody reads what comes of them."""
        if _any(self._tf, self._pose, self._weight, self._commands, *self._effects.publishers):
            return self.tuning.rate
        return SELDOM if _any(self._effects.watched) else 0.0

    def _place(self, state: StateEstimate) -> None:
        """Publish TF and the load's pose; raises MbseError where the machine cannot be so."""
        machine, stamp, entries = self.machine, state.stamp_ns, dict(zip(state.names, state.mean[-1].tolist()))
        base = {axis: entries[f'inclination/{axis}'] for axis in machine.inclinations}
        self._pushed = time.monotonic(), stamp, entries
        swing = [f'swing/{axis}' for axis in machine.swings]
        swung = np.array([entries.get(name, 0.0) for name in swing])
        z = state.mean[-1, :len(machine.coordinates)]
        if not np.isfinite([*z, *base.values(), *swung]).all():
            return
        q = self._q = machine.position(z, None if state.restart else self._q)
        zd, zdd = (np.array([entries[f'{kind}/{name}'] for name in machine.coordinates])
                   for kind in ('velocity', 'acceleration'))
        self._ask(PLACE, stamp, Pose(q, zd, zdd, base))
        load = None
        if self._frames.load_parent is not None:
            load = self._frames.load(q, base, swung)
            spread = _spread(state, machine, swing)
            if _any(self._pose) and np.isfinite(spread).all():
                self._pose.publish(packed_pose(stamp, self._names.machine, load, spread))
            self._weigh(PLACE, stamp, load)
        if self._tf is not None and _any(self._tf):
            self._tf.publish(packed_transforms(stamp, tree_of(self._frames, self._names, q, load)))

    def _weigh(self, stream: int, stamp: int, item: LoadPose | float) -> None:
        """Publish the weight once attitude and mass of one instant are there."""
        pair = self._pairs.take(stream, stamp, item) if _any(self._weight) else None
        if pair is not None:
            self._weight.publish(packed_weight(stamp, self._names.load, *pair))

    def _ask(self, stream: int, stamp: int, item: Pose | PayloadEstimate) -> None:
        """Publish what the load asks of the machine once pose and mass of one instant are there."""
        if self.machine.description.payload is None and isinstance(item, Pose):
            self._effects.known(stamp, item, None, self.tuning)
            return
        pair = self._matched.take(stream, stamp, item)
        if pair is not None:
            self._effects.known(stamp, *pair, self.tuning)
        elif self._heard is None:
            self._heard = stamp
        elif abs(stamp - self._heard) > OVERDUE:
            self._effects.unknown(stamp, 'the mass, no estimate of it comes')

    def _broadcaster(self) -> Publisher | None:
        """Publisher of /tf; None where it is not wanted, or not possible, which a line in the log says."""
        if self.settings.publish_tf == 'none':
            return None
        try:
            return self.output(message_class(TF_MESSAGE), '/tf', TF)
        except MbseError as error:
            self.get_logger().warning(f'no TF: {error} (package tf2_msgs); everything else continues')
            return None


def _any(*publishers: Publisher | None) -> bool:
    """Whether one of them has a reader."""
    return any(publisher is not None and publisher.get_subscription_count() > 0 for publisher in publishers)


def _spread(state: StateEstimate, machine: Machine, swing: list[str]) -> np.ndarray:
    """Covariance of the independent coordinates and of the swing; an entry that the state lacks has none."""
    names = [*(f'position/{name}' for name in machine.coordinates), *swing]
    places, known = [state.names.index(n) if n in state.names else 0 for n in names], [n in state.names for n in names]
    return state.covariance[np.ix_(places, places)] * np.outer(known, known)


main = OutputsNode.main

if __name__ == '__main__':
    main()
