# SPDX-License-Identifier: Apache-2.0
"""ROS 2 as `mbse doctor` finds it: installation, environment, one message over the network, a machine's graph.

No ROS is needed to import it; what may end a process is tried out in another one.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ...bags.channel_samples import topic_readers
from ...bags.topics import TopicMap
from ...doctor.checks import FAILS, OK, WARNING, Check
from ...doctor.mapped import map_checks
from ...doctor.traffic import Expected, traffic_checks
from ...errors import BagError, MbseError, shown
from ...machine import Machine
from ...sources.machine import left_over
from ...sources.map import SourceMap
from ..graphs.machine_graph import TOPICS

TESTED = ('humble', 'jazzy', 'kilted')
TESTED_RMW = 'rmw_fastrtps_cpp'
SAFE, LAST = 101, 232       # domains whose ports are below those that Linux gives away; whose ports exist
RANGES = ('SUBNET', 'LOCALHOST', 'SYSTEM_DEFAULT', 'OFF')
PROFILES = ('FASTRTPS_DEFAULT_PROFILES_FILE', 'FASTDDS_DEFAULT_PROFILES_FILE')
START = 60.0                # s that the probe may take, most of it on a busy machine for its imports
SOURCE = 'source a ROS 2, or use ./mbse of the source tree, which makes its own environment'
PARTS = ('rclpy', 'messages', 'ROS distribution', 'RMW', 'DDS loopback')
OPTIONAL = ('truth', 'markers', '/diagnostics')


def ros_checks(environment: Mapping[str, str] = os.environ) -> list[Check]:
    """Installation and environment, and one message over the network; without ROS: not installed."""
    if find_spec('rclpy') is None:
        return [Check(name, WARNING, 'not installed', f'only nodes need it: {SOURCE}') for name in PARTS]
    settings = [domain_check(environment), range_check(environment), *profile_checks(environment)]
    probed, said = probe(environment)
    if 'rmw' not in probed:
        return [Check('rclpy', FAILS, f'cannot be used: {said}', f'{SOURCE}; unset RMW_IMPLEMENTATION'), *settings]
    return [Check('rclpy', OK, 'can be imported'), messages_check(probed['messages']), distribution_check(environment),
            rmw_check(probed['rmw']), *settings, loopback_check(probed, said)]


def probe(environment: Mapping[str, str] = os.environ) -> tuple[dict[str, Any], str]:
    """What `probe` found, and the last that it said in an error; {} where it did not come so far."""
    try:
        done = subprocess.run([sys.executable, '-m', 'mbse_ros.nodes.checks.probe'], env=dict(environment),
                              timeout=START, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors='replace')
        output, said, status = done.stdout, done.stderr, done.returncode
    except subprocess.TimeoutExpired as error:
        output, said, status = (_text(error.stdout), f'no answer in {START:g} s', 1)
    lines = [line for line in output.splitlines() if line.startswith('{')]
    errors = [line for line in said.splitlines() if line.strip()] or [f'exit status {status}']
    return json.loads(lines[-1]) if lines else {}, shown(errors[-1].strip())


def messages_check(wrong: Mapping[str, str]) -> Check:
    """The generated messages of this package."""
    if wrong:
        return Check('messages', FAILS, '; '.join(wrong.values()),
                     'build the package: colcon build, or make environment in the source tree')
    return Check('messages', OK, 'those of mbse_ros are built from its files')


def distribution_check(environment: Mapping[str, str]) -> Check:
    """ROS_DISTRO."""
    found = environment.get('ROS_DISTRO', '')
    if found in TESTED:
        return Check('ROS distribution', OK, found)
    return Check('ROS distribution', WARNING, f'ROS_DISTRO={shown(found)}, not tested' if found else
                 'ROS_DISTRO is not set', f'one of {", ".join(TESTED)}: {SOURCE}')


def rmw_check(found: str) -> Check:
    """The middleware in use."""
    if found == TESTED_RMW:
        return Check('RMW', OK, found)
    return Check('RMW', WARNING, f'{found}, not tested', f'RMW_IMPLEMENTATION={TESTED_RMW} where something fails')


def domain_check(environment: Mapping[str, str]) -> Check:
    """ROS_DOMAIN_ID."""
    name, text = 'ROS_DOMAIN_ID', environment.get('ROS_DOMAIN_ID', '')
    number = int(text) if text.isascii() and text.isdigit() else -1 if text else 0
    if not 0 <= number <= LAST:
        return Check(name, FAILS, f'{shown(text)}, expected a whole number from 0 to {SAFE}', f'export {name}=0')
    if number > SAFE:
        return Check(name, WARNING, f'{text}: its ports may be taken by other programs', f'a number from 0 to {SAFE}')
    return Check(name, OK, text or '0, as it is not set')


def range_check(environment: Mapping[str, str]) -> Check:
    """ROS_AUTOMATIC_DISCOVERY_RANGE, and ROS_LOCALHOST_ONLY before Jazzy."""
    name, old = 'ROS_AUTOMATIC_DISCOVERY_RANGE', environment.get('ROS_LOCALHOST_ONLY', '')
    found, humble = environment.get(name, ''), environment.get('ROS_DISTRO') == 'humble'
    if humble:
        return Check('discovery', OK, f'ROS_LOCALHOST_ONLY={old or 0}')
    if found and found not in RANGES:
        return Check('discovery', FAILS, f'{name}={shown(found)}, expected one of {", ".join(RANGES)}',
                     f'export {name}=LOCALHOST for one computer, SUBNET for several')
    if found == 'OFF':
        return Check('discovery', FAILS, f'{name}=OFF: no node finds another',
                     f'export {name}=LOCALHOST for one computer, SUBNET for several')
    if old == '1':
        return Check('discovery', WARNING, f'ROS_LOCALHOST_ONLY=1 overrides {name}',
                     f'unset ROS_LOCALHOST_ONLY; export {name}=LOCALHOST')
    return Check('discovery', OK, f'{name}={found}' if found else 'SUBNET: other computers are found, too')


def alone(environment: Mapping[str, str] = os.environ) -> bool:
    """Whether only this computer can be in the graph."""
    return (environment.get('ROS_AUTOMATIC_DISCOVERY_RANGE') in ('LOCALHOST', 'OFF')
            or environment.get('ROS_LOCALHOST_ONLY') == '1' or find_spec('rclpy') is None)


def profile_checks(environment: Mapping[str, str]) -> list[Check]:
    """Profiles of Fast DDS that are named and not there: the middleware goes on without them and says nothing."""
    missing = {name: path for name in PROFILES if (path := environment.get(name)) and not Path(path).is_file()}
    return [Check('DDS profile', FAILS, f'{name}={shown(path)} is not a file', f'correct or unset {name}')
            for name, path in missing.items()]


def loopback_check(probed: Mapping[str, Any], said: str) -> Check:
    """One message from one participant to another on this computer."""
    mend = ('see ROS_DOMAIN_ID and discovery above; sudo ip link set lo multicast on; let the firewall pass UDP '
            '7400 to 65000; FASTDDS_BUILTIN_TRANSPORTS=UDPv4 where /dev/shm is full')
    if 'loopback' not in probed:
        return Check('DDS loopback', FAILS, f'the process that tried it died: {said}', mend)
    if probed['loopback'] is None:
        return Check('DDS loopback', FAILS, 'a message did not arrive within 5 s', mend)
    return Check('DDS loopback', OK, f'a message arrived after {probed["loopback"]:.2f} s')


def source_checks(machine: Machine, sources: SourceMap, namespace: str | None, seconds: float) -> list[Check]:
    """What a map finds in the graph, a line for each of its channels, and the rest of the machine's graph; rclpy must
    have passed `ros_checks`."""
    from .listening import listen_to_map
    try:
        found = map_checks(listen_to_map(sources, namespace, seconds), sources, machine)
    except MbseError as error:
        return [Check('map', FAILS, str(error), 'correct the map (docs/sources.md)')]
    left = left_over(sources, machine)
    rest = graph_checks(machine, namespace, seconds, left)
    return found + (rest if any(left) else [check for check in rest if check.name != 'topics'])


def graph_checks(machine: Machine, namespace: str | None, seconds: float,
                 own: tuple[tuple[str, ...], tuple[str, ...]] | None = None) -> list[Check]:
    """What is heard of the machine's graph; rclpy must have passed `ros_checks`. ``namespace`` None: the graph's;
    ``own``: channels and commands that come on this package's topics, None: all."""
    from .listening import listen  # here, because it needs ROS
    produced = {topic: kind for topic, kind in TOPICS.items() if topic not in OPTIONAL}
    channels, commands = own if own is not None else (tuple(machine.channels), tuple(machine.commands))
    readers = topic_readers(channels, commands, TopicMap(), lambda error: None)
    expected = Expected({topic: reader.msgtype for topic, reader in readers.items()}, produced, channels,
                        frozenset({TopicMap().command}))
    try:
        return traffic_checks(listen(machine, expected, namespace, seconds), expected)
    except BagError as error:
        return [Check('topics', FAILS, error.reason, 'choose one: namespace')]
    except MbseError as error:
        return [Check('topics', FAILS, str(error), SOURCE)]


def _text(output: bytes | str | None) -> str:
    return output.decode(errors='replace') if isinstance(output, bytes) else output or ''
