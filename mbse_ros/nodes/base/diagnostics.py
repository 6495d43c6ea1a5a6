# SPDX-License-Identifier: Apache-2.0
"""The status of a node: as diagnostics at each change, else once in a while by the stamps; its changes in the log."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import IntEnum
from typing import NamedTuple

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from rclpy.impl.rcutils_logger import RcutilsLogger
from rclpy.publisher import Publisher

from ...streams.records import LinkageEstimate, ObserverStatus, PayloadEstimate, StateEstimate
from ..messages.wire import header

OK, WARN, ERROR = DiagnosticStatus.OK, DiagnosticStatus.WARN, DiagnosticStatus.ERROR
LEVELS: dict[IntEnum, bytes] = {ObserverStatus.OK: OK, ObserverStatus.STARTING: OK, ObserverStatus.COASTING: WARN,
                                ObserverStatus.LOST: ERROR}
Values = Mapping[str, object]


class Report(NamedTuple):
    """A status that is not an estimate's."""

    stamp_ns: int
    status: IntEnum
    reason: str


Estimate = LinkageEstimate | PayloadEstimate | StateEstimate | Report


def diagnostic_array(stamp_ns: int, level: bytes, node: str, hardware: str, message: str,
                     values: Values) -> DiagnosticArray:
    """The status of one node about one machine."""
    status = DiagnosticStatus(level=level, name=f'{node}: {hardware}', hardware_id=hardware, message=message,
                              values=[KeyValue(key=key, value=str(value)) for key, value in values.items()])
    return DiagnosticArray(header=header(stamp_ns, ''), status=[status])


def status_text(status: IntEnum, reason: str) -> str:
    """A status and why."""
    return f'{status.name}: {reason}' if reason else status.name


def log_status(logger: RcutilsLogger, estimate: Estimate) -> None:
    """A line about the status of an estimate, and why."""
    text = status_text(estimate.status, estimate.reason)
    if estimate.status <= ObserverStatus.STARTING:
        logger.info(text)
    else:       # a line of its own: rclpy refuses two severities from one
        logger.warning(text)


class StatusChange:
    """Finds the changes of a status; one seen less than ``patience`` times in a row is passed over."""

    def __init__(self, patience: int) -> None:
        self._patience, self._count = patience, 0
        self._reported: IntEnum | None = None
        self._new: IntEnum | None = None

    def __call__(self, status: IntEnum) -> bool:
        """Whether this status is a change to report now."""
        self._count = self._count + 1 if status == self._new else 1
        self._new = status
        if status == self._reported or self._count < self._patience:
            return False
        self._reported = status
        return True


class Diagnostics:
    """Publishes the status of ``node`` about ``hardware``, a machine's name, each ``period``, s of the stamps."""

    def __init__(self, publisher: Publisher, node: str, hardware: str, patience: int, period: float = 1.0) -> None:
        self._publisher, self._node, self._hardware = publisher, node, hardware
        self._changed, self._period_ns = StatusChange(patience), period * 1e9
        self._last: int | None = None

    def __call__(self, estimate: Estimate, level: bytes, values: Callable[[], Values]) -> bool:
        """Publish where the status has changed or it is due; returns whether it has changed. ``values`` is called only
        where it is published. See `StatusChange` for ``patience``."""
        changed, stamp_ns = self._changed(estimate.status), estimate.stamp_ns
        if changed or self._last is None or abs(stamp_ns - self._last) >= self._period_ns:
            self._last = stamp_ns
            self._publisher.publish(diagnostic_array(stamp_ns, level, self._node, self._hardware,
                                                     status_text(estimate.status, estimate.reason), values()))
        return changed
