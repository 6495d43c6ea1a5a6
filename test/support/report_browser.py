# SPDX-License-Identifier: Apache-2.0
"""A headless Chromium driven over its debugging pipe: opens a page without a network and reports what it did."""

from __future__ import annotations

import base64
import fcntl
import json
import os
import select
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

PROGRAM = next(filter(None, map(shutil.which, ('chromium', 'chromium-browser', 'google-chrome', 'chrome'))), None)
_FLAGS = ('--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run',
          '--disable-background-networking', '--disable-component-update', '--disable-sync', '--disable-dev-shm-usage',
          '--remote-debugging-pipe')
_NOWHERE = '--host-resolver-rules=MAP * ~NOTFOUND'
# The browser reads commands from descriptor 3 and writes answers to 4.
_LAUNCH = ('import os, sys; os.dup2(int(sys.argv[1]), 3); os.dup2(int(sys.argv[2]), 4); '
           'os.execv(sys.argv[3], sys.argv[3:])')
LIMIT = 120.0       # s, on a machine with much else to do


class Browser:
    """One page in one browser. ``events`` holds all that the browser reported, oldest first."""

    def __init__(self, profile: Path, reach: str = '') -> None:
        """``reach``: the one host that is found."""
        self.events: list[dict[str, Any]] = []
        self._buffer, self._count, self._session = b'', 0, None
        (ours, theirs_out), (theirs_in, commands) = os.pipe(), os.pipe()
        high_in, high_out = (fcntl.fcntl(end, fcntl.F_DUPFD, 20) for end in (theirs_in, theirs_out))
        self._answers, self._commands = ours, commands
        launch = [sys.executable, '-c', _LAUNCH, str(high_in), str(high_out), PROGRAM, *_FLAGS,
                  _NOWHERE + (f', EXCLUDE {reach}' if reach else ''),
                  f'--user-data-dir={profile}', '--window-size=1280,900']
        self._process = subprocess.Popen(launch, pass_fds=(high_in, high_out), stdout=subprocess.DEVNULL,
                                         stderr=subprocess.DEVNULL)
        for end in (theirs_in, theirs_out, high_in, high_out):
            os.close(end)
        target = self.call('Target.createTarget', url='about:blank')['targetId']
        self._session = self.call('Target.attachToTarget', targetId=target, flatten=True)['sessionId']
        for domain in ('Runtime', 'Log', 'Network', 'Page'):
            self.call(f'{domain}.enable')

    def open(self, url: str) -> None:
        self.call('Page.navigate', url=url)

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """The answer to one command of the DevTools protocol."""
        self._count += 1
        message = {'id': self._count, 'method': method, 'params': params}
        if self._session:
            message['sessionId'] = self._session
        os.write(self._commands, json.dumps(message).encode() + b'\0')
        while True:
            answer = self._read(LIMIT)
            if answer.get('id') == self._count:
                assert 'error' not in answer, f'{method}: {answer["error"]}'
                return answer['result']
            self.events.append(answer)

    def value(self, expression: str) -> Any:
        """What a JavaScript expression gives in the page."""
        answer = self.call('Runtime.evaluate', expression=expression, returnByValue=True, awaitPromise=True)
        assert 'exceptionDetails' not in answer, answer['exceptionDetails']
        return answer['result'].get('value')

    def wait_for(self, expression: str, seconds: float = LIMIT) -> Any:
        """The first true value of an expression within so many seconds."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            value = self.value(expression)
            if value:
                return value
            time.sleep(0.05)
        raise AssertionError(f'not true within {seconds} s: {expression}')

    def frames(self, count: int) -> None:
        """Let the page be drawn so many times."""
        self.value(f'new Promise(done => {{ let left = {count}; '
                   'const step = () => left-- ? requestAnimationFrame(step) : done(); step(); })')

    def screenshot(self, path: Path) -> None:
        path.write_bytes(base64.b64decode(self.call('Page.captureScreenshot', format='png')['data']))

    def errors(self) -> list[str]:
        """Exceptions, console errors and log errors of the page."""
        found = []
        for event in self.events:
            method, params = event.get('method'), event.get('params', {})
            bad = (method == 'Runtime.exceptionThrown'
                   or method == 'Runtime.consoleAPICalled' and params['type'] in ('error', 'assert')
                   or method == 'Log.entryAdded' and params['entry']['level'] == 'error')
            if bad:
                found.append(json.dumps(params)[:600])
        return found

    def requests(self) -> list[str]:
        """Addresses outside itself that the page asked for."""
        addresses = [event['params']['request']['url'] for event in self.events
                     if event.get('method') == 'Network.requestWillBeSent']
        return [address for address in addresses if not address.startswith(('data:', 'blob:'))]

    def close(self) -> None:
        os.close(self._commands)          # the browser ends when its command pipe does
        try:
            self._process.wait(LIMIT)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._answers)

    def _read(self, seconds: float) -> dict[str, Any]:
        while b'\0' not in self._buffer:
            assert select.select([self._answers], [], [], seconds)[0], f'the browser did not answer in {seconds} s'
            chunk = os.read(self._answers, 1 << 20)
            assert chunk, 'the browser ended'
            self._buffer += chunk
        message, _, self._buffer = self._buffer.partition(b'\0')
        return json.loads(message)
