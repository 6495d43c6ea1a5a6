# SPDX-License-Identifier: Apache-2.0
"""The page in the cab of a calibration: how it looks in a real browser, and what its buttons do."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip('rclpy')
pytest.importorskip('starlette')
pytest.importorskip('uvicorn')
pytest.importorskip('websockets')
from calibration_support import crane
from display_pages import BOTH
from report_browser import PROGRAM, Browser
from websockets.sync import client

from mbse_ros.calibration.guide import Guide
from mbse_ros.calibration.plan import plan
from mbse_ros.calibration.steps import KINDS, Advice, steps_of
from mbse_ros.cli.live_calibration import KEYS
from mbse_ros.nodes.display.calibration_page import CalibrationPage, read_step_order
from mbse_ros.nodes.display.display_server import Door, languages

AUDIT = (Path(__file__).parents[1] / 'support' / 'page_audit.js').read_text()
RESULT = {'kind': 'result', 'color': 'amber', 'half_width': '14', 'file': 'out/a_name_that_is_long/calibrated.yaml',
          'reasons': ['masses of motion left out are 1.7 times as far off as stated: expect that of new loads, too']}
NOTES = ['/excavator/sensors/pressure/lift_rod: got 4 velocities, expected as many velocities as names']


@pytest.fixture(scope='module')
def guide() -> Guide:
    """Of a lift whose empty steps are done, with a sample of each channel: it waits for the load."""
    found = plan(crane().balance)
    empty = [step.key for step in steps_of(found, crane().machine.cylinders) if not step.load]
    guide = Guide(crane().balance, found, empty)
    for channel in crane().machine.channels:
        guide.take(channel, 0, 0.2)
    return guide


@pytest.fixture
def page(guide: Guide) -> Iterator[CalibrationPage]:
    """Without a viewer."""
    page = CalibrationPage(guide, Door('127.0.0.1', 0))
    yield page
    page.close()


def received(ws: Any, kind: str) -> dict[str, Any]:
    """The next message of a kind."""
    while True:
        said: dict[str, Any] = json.loads(ws.recv(timeout=60))
        if said['kind'] == kind:
            return said


def test_orders_of_two_viewers(page: CalibrationPage, guide: Guide) -> None:
    """The second press of two for the same step does nothing, nor one for a step that is no more."""
    state = guide.state
    page.show(state, [])
    with client.connect(f'ws://127.0.0.1:{page.server.port}/live') as one, \
            client.connect(f'ws://127.0.0.1:{page.server.port}/live') as two:
        frame = received(one, 'frame')
        assert frame['waits'] and frame['readings'][0]['channel'] == 'position/lift'
        assert {'estimated', 'measured'} == set(frame['parts'])
        for number, (ws, expected, action) in enumerate(((one, state.number - 1, 'skip'), (one, state.number, 'skip'),
                                                         (two, state.number, 'skip'), (two, 0, 'end'))):
            ws.send(json.dumps({'do': action, 'number': number, 'key': f'k{number}', 'expected': expected}))
            while len(page.server.orders) <= number:
                time.sleep(0.01)
        assert page.take() == ['skip', 'end']
        answers = [received(ws, 'answer') for ws in (one, one, two, two)]
        assert [answer['success'] for answer in answers] == [False, True, False, True]
    assert read_step_order('{"do": "zero", "number": 1}') is None and read_step_order('{"do": "skip"}') is None


@pytest.mark.skipif(PROGRAM is None, reason='no browser (tools/browser.sh)')
def test_nothing_is_cut_off_at_six_sizes_in_every_language(page: CalibrationPage, guide: Guide, tmp_path: Path) -> None:
    browser, bad = Browser(tmp_path, '127.0.0.1'), []
    try:
        for language in sorted(languages()):
            assert {f'advice_{kind}' for kind in KINDS} <= set(languages()[language])
            browser.open('about:blank')
            browser.open(f'{page.server.address}#lang={language}')
            for advice in (Advice('load', '500'), Advice('hold', 'lift'), Advice('missing', 'pressure/lift_rod')):
                page.show(replace(guide.state, advice=advice), NOTES)
                browser.wait_for(f"typeof last === 'object' && last?.advice.kind === '{advice.kind}' && "
                                 "document.getElementById('readings').rows.length > 0")
                for width, height in BOTH:
                    browser.call('Emulation.setDeviceMetricsOverride', width=width, height=height, deviceScaleFactor=1,
                                 mobile=False)
                    browser.frames(2)
                    found, count = browser.value(f"{AUDIT}\npage_layout('#calibration')")
                    bad += [f'{language} {advice.kind} {width} x {height}: {item}' for item in found]
                    assert count > 8
                bad += browser.value(f"{AUDIT}\npage_contrast('body')")[0]
        page.server.say('result', json.dumps(RESULT), keep=True)
        browser.wait_for('result !== null')
        bad += browser.value(f"{AUDIT}\npage_layout('#calibration')")[0]
        assert browser.value("!document.getElementById('end').disabled && document.getElementById('skip').disabled")
        assert not bad, '\n'.join(bad[:20])
        assert not browser.errors()
    finally:
        browser.close()


def test_the_command_serves_the_page_and_its_end_button_ends_it(tmp_path: Path) -> None:
    """Without a machine: the sensors are missing, nothing is done, the same command goes on another time. A word that
    is no order does nothing but show what there is."""
    words = [sys.executable, '-u', '-m', 'mbse_ros.cli', 'calibrate', '--live', '--page', '0', '--machine',
             'patu655_lift', '--folder', str(tmp_path / 'bags')]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as command:
        assert command.stdout is not None and command.stdin is not None
        command.stdin.write('yes\n')
        command.stdin.flush()
        address = next(line for line in command.stdout if line.startswith('page: ')).split()[1]
        with client.connect(f'{address.replace("http", "ws")}live') as ws:
            frame = received(ws, 'frame')
            while frame['advice']['kind'] != 'missing':
                frame = received(ws, 'frame')
            ws.send(json.dumps({'do': 'end', 'number': 1, 'key': 'a', 'expected': 0}))
            assert received(ws, 'answer')['success']
        said = command.stdout.read()
        assert 'interrupted: 0 of' in said and KEYS in said and command.wait(60) == 1
