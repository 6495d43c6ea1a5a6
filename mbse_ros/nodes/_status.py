# SPDX-License-Identifier: Apache-2.0
"""Changes of a status, told once they have lasted."""

from __future__ import annotations

from enum import IntEnum

from rclpy.impl.rcutils_logger import RcutilsLogger

from ..streams.linkage.records import LinkageEstimate
from ..streams.records import ObserverStatus, StateEstimate
from ._diagnostics import status_text


class StatusChange:
    """Tells the changes of a status; one seen less than ``patience`` times in a row is passed over."""

    def __init__(self, patience: int) -> None:
        self._patience = patience
        self._told: IntEnum | None = None
        self._new: IntEnum | None = None
        self._count = 0

    def __call__(self, status: IntEnum) -> bool:
        """Whether this status is a change to be told now."""
        self._count = self._count + 1 if status == self._new else 1
        self._new = status
        if status == self._told or self._count < self._patience:
            return False
        self._told = status
        return True


def log_status(logger: RcutilsLogger, estimate: LinkageEstimate | StateEstimate) -> None:
    """A line about the status of an estimate, and why."""
    text = status_text(estimate.status, estimate.reason)
    if estimate.status <= ObserverStatus.STARTING:
        logger.info(text)
    else:       # a line of its own: rclpy refuses two severities from one
        logger.warning(text)
