# SPDX-License-Identifier: Apache-2.0
"""What users should know of the compiled functions of this process: nodes log it, nothing is raised for it."""

from __future__ import annotations

_REMARKS: dict[str, None] = {}      # in the order in which they came, each once


def remark(text: str) -> None:
    """Add a line."""
    _REMARKS[text] = None


def remarks() -> tuple[str, ...]:
    """All lines so far."""
    return tuple(_REMARKS)
