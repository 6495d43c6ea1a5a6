# SPDX-License-Identifier: Apache-2.0
"""The operator's page: time to the first number, updates a second, processor of its node, with several pages.

    python benchmarks/display.py [--pages 4] [--seconds 20] [--machine zx200] [--openings 5] [--json F]

The graph of a digging machine as `mbse up machine scale:=true display:=true` starts it, and so many WebSockets, one of
which never reads; then the page is opened in a Chromium, on the same processors, where there is one: time from the
address to the first mass on the page.
"""

from __future__ import annotations

import argparse
import json
import socket
import sys
import tempfile
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / 'test'), str(ROOT / 'test' / 'support')]
import conftest  # noqa: E402, F401  (the environment of DDS)
from nodes_support import own_domain  # noqa: E402
from report_browser import PROGRAM, Browser  # noqa: E402
from websockets.exceptions import ConnectionClosed  # noqa: E402
from websockets.sync import client  # noqa: E402

from mbse_ros.nodes.graphs.graph import parse_arguments  # noqa: E402
from mbse_ros.nodes.graphs.machine_graph import MachineArguments, machine_graph  # noqa: E402
from mbse_ros.nodes.graphs.run_graph import RunningGraph, cpu_seconds  # noqa: E402

START = 120.0       # s
NODES = ('display_node', 'scale_node', 'machine_nodes')
STALLED = ('GET /live HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n'
           'Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\n\r\n')

# When the mass is first a number, ms after the page's beginning.
SEEN = """new MutationObserver(() => {
  const mass = document.getElementById('mass');
  if (window.seen === undefined && mass && /[0-9]/.test(mass.textContent)) window.seen = performance.now();
}).observe(document, {subtree: true, childList: true, characterData: true});"""


class Page(threading.Thread):
    """One page: when the first number came after it was opened, s, and how many frames since ``begin``."""

    def __init__(self, port: int) -> None:
        super().__init__(daemon=True)
        self._port, self.first, self.frames, self.begin = port, float('nan'), 0, float('inf')

    def run(self) -> None:
        """Until the server ends it."""
        opened = time.monotonic()
        try:
            with client.connect(f'ws://127.0.0.1:{self._port}/live', max_size=None) as ws:
                for text in ws:
                    if '"kind":"frame"' in text.replace(' ', '')[:40]:
                        if self.first != self.first:
                            self.first = time.monotonic() - opened
                        self.frames += time.monotonic() >= self.begin
        except (OSError, ConnectionClosed):
            return


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.create_server(('127.0.0.1', 0)) as found:
        return found.getsockname()[1]


def measured(machine: str, pages: int, seconds: float, openings: int, folder: str) -> dict[str, object]:
    """What came of one run; raises RuntimeError where nothing did."""
    port, log = free_port(), []
    graph = machine_graph(parse_arguments({'machine': machine, 'cycle': 'dig' if machine == 'zx200' else
                                           'lift_hold_lower', 'scale': 'true', 'display': 'true',
                                           'display_port': str(port), 'visualization': 'false',
                                           'scale_records': f'{folder}/loads.db'}, MachineArguments))
    running = RunningGraph(graph, log.append)
    running.start()

    def until(condition, limit: float) -> None:
        end = time.monotonic() + limit
        while not condition():
            running.step()
            time.sleep(0.02)
            if time.monotonic() > end or running.status:
                raise RuntimeError('\n'.join(['waited in vain', *log[-10:]]))

    def used() -> dict[str, float]:
        return {name: cpu_seconds(running.children[name].pid) or 0.0 for name in NODES}
    try:
        until(lambda: any('observer_node]: OK' in line for line in log), START)
        crowd = [Page(port) for _ in range(pages)]
        idle = used(), time.monotonic()
        end = time.monotonic() + 5.0
        until(lambda: time.monotonic() > end, 60.0)
        alone = (used()['display_node'] - idle[0]['display_node']) / (time.monotonic() - idle[1])
        stalled = socket.create_connection(('127.0.0.1', port))
        stalled.sendall(STALLED.format(port=port).encode())
        for page in crowd:
            page.start()
        until(lambda: all(page.first == page.first for page in crowd), 60.0)
        before, begin = used(), time.monotonic()
        for page in crowd:
            page.begin = begin
        until(lambda: time.monotonic() > begin + seconds, seconds + 60.0)
        span, after = time.monotonic() - begin, used()
        rates = [page.frames / span for page in crowd]
        stalled.close()
        seen: list[float] = []
        if PROGRAM is not None:
            browser = Browser(Path(folder) / 'browser', '127.0.0.1')
            browser.call('Page.addScriptToEvaluateOnNewDocument', source=SEEN)
            for _ in range(openings):
                browser.open('about:blank')
                browser.open(f'http://127.0.0.1:{port}')
                until(lambda: (browser.value('window.seen') or 0.0) > 0.0, 60.0)
                seen.append(browser.value('window.seen') / 1000.0)
            browser.close()
        return {'machine': machine, 'pages': pages, 'first_number_s': [page.first for page in crowd],
                'first_number_in_browser_s': seen,
                'updates_hz': rates, 'cpu_share_without_pages': alone,
                'cpu_share': {name: (after[name] - before[name]) / span for name in NODES}}
    finally:
        running.stop()


def main() -> None:
    """Print one run, and write it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--pages', type=int, default=4)
    parser.add_argument('--seconds', type=float, default=20.0)
    parser.add_argument('--machine', default='zx200')
    parser.add_argument('--openings', type=int, default=5)
    parser.add_argument('--json', type=Path)
    asked = parser.parse_args()
    with own_domain(), tempfile.TemporaryDirectory() as folder:
        found = measured(asked.machine, asked.pages, asked.seconds, asked.openings, folder)
    print(json.dumps(found, indent=2))
    if asked.json:
        asked.json.write_text(json.dumps(found, indent=2) + '\n')


if __name__ == '__main__':
    main()
