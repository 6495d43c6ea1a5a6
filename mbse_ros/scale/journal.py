# SPDX-License-Identifier: Apache-2.0
"""Where records go: into memory, for a log; ``store`` has the one that survives a crash."""

from __future__ import annotations

from dataclasses import replace
from typing import Protocol

from .record import Record


class Journal(Protocol):
    """Records in the order in which they were added; none is ever changed."""

    def append(self, record: Record, after: int) -> list[Record]:
        """Add a record; a journal that is kept for good adds none whose key is there already.

        Returns all records behind number ``after``, those that others have added too; what it returns is kept. Raises
        RecordsError, with nothing added.
        """

    def read(self, after: int = 0) -> list[Record]:
        """All records behind a number; raises RecordsError."""


class MemoryJournal:
    """Records of one process, lost with it: a bag that is played again has its loads once more."""

    def __init__(self) -> None:
        self._records: list[Record] = []

    def append(self, record: Record, after: int) -> list[Record]:
        """See Journal."""
        self._records.append(replace(record, number=len(self._records) + 1))
        return self.read(after)

    def read(self, after: int = 0) -> list[Record]:
        """See Journal."""
        return self._records[after:]
