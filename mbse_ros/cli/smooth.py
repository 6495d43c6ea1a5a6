# SPDX-License-Identifier: Apache-2.0
"""``mbse smooth``: of a machine, or of a mechanism."""

from __future__ import annotations

import math

from ..errors import SettingError
from .arguments import machine_name
from .logs import LogRequest, hand_over


def smooth_command(machine: str | None, mechanism: str | None, valve: str | None, request: LogRequest) -> None:
    """Smooth a log of a mechanism, or of a machine (default)."""
    if request.lag is not None and not (math.isfinite(request.lag) and request.lag > 0):
        raise SettingError('--lag', request.lag, 'a positive number, s')
    if machine is not None and mechanism is not None:
        raise SettingError('--machine', machine, 'a machine or a mechanism, not both')
    request.check_outputs()
    if mechanism is not None:
        from .mechanisms.smooth_linkage import smooth_linkage
        hand_over(smooth_linkage(mechanism, request), request)
    else:
        from .machines.smooth_machine import smooth_machine
        machine = machine_name(machine, [request.bag], request.namespace)
        hand_over(smooth_machine(machine, valve, request), request)
