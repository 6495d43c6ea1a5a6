# SPDX-License-Identifier: Apache-2.0
"""The server of the operator's page without a graph: pages that stall, too many of them, tokens, orders."""

import contextlib
import json
import socket
import threading
import time

import pytest

pytest.importorskip('rclpy')
pytest.importorskip('starlette')
pytest.importorskip('uvicorn')
pytest.importorskip('websockets')
from display_support import opened, upgrade
from report_browser import PROGRAM, Browser
from websockets.exceptions import ConnectionClosed

from mbse_ros.errors import MbseError, SettingError
from mbse_ros.nodes.display import display_connections as _display_connections
from mbse_ros.nodes.display import display_server as _display_server
from mbse_ros.nodes.display.display_server import CONNECTIONS, FULL, REFUSED, Door, Server, is_loopback, read_token
from mbse_ros.scale.orders import read_order

TOKEN = 'a-token-of-many-letters'


def test_a_page_that_takes_nothing_is_dropped(monkeypatch):
    """Its buffers fill up; the others go on, and get what is newest."""
    monkeypatch.setattr(_display_server, 'PATIENCE', 0.3)
    server, text = Server(Door('127.0.0.1', 0)), json.dumps('x' * 1_000_000)
    try:
        stalled = socket.create_connection(('127.0.0.1', server.port))
        stalled.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1024)
        stalled.sendall(upgrade(server.port))
        with opened(server, max_size=None) as ws:
            end = time.monotonic() + 60.0
            while not server.dropped:
                assert time.monotonic() < end, 'waited in vain'
                server.say('frame', text)
                assert ws.recv(timeout=60) == text
            assert server.count == 1
            server.say('frame', '"the newest"')
            assert ws.recv(timeout=60) == '"the newest"'
        stalled.close()
    finally:
        server.close()


def asked(server, path='/', last=b'\r\n'):
    """A connection that has asked for a file, and what came back first."""
    one = socket.create_connection(('127.0.0.1', server.port), timeout=10)
    one.sendall(f'GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\n'.encode() + last)
    return one, one.recv(64) if last == b'\r\n' else b''


STAGES = {'nothing': b'', 'half a request': b'GET / HTTP/1.1\r\nHost: 127', 'a byte after a request': None,
          'a body that does not come': b'POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 99\r\n\r\n{'}


@pytest.mark.parametrize('stage', STAGES)
def test_connections_that_do_nothing_keep_nobody_out(monkeypatch, stage):
    """More than there is room for, that each say a little and then nothing, byte by byte: a page comes in at once, and
    after a while they are gone."""
    monkeypatch.setattr(_display_connections, 'GREETING', 0.5)
    server, crowd = Server(Door('127.0.0.1', 0)), []
    server.say('machine', '"hello"', keep=True)
    try:
        with opened(server) as first:
            for _ in range(CONNECTIONS + 6):
                one = asked(server)[0] if STAGES[stage] is None else socket.create_connection(
                    ('127.0.0.1', server.port))
                one.sendall(STAGES[stage] or b'G')
                crowd.append(one)
            with opened(server) as ws:
                assert ws.recv(timeout=10) == '"hello"'
                page, head = asked(server)
                assert head.startswith(b'HTTP/1.1 200')
                end = time.monotonic() + 20.0
                while len(server._open) > 2:
                    assert time.monotonic() < end, 'they stay'
                    for one in crowd:       # a byte now and then makes it no longer
                        with contextlib.suppress(OSError):
                            one.sendall(b'E')
                    time.sleep(0.05)
                assert server.count == 2 and server.closed >= 6 and first.recv(timeout=10) == '"hello"'
                page.close()
    finally:
        for one in crowd:
            one.close()
        server.close()


def test_a_crowd_makes_room(monkeypatch):
    """However long each may wait: of those of the address that has most the oldest goes, except pages."""
    monkeypatch.setattr(_display_connections, 'GREETING', 1e6)
    server, crowd = Server(Door('127.0.0.1', 0)), []
    server.say('machine', '"hello"', keep=True)
    try:
        with opened(server) as page:
            assert page.recv(timeout=10) == '"hello"'
            guest = socket.create_connection(('127.0.0.1', server.port), timeout=10, source_address=('127.0.0.2', 0))
            for _ in range(CONNECTIONS + 6):
                crowd.append(socket.create_connection(('127.0.0.1', server.port), timeout=10))
            with opened(server) as other:
                assert other.recv(timeout=10) == '"hello"' and len(server._open) <= CONNECTIONS and server.closed >= 9
            assert crowd[0].recv(1) == b''
            guest.sendall(f'GET / HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\n\r\n'.encode())
            assert guest.recv(64).startswith(b'HTTP/1.1 200')
            server.say('frame', '"next"')
            assert page.recv(timeout=10) == '"next"'
            guest.close()
    finally:
        for one in crowd:
            one.close()
        server.close()


@pytest.mark.parametrize('words', [
    b'nonsense\r\n\r\n', b'GET / HTTP/1.1\r\nHost: x\r\n\r\nnonsense\r\n\r\n' * 3, b'\xff\xfe\0' * 100,
    b'GET / HTTP/1.1\r\nX: ' + b'x' * 100_000,
    b'GET /live HTTP/1.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n',
    b'GET / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n', b'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'])
def test_a_stranger_writes_nothing_into_the_log(caplog, words):
    """Nor with frames of a WebSocket that are none, and half-closed connections."""
    server = Server(Door('127.0.0.1', 0))
    try:
        for start in (b'', upgrade(server.port)):
            one = socket.create_connection(('127.0.0.1', server.port), timeout=10)
            with contextlib.suppress(OSError):
                one.sendall(start + words)
                one.shutdown(socket.SHUT_WR)
                while one.recv(65536):
                    pass
            one.close()
        server._call(lambda: 1 / 0)
        with opened(server):
            pass
        assert server.failed and 'ZeroDivisionError' in server.failure
    finally:
        server.close()
    assert not [record for record in caplog.records if record.name in ('asyncio', 'uvicorn.error', 'websockets')]


def test_too_many_pages_and_a_wrong_token(tmp_path):
    server = Server(Door('127.0.0.1', 0, TOKEN, 1))
    server.say('machine', '"hello"', keep=True)
    try:
        for wrong in (json.dumps({'token': 'another'}), 'null', '{"do": "undo", "number": 1}'):
            with opened(server) as ws:
                assert ws.recv(timeout=10) == '{"kind":"token"}'
                ws.send(wrong)
                with pytest.raises(ConnectionClosed) as refused:
                    ws.recv(timeout=10)
                assert refused.value.rcvd.code == REFUSED
        with opened(server) as ws:
            ws.send(json.dumps({'token': TOKEN}))
            assert [ws.recv(timeout=10) for _ in range(2)] == ['{"kind":"token"}', '"hello"']
            with opened(server) as second, pytest.raises(ConnectionClosed) as refused:
                second.recv(timeout=10)
            assert refused.value.rcvd.code == FULL
        with pytest.raises(MbseError, match=f'port {server.port}'):
            Server(Door('127.0.0.1', server.port))
    finally:
        server.close()
    assert not [thread for thread in threading.enumerate() if thread is server._thread]


def test_other_hosts_need_a_token(tmp_path):
    assert read_token('', 'localhost') == '' and is_loopback('::1') and not is_loopback('0.0.0.0')
    with pytest.raises(SettingError, match='token_file'):
        read_token('', '0.0.0.0')
    path = tmp_path / 'token'
    for text in ('short', 'two words of many letters'):
        path.write_text(text)
        with pytest.raises(SettingError, match='one word'):
            read_token(str(path), '0.0.0.0')
    path.write_text(TOKEN + '\n')
    assert read_token(str(path), '0.0.0.0') == TOKEN


def test_orders_are_read_strictly():
    assert read_order('{"do":"new_truck","number":3,"truck":"T7","target":3000}').values == {
        'truck': 'T7', 'target': 3000.0}
    assert read_order('{"do":"tare","number":3,"attachment":""}').values == {'attachment': ''}
    for bad in ('{"do":"new_truck","number":3,"target":NaN}', '{"do":"new_truck","number":3,"target":-1}',
                '{"do":"tare","number":3}', '{"do":"undo","number":true}', '{"do":["undo"],"number":1}',
                '{"do":"new_truck","number":3,"truck":"a\\u0000"}', '{"do":"undo","number":-1}',
                '{"do":"undo","number":1,"more":1}', '{"do":"stop","number":1}', '[]', 'undo', None):
        assert read_order(bad) is None


@pytest.mark.skipif(PROGRAM is None, reason='no browser (tools/browser.sh)')
def test_the_page_asks_for_its_token(tmp_path):
    """By the keyboard alone: a wrong one is asked for again, the right one is kept for the next time."""
    server, browser = Server(Door('127.0.0.1', 0, TOKEN)), Browser(tmp_path, '127.0.0.1')
    server.say('machine', json.dumps({'kind': 'machine', 'name': 'zx200', 'attachments': [], 'chart': None}), keep=True)

    def enter(text):
        browser.wait_for("document.getElementById('token-box')?.open && document.activeElement.id === 'token'")
        browser.value("document.getElementById('token').select()")
        browser.call('Input.insertText', text=text)
        for kind in ('rawKeyDown', 'char', 'keyUp'):
            browser.call('Input.dispatchKeyEvent', type=kind, key='Enter', code='Enter', windowsVirtualKeyCode=13,
                         text='\r')
        browser.wait_for("!document.getElementById('token-box').open")
    try:
        browser.open(server.address)
        enter('not-the-token-of-this-page')
        assert browser.wait_for("document.getElementById('link').textContent") != 'live'
        enter(TOKEN)
        browser.wait_for("document.title === 'Scale zx200'")
        browser.open('about:blank')
        browser.open(server.address)        # without a token in the address
        browser.wait_for("document.title === 'Scale zx200'")
        assert not browser.value("document.getElementById('token-box').open")
    finally:
        browser.close()
        server.close()
