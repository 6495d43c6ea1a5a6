# SPDX-License-Identifier: Apache-2.0
"""The page in the cab of a calibration that goes on: which step is wanted, how far it is, what is wrong, and the grade
at its end."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from functools import cached_property

from ...calibration.guide import Guide, GuideState
from ...offline.calibration.calibration_result import Calibration
from ...offline.calibration.live_session import step_readings
from ...report.text import number
from ...scale.live import text_of
from ...scale.orders import DisplayOrder, read_press
from ...scale.scale_file import ScaleFile
from ..messages.outline import MeasuredPosition
from .display_server import Door, Server, Site, answer_text
from .side_view import SideView, machine_values

CONFIRM, SKIP, END = ORDERS = 'confirm', 'skip', 'end'


def read_step_order(text: str | None) -> DisplayOrder | None:
    """An order of ORDERS, with the number of the step that its viewer saw; None for what is none."""
    return read_press(text, ORDERS)


SITE = Site('calibration.html', ('calibration.js',), read_step_order)


class CalibrationPage:
    """Served from the start on; raises MbseError where it cannot be. ``show`` it as often as something changes, and
    ``take`` what viewers order."""

    def __init__(self, guide: Guide, door: Door) -> None:
        self.guide, self._measured = guide, MeasuredPosition(guide.machine)
        self.server = Server(door, SITE)
        values = machine_values(guide.machine, ScaleFile({}, None), self._view)
        self.server.say('machine', text_of(values), keep=True)

    @cached_property
    def _view(self) -> SideView:
        return SideView(self.guide.machine, None)

    def show(self, state: GuideState, notes: Sequence[str]) -> None:
        """The step that is wanted, its pose behind the present one, and ``notes`` on what else is wrong."""
        step, machine = state.step, self.guide.machine
        frame = {'kind': 'frame', 'number': state.number, 'count': state.count, 'advice': state.advice._asdict(),
                 'progress': state.progress, 'all': state.all, 'minutes': max(1, round(state.seconds / 60)),
                 'notes': list(notes), 'waits': self.guide.waits}
        if step is not None:
            frame |= {'cylinder': step.cylinder, 'sweeps': step.sweeps, 'load': step.load,
                      'readings': [item._asdict() for item in step_readings(machine, step, self.guide.last)],
                      'parts': self._view.at(self._measured.at(self.guide.last), step.z)}
        self.server.say('frame', text_of(frame), keep=True)

    def show_result(self, found: Calibration, written: str) -> None:
        """The grade, and where the new file is, '' where none is ``written``."""
        grade = found.grade
        half = number(grade.half_width, 2) if math.isfinite(grade.half_width) else ''
        self.server.say('result', json.dumps({'kind': 'result', 'color': grade.color, 'reasons': grade.reasons,
                                              'half_width': half, 'file': written}), keep=True)

    def take(self) -> list[str]:
        """What was ordered since the last time, at most one for the present step: two viewers may press at once. Not
        for a step that is no more, nor a load that nobody asks for."""
        found: list[str] = []
        while self.server.orders:
            viewer, order = self.server.orders.popleft()
            state = self.guide.state
            good = order.action == END or not found and state.step is not None and order.expected == state.number and (
                order.action == SKIP or self.guide.waits)
            text = answer_text(order.number, good, '' if good else 'another step is wanted')
            self.server.answer(viewer, order.number, text)
            found += [order.action] if good else []
        return found

    def close(self) -> None:
        """End it."""
        self.server.close()
