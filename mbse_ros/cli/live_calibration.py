# SPDX-License-Identifier: Apache-2.0
"""``mbse calibrate --live``: an operator through the procedure, in the terminal and on a page in the cab."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING

import typer

from ..errors import MbseError, SettingError

if TYPE_CHECKING:
    from ..calibration.guide import Guide
    from ..calibration.steps import PlanStep
    from ..nodes.display.calibration_page import CalibrationPage
    from ..nodes.live_calibration import LiveCalibration
    from ..offline.calibration.calibration_result import Calibration

KEYS = 'Enter: the load is on; s Enter: skip a step that is not safe; q Enter: end, and go on another time'
ORDERS = {'': 'confirm', 's': 'skip', 'q': 'end'}
LOOK = 0.1      # s between two looks at the page's orders once all is recorded


class LiveRun:
    """The procedure of a machine on the running graph; ``page``: PORT or HOST:PORT of its page, None for none.

    Raises SettingError for what is not given as it should be, MbseError without ROS 2, or where the page cannot be.
    """

    def __init__(self, machine: str | None, folder: Path, free: Sequence[str], page: str | None = None,
                 token_file: str = '') -> None:
        try:
            from ..nodes import live_calibration  # noqa: F401
        except ImportError as error:
            raise MbseError('without ROS 2 (rclpy) there is no running graph: record bags, mbse calibrate BAG... '
                            f'({error})') from None
        from ..api.calibrate import plan_calibration  # here, as they take their time to import
        from ..calibration.balance import CalibrationBalance
        from ..calibration.guide import Guide
        from ..offline.calibration.calibration_plan import CalibrationPlan
        from ..offline.calibration.live_session import LiveSession
        if machine is None:
            raise SettingError('machine', machine, 'the machine of the graph: --machine NAME or a path to a .yaml file')
        procedure = plan_calibration(machine, free)
        if not isinstance(procedure, CalibrationPlan):
            raise SettingError('live', True, f'a machine with cylinders: {machine} has drives. Record the motions of '
                               f'mbse calibrate --plan {machine}, then mbse calibrate BAG...')
        self.session = LiveSession(folder, procedure.machine)
        self.guide = Guide(CalibrationBalance(procedure.machine), procedure.found, self.session.done)
        self._load = f'{procedure.found.load:g}'
        self._page = None if page is None else _page(self.guide, page, token_file)

    def record(self, payload: Sequence[str], sources: str = '', namespace: str = '') -> tuple[list[Path], list[str]]:
        """Bags of the procedure and their loads; ``payload``: what the known load is, if not as planned. Ends the
        command where it is interrupted."""
        from ..nodes.live_calibration import LiveCalibration
        if any(word.partition('=')[0] != 'load' for word in payload) or len(payload) > 1:
            raise SettingError('payload', ', '.join(payload), 'with --live load=KG or load=KG+-DEVIATION: of all bags '
                               'with the known load')
        guide, folder = self.guide, self.session.folder
        typer.echo(f'{len(guide.steps)} steps, {len(guide.done)} done; bags in {folder}. {KEYS}')
        if self._page is not None:
            typer.echo(f'page: {self._page.server.address}')
        with closing(LiveCalibration(guide, self.session, sources, namespace)) as node:
            whole = _guided(node, self._page)
        if not whole:
            typer.echo(f'interrupted: {len(guide.done)} of {len(guide.steps)} steps are done and kept in {folder}; the '
                       'same command goes on')
            raise typer.Exit(1)
        if guide.skipped:
            typer.echo(f'skipped: {", ".join(guide.skipped)}')
        load = payload[0].partition('=')[2] if payload else self._load
        return [folder / name for name in self.session.bags], self.session.payloads(load)

    def show(self, found: Calibration, written: str) -> None:
        """The grade on the page, as long as somebody looks at it."""
        if self._page is None:
            return
        self._page.show_result(found, written)
        if self._page.server.count:
            typer.echo('the page shows the result until End is pressed on it, or it is closed')
        while self._page.server.count and 'end' not in self._page.take():
            time.sleep(LOOK)

    def close(self) -> None:
        """End the page."""
        if self._page is not None:
            self._page.close()


def _page(guide: Guide, place: str, token_file: str) -> CalibrationPage:
    from ..nodes.display.calibration_page import CalibrationPage
    from ..nodes.display.display_server import Door, read_token
    host, _, port = place.rpartition(':')
    if not port.isdecimal() or int(port) > 65535:
        raise SettingError('page', place, 'a PORT from 0 (any that is free) to 65535, or HOST:PORT')
    host = host.strip('[]') or '127.0.0.1'
    return CalibrationPage(guide, Door(host, int(port), read_token(token_file, host)))


def _guided(node: LiveCalibration, page: CalibrationPage | None) -> bool:
    """Through all steps: a line for each, and one where what to do changes; False where the operator ends it."""
    from ..offline.calibration.live_session import state_line, step_line
    guide, said, noted = node.guide, '', set[str]()
    step: PlanStep | None = None
    words: list[str] = []
    Thread(target=lambda: words.extend(iter(sys.stdin.readline, '')), daemon=True).start()
    try:
        while guide.step is not None:
            node.step()
            if guide.step is not step and guide.step is not None:
                step, said = guide.step, ''
                typer.echo('\n' + step_line(guide.machine, step, guide.last))
            if node.state.step is step and node.state.words != said:
                said = node.state.words
                typer.echo(f'  {state_line(node.state)}')
            for note in node.notes:
                if note not in noted:
                    typer.echo(f'warning: {note}', err=True)
                    noted.add(note)
            typed = [words.pop(0).strip() for _ in list(words)]
            orders = [ORDERS[word] for word in typed if word in ORDERS]
            if len(orders) < len(typed):
                typer.echo(KEYS)
            if page is not None:
                page.show(node.state, node.notes)
                orders += page.take()
            for order in orders:
                if order == 'end':
                    return False
                if order == 'skip':
                    guide.skip()
                else:
                    guide.confirm()
        if page is not None:
            page.show(guide.state, node.notes)
        return True
    except KeyboardInterrupt:
        return False
