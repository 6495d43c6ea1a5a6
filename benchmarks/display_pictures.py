# SPDX-License-Identifier: Apache-2.0
"""Pictures of the operator's page for docs/display.md, of a made-up day of work, and of the page of a calibration for
docs/calibration.md, in a headless Chromium.

    python benchmarks/display_pictures.py docs/images [--language ja]
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / 'benchmarks'), str(ROOT / 'test' / 'support')]
from display_pages import Shown  # noqa: E402
from report_browser import Browser  # noqa: E402

from mbse_ros.api.calibrate import plan_calibration  # noqa: E402
from mbse_ros.calibration.balance import CalibrationBalance  # noqa: E402
from mbse_ros.calibration.guide import Guide  # noqa: E402
from mbse_ros.calibration.steps import Advice  # noqa: E402
from mbse_ros.nodes.display.calibration_page import CalibrationPage  # noqa: E402
from mbse_ros.nodes.display.display_server import Door  # noqa: E402

NEAR = {'limit': 1200.0, 'overload': 'near', 'status': 'too_slow', 'faults': []}        # with a load chart
# Name, size, page, with a load chart, in the dark, a button that is pressed before, language.
PICTURES = (('light', (1280, 800), 'operator', False, False, '', ''),
            ('dark', (1280, 800), 'operator', True, True, '', ''),
            ('phone', (390, 844), 'operator', False, False, '', ''),
            ('japanese', (844, 390), 'operator', False, False, '', 'ja'),
            ('engineer', (1280, 800), 'engineer', False, False, '', ''),
            ('ticket', (768, 700), 'operator', False, False, 'to-ticket', ''))


def main() -> None:
    """Write them all."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('folder', type=Path)
    parser.add_argument('--language', default='en')
    asked = parser.parse_args()
    for charted in (False, True):
        with tempfile.TemporaryDirectory() as folder:
            shown = Shown(Path(folder), charted)
            try:
                for name, size, page, has_chart, dark, button, language in PICTURES:
                    if has_chart is charted:
                        known = NEAR if charted else {}
                        shown.size(*size)
                        shown.open(known, language or asked.language, dark)
                        shown.page(page)
                        for _ in range(60 if page == 'engineer' else 1):
                            shown.see(known)
                        if button:
                            shown.browser.value(f"document.getElementById('{button}').click()")
                        shown.see(known)
                        shown.browser.screenshot(asked.folder / f'display_{name}.png')
            finally:
                shown.close()
    with tempfile.TemporaryDirectory() as folder:
        write_calibration(Path(folder), asked.folder / 'display_calibration.png', asked.language)


def write_calibration(profile: Path, path: Path, language: str) -> None:
    """The excavator where its file starts, on its way to the first pose of the plan."""
    plan = plan_calibration('zx200')
    guide, machine = Guide(CalibrationBalance(plan.machine), plan.found), plan.machine
    q = machine.model.start.q
    places = dict(zip(machine.coordinates, q[machine.model.z])) | dict(zip(machine.cylinders, q[machine.pistons]))
    for channel in machine.all_channels:
        if channel.name in machine.channels and channel.sensor.coordinate in places:
            gain, offset, zero = channel.nominal
            guide.take(channel.name, 0, gain * (places[channel.sensor.coordinate] - zero) + offset)
    page, browser = CalibrationPage(guide, Door('127.0.0.1', 0)), Browser(profile, '127.0.0.1')
    try:
        browser.call('Emulation.setDeviceMetricsOverride', width=1024, height=600, deviceScaleFactor=1, mobile=False)
        browser.open(f'{page.server.address}#lang={language}')
        page.show(replace(guide.state, advice=Advice('go_out', 'boom')), [])
        browser.wait_for("typeof last === 'object' && document.getElementById('readings').rows.length > 0")
        browser.frames(2)
        browser.screenshot(path)
    finally:
        browser.close()
        page.close()


if __name__ == '__main__':
    main()
