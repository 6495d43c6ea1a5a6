# SPDX-License-Identifier: Apache-2.0
"""Changes of a status, told once they have lasted."""

from __future__ import annotations

from enum import IntEnum


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
