# SPDX-License-Identifier: Apache-2.0
"""``mbse smooth``: of a machine, or of a mechanism."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ..errors import SettingError


@dataclass(frozen=True)
class SmoothRequest:
    """What was asked for: ``lag``, s, or None for the whole log at once; ``words`` are tuning, ``room.name=value``;
    ``sensors`` only of a mechanism."""

    bag: Path
    lag: float | None
    sensors: tuple[str, ...]
    step: float | None
    output: Path | None
    json_file: Path | None
    full: bool
    words: Sequence[str]
    namespace: str | None
    backend: str


def smooth_command(machine: str | None, mechanism: str | None, request: SmoothRequest) -> None:
    """Smooth a log of a mechanism, or of a machine (default)."""
    if request.lag is not None and not (math.isfinite(request.lag) and request.lag > 0):
        raise SettingError('--lag', request.lag, 'a positive number, s')
    if machine is not None and mechanism is not None:
        raise SettingError('--machine', machine, 'a machine or a mechanism, not both')
    if mechanism is not None:
        from .smooth_linkage import smooth_linkage
        smooth_linkage(mechanism, request)
        return
    from .smooth_machine import smooth_machine
    smooth_machine(machine or 'patu655_lift', request)
