# SPDX-License-Identifier: Apache-2.0
"""The operator's page without a graph: a server that is told what display_node would say, for tests of how the page
looks and for the pictures of docs/display.md (`benchmarks/display_pictures.py`)."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
from report_browser import Browser
from scale_support import excavator, state

from mbse_ros.nodes.display.display_server import Door, Server
from mbse_ros.nodes.display.side_view import SideView, channel_values, machine_values
from mbse_ros.scale.live import text_of
from mbse_ros.scale.scale_file import LoadChart, ScaleFile

SIZES = (360, 640), (390, 844), (768, 1024), (1024, 1366), (1280, 800), (1920, 1080)
BOTH = tuple(sorted({size for width, height in SIZES for size in ((width, height), (height, width))}))
CHART = LoadChart((4.0, 6.0, 8.0, 10.0), (2500.0, 1900.0, 1200.0, 800.0))
WORK = {'stamp_ns': 1, 'mass': 1208.4, 'lower': 1178.0, 'upper': 1239.0, 'gross': 1208.4, 'gross_upper': 1239.0,
        'status': 'updating', 'reason': '', 'faults': [], 'carrying': True, 'since_ns': 1, 'counted': False,
        'radius': 7.4, 'limit': None, 'overload': 'ok', 'truck': 'T7', 'loads': 5, 'total': 6093.0,
        'total_interval': [5961.0, 6225.0], 'untrusted': 0, 'untrusted_total': 0.0, 'target': 18000.0,
        'remaining': 11907.0, 'reached': False, 'tip_off': 0.0, 'trouble': '', 'truck_number': 3, 'last_load': 24,
        'question': ''}
WORST = {'mass': 1874.0, 'lower': 1843.0, 'upper': 1905.0, 'gross': 1874.0, 'gross_upper': 1905.0, 'limit': 1900.0,
         'status': 'implausible', 'faults': ['stuck', 'contradiction', 'force_balance', 'not_trusted'],
         'reason': "constant: 'pressure/boom_piston' since 12.4 s; masses of different poses contradict each other",
         'overload': 'over', 'truck': 'Kuljetusliike Virtanen Oy, ABC-123, trailer', 'untrusted': 2,
         'untrusted_total': 2410.0, 'tip_off': 310.0, 'trouble': 'No space left on device',
         'question': 'the tool may be another: 148 kg (77 to 220) more than before a stop, as with attachment '
                     "'ditching_bucket' (+140 kg): choose the attachment, or go on if it is a load"}
FORCE = {'point': 'bucket.teeth', 'size': 12.4e3, 'size_stddev': 610.0, 'direction': [-0.91, None, 0.41],
         'direction_stddev': 0.031, 'along': [-0.91, 0.0, 0.41], 'component': 12.1e3, 'component_stddev': 480.0,
         'reason': 'no cylinder that weighs shows y'}
UNKNOWN_FORCE = {**dict.fromkeys(FORCE), 'point': 'bucket.teeth', 'reason': 'the load changes, or its mass has just '
                 'moved by more than its interval'}
POSE = (0.0, 0.55, 0.35, 0.5)       # rad of the swing, m of the strokes: a bucket that is carried


def totals(**more: Any) -> dict[str, Any]:
    """Of five loads of a truck, one of them in doubt where the totals say so."""
    worst = 'untrusted' in more
    day = {'date': '2026-11-29', 'loads': 24, 'total': 28740.0, 'total_interval': [28102.0, 29378.0],
           'untrusted': 2 * worst, 'untrusted_total': 2410.0 * worst}
    last = [{'load': 24 - k, 'number': 24 - k, 'truck': more.get('truck', 'T7') if k < 6 else 'T6', 'start_ns': 0,
             'end_ns': int((1796026800 - 95 * k) * 1e9), 'mass': mass, 'interval': [mass - 29.0, mass + 29.0],
             'status': 'put_back' if k == 3 else 'weighed', 'counts': k not in (3, 7), 'trusted': not worst or k != 1}
            for k, mass in enumerate((1242.0, 1187.0, 1263.0, 904.0, 1131.0, 1270.0, 1208.0, 1190.0))]
    return {'truck': 'T7', 'target': 18000.0, 'loads': 5, 'total': 6093.0, 'total_interval': [5961.0, 6225.0],
            'untrusted': 0, 'untrusted_total': 0.0, 'day': day, 'attachment': '', 'zero': 0.0, 'missed': None,
            'last_loads': last, **more}


class Shown:
    """A page in a browser at a server that keeps saying the same; closes both at its end."""

    def __init__(self, folder: Path, charted: bool = False) -> None:
        self.server, self.browser = Server(Door('127.0.0.1', 0)), Browser(folder, '127.0.0.1')
        self._machine, self._file = excavator(), ScaleFile({}, CHART if charted else None)
        view = SideView(self._machine, None)
        z = np.array(POSE)
        n = len(z)
        channels = self._machine.channels
        measured = np.array([*(z + [0.05, -0.012, 0.015, 0.01]), *np.linspace(4e6, 24e6, len(channels) - n)])
        one = state(self._machine, 10 ** 9, z)
        one = type(one)(**{**vars(one), 'channels': channels, 'measured': measured,
                           'innovation': np.array([5e-4] * n + [9e4, *[-4e5] * (len(channels) - n - 1)]),
                           'innovation_stddev': np.array([1e-3] * n + [1e5] * (len(channels) - n))})
        self.parts, self._state, self._step = view.of(one), one, 0
        self.server.say('machine', text_of(machine_values(self._machine, self._file, view)), keep=True)

    def say(self, known: dict[str, Any]) -> None:
        """One instant."""
        self._step += 1
        live = {**WORK, **known, 'stamp_ns': self._step}
        rows = [[name, value + 3 * deviation * np.sin(0.2 * self._step + k), innovation, deviation, unit] for k, (
            name, value, innovation, deviation, unit) in enumerate(channel_values(self._state, self._machine))]
        faults = [{'name': 'zx200: payload', 'level': 2, 'text': live['reason']}] if live['reason'] else []
        same = {key: live[key] for key in ('truck', 'untrusted', 'untrusted_total') if key in known}
        for said in ({'kind': 'totals', 'totals': totals(**same)},
                     {'kind': 'budget', 'load': {'load': 24, 'mass': 1242.0, 'interval': [1213.0, 1271.0],
                                                 'stddev': 14.8, 'own': 3.1, 'common': {
                                                     'friction of cylinders.boom': 11.2, 'bodies.bucket.mass': -6.0}}},
                     {'kind': 'engineer', 'channels': rows, 'nis': 11.4, 'nis_dof': 10, 'status': 'ok',
                      'reason': live['reason'], 'faults': faults, 'force': UNKNOWN_FORCE if live['reason'] else FORCE},
                     {'kind': 'frame', 'live': live, 'parts': self.parts, 'widest': 250.0}):
            self.server.say(said['kind'], text_of(said))

    def open(self, known: dict[str, Any], language: str = 'en', dark: bool = False, more: str = '') -> None:
        """The page in a language, with what is known at this instant."""
        self.browser.call('Emulation.setEmulatedMedia', features=[
            {'name': 'prefers-color-scheme', 'value': 'dark' if dark else 'light'}])
        self.browser.open('about:blank')
        self.browser.open(f'{self.server.address}#lang={language}{more}')
        self.browser.wait_for("document.readyState === 'complete' && window.MachineView !== null")
        self.until(known, "document.body.className && !document.body.classList.contains('stale') && "
                          "document.getElementById('channels').rows.length > 0")

    def see(self, known: dict[str, Any]) -> None:
        """One instant, until it is drawn."""
        self.say(known)
        self.browser.wait_for(f'last !== null && last.live.stamp_ns === {self._step}')
        self.browser.frames(2)

    def until(self, known: dict[str, Any], expression: str) -> None:
        """Keep saying it until an expression is true."""
        end = time.monotonic() + 60.0
        while True:
            self.say(known)
            self.browser.frames(2)
            if self.browser.value(expression):
                return
            assert time.monotonic() < end, f'waited in vain: {expression}'

    def size(self, width: int, height: int) -> None:
        """Of the screen, pixels."""
        self.browser.call('Emulation.setDeviceMetricsOverride', width=width, height=height, deviceScaleFactor=1,
                          mobile=False)

    def page(self, name: str) -> None:
        """Operator or engineer."""
        self.browser.value(f"document.getElementById('to-{name}').click()")

    def close(self) -> None:
        """Both."""
        self.browser.close()
        self.server.close()
