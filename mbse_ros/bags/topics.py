# SPDX-License-Identifier: Apache-2.0
"""Topics of the crane graph: one list for the writer and the reader of bags."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass

from ..errors import BagError

JOINT_STATE, FLUID_PRESSURE = 'sensor_msgs/msg/JointState', 'sensor_msgs/msg/FluidPressure'
IMU = 'sensor_msgs/msg/Imu'
SEGMENT, STATE = 'mbse_ros/msg/SensorSegment', 'mbse_ros/msg/HydraulicState'
PAYLOAD, TRUTH = 'mbse_ros/msg/PayloadEstimate', 'mbse_ros/msg/MachineTruth'
LINKAGE_STATE = 'mbse_ros/msg/LinkageState'


@dataclass(frozen=True)
class TopicMap:
    """Names of the topics, relative to the namespace or absolute ('/joint_states').

    ``pressure`` is followed by '/' and the name of the volume or supply, ``imu`` by '/' and the sensor's. ``namespace``
    None: the one the bag shows.
    """

    position: str = 'sensors/position'
    pressure: str = 'sensors/pressure'
    command: str = 'sensors/valve_command'
    imu: str = 'sensors/imu'
    segment: str = 'segment'
    state: str = 'state'
    joint_states: str = 'estimated/joint_states'
    payload: str = 'payload'
    truth: str = 'truth'
    namespace: str | None = None

    def absolute(self, name: str, namespace: str) -> str:
        """Full name of a topic."""
        return name if name.startswith('/') else f'{normalized(namespace)}/{name}'

    def find_namespace(self, topics: Mapping[str, str], path: str) -> str:
        """The namespace given, else the one under which the bag's topics (to their types) have these names.

        '' where none has; raises BagError where several do. IMUs, which other robots have too, only count in a bag
        without any of the other topics.
        """
        own = {topic: msgtype for topic, msgtype in topics.items() if msgtype != IMU}
        found = [{space for item in some.items() for space in self._spaces(*item)} for some in (own, topics)]
        return one_namespace(self.namespace, found[0] or found[1], path)

    def _spaces(self, topic: str, msgtype: str) -> Iterator[str]:
        """Namespaces in which the topic, by its name and type, is one of a machine's."""
        topic = topic.rpartition('/')[0] if msgtype in (FLUID_PRESSURE, IMU) else topic
        names = {JOINT_STATE: (self.position, self.command, self.joint_states), FLUID_PRESSURE: (self.pressure,),
                 IMU: (self.imu,), SEGMENT: (self.segment,), STATE: (self.state,), PAYLOAD: (self.payload,),
                 TRUTH: (self.truth,)}
        for name in names.get(msgtype, ()):
            if not name.startswith('/') and topic.endswith('/' + name):
                yield topic[:-len(name) - 1]


def one_namespace(given: str | None, found: Set[str], path: str) -> str:
    """The namespace given, else the one found, or ''; raises BagError for several."""
    if given is None and len(found) > 1:
        raise BagError(path, 'several machines, choose a namespace: ' + ', '.join(sorted(s or '/' for s in found)))
    return normalized(given) if given is not None else ''.join(found)


def normalized(namespace: str) -> str:
    """'/crane' of 'crane', '/crane/'; '' of '/'."""
    inner = namespace.strip('/')
    return '/' + inner if inner else ''
