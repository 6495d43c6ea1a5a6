# SPDX-License-Identifier: Apache-2.0
"""Pictures of the operator's page for docs/display.md, of a made-up day of work, in a headless Chromium.

    python benchmarks/display_pictures.py docs/images [--language ja]
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / 'benchmarks'), str(ROOT / 'test' / 'support')]
from display_pages import Shown  # noqa: E402

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


if __name__ == '__main__':
    main()
