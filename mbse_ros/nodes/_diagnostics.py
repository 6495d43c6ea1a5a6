# SPDX-License-Identifier: Apache-2.0
"""Diagnostics of a node: at each change of the status, else once in a while by the stamps."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import IntEnum

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from rclpy.publisher import Publisher

from ..streams.records import ObserverStatus
from ._messages import header

PERIOD_NS = 1_000_000_000
OK, WARN, ERROR = DiagnosticStatus.OK, DiagnosticStatus.WARN, DiagnosticStatus.ERROR
LEVELS = {ObserverStatus.OK: OK, ObserverStatus.STARTING: OK, ObserverStatus.COASTING: WARN,
          ObserverStatus.LOST: ERROR}
Values = Mapping[str, object]


def diagnostic_array(stamp_ns: int, level: bytes, node: str, hardware: str, message: str,
                     values: Values) -> DiagnosticArray:
    """The status of one node about one machine."""
    status = DiagnosticStatus(level=level, name=f'{node}: {hardware}', hardware_id=hardware, message=message,
                              values=[KeyValue(key=key, value=str(value)) for key, value in values.items()])
    return DiagnosticArray(header=header(stamp_ns, ''), status=[status])


def status_text(status: IntEnum, reason: str) -> str:
    """A status and why."""
    return f'{status.name}: {reason}' if reason else status.name


class Diagnostics:
    """Publishes the status of ``node`` about ``hardware``, a machine's name."""

    def __init__(self, publisher: Publisher, node: str, hardware: str) -> None:
        self._publisher, self._node, self._hardware = publisher, node, hardware
        self._last: int | None = None

    def __call__(self, stamp_ns: int, level: bytes, text: str, values: Callable[[], Values], changed: bool) -> None:
        """Publish where the status has ``changed`` or it is due; ``values`` is asked only then."""
        if not changed and self._last is not None and abs(stamp_ns - self._last) < PERIOD_NS:
            return
        self._last = stamp_ns
        self._publisher.publish(diagnostic_array(stamp_ns, level, self._node, self._hardware, text, values()))
