# SPDX-License-Identifier: Apache-2.0
"""ROS 2 tried out in a process of its own: `python -m mbse_ros.nodes.checks.probe` ends with a line of JSON on stdout.

A wrong RMW_IMPLEMENTATION or ROS_DOMAIN_ID ends a process without an exception, so `mbse doctor` starts this one.
"""

from __future__ import annotations

import json
import os
import sys
import time
from contextlib import closing

import rclpy
from std_msgs.msg import String

from ...bags.messages import typestore
from ...errors import MbseError
from ...resources import share_directory
from ..base.middleware import OUTPUT, Participant
from ..messages.wire import message_class

LIMIT = 5.0         # s
EMPTY = 'structure_needs_at_least_one_member'


def main() -> None:
    """Print what was found; what the child cannot survive comes last."""
    found: dict[str, object] = {'rmw': rclpy.get_rmw_implementation_identifier(), 'messages': messages()}
    print(json.dumps(found), flush=True)
    print(json.dumps({**found, 'loopback': loopback()}), flush=True)
    sys.stderr.flush()
    os._exit(0)     # as in _run: the end of the interpreter may hang in the middleware


def messages() -> dict[str, str]:
    """Generated messages of this package that cannot be used, and why: not installed, or built from other files."""
    found = {}
    for path in sorted((share_directory() / 'msg').glob('*.msg')):
        name = f'mbse_ros/msg/{path.stem}'
        try:
            built = list(message_class(name).get_fields_and_field_types())
        except MbseError as error:
            found[name] = str(error)
            continue
        # of a message of constants alone the generated class hides the member that IDL wants
        if built != [field for field, _ in typestore().fielddefs[name][1] if field != EMPTY]:
            found[name] = f'was built from another {path.name}'
    return found


def loopback() -> float | None:
    """Seconds until one message came from one participant of this process to another; None: not within ``LIMIT``, s.

    Two participants: inside one the middleware would hand it over without the network.
    """
    start, name = time.monotonic(), f'mbse_doctor_{os.getpid()}'
    heard: list[str] = []
    with closing(Participant(f'{name}_sender')) as sender, closing(Participant(f'{name}_reader')) as reader:
        publisher = sender.create_publisher(String, f'{name}/loopback', OUTPUT)
        reader.create_subscription(String, f'{name}/loopback', lambda message: heard.append(message.data), OUTPUT)
        sent = False
        while name not in heard and time.monotonic() - start < LIMIT:
            if not sent and publisher.get_subscription_count():
                publisher.publish(String(data=name))
                sent = True
            reader.step()
        return time.monotonic() - start if name in heard else None


if __name__ == '__main__':
    main()
