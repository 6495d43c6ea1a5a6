# SPDX-License-Identifier: Apache-2.0
"""The web server of a page, in a thread of its own: static files, and one WebSocket for each viewer.

Nothing of ROS is in here. What goes out is given as text by `Server.say`; what a viewer asks for waits in ``orders``.
"""

from __future__ import annotations

import asyncio
import hmac
import ipaddress
import json
import socket
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...errors import MbseError, SettingError
from ...resources import regular
from ...scale.orders import DisplayOrder, read_order

PAGE = Path(__file__).with_name('page')
KINDS = {'.html': 'text/html', '.css': 'text/css', '.js': 'text/javascript'}
TEXTS = '/texts.json'       # of all languages
HEADERS = {'Content-Security-Policy': "default-src 'none'; script-src 'self'; style-src 'self'; "
                                      "connect-src 'self'; img-src 'self' data:; base-uri 'none'; "
                                      "form-action 'none'; frame-ancestors 'none'",
           'X-Content-Type-Options': 'nosniff', 'Referrer-Policy': 'no-referrer', 'Cache-Control': 'no-store'}
LONGEST = 2048          # bytes of a message of a viewer
LEAST_TOKEN = 16        # characters
CONNECTIONS = 64        # of all kinds, beyond which one of those that are no viewers is closed
LONGEST_HEAD = 8192     # bytes of what a browser asks
LONGEST_START = 10.0    # s, of the thread
GREETING = 5.0          # s: a viewer without the token is closed after so long
PATIENCE = 5.0          # s: a viewer that takes nothing for so long is dropped
BEAT = 1.0              # s: a page that hears nothing for longer has lost its connection
MOST_ORDERS = 16        # that wait for an answer
BURST = 10              # orders of a viewer within a second; more, and it is dropped
REFUSED, FULL, BAD = 4401, 4429, 4400       # codes of a WebSocket's end, which the page puts in words
HOW = "the page needs it: pip install 'mbse_ros[display]', or pip install starlette uvicorn websockets"


def is_loopback(host: str) -> bool:
    """Whether only this computer reaches a host."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == 'localhost'


def read_token(path: str, host: str) -> str:
    """The token out of its file; '' where none is asked for, which is for the loopback alone. Raises SettingError."""
    if not path:
        if not is_loopback(host):
            raise SettingError('token_file', path, f'a file with a token of {LEAST_TOKEN} characters or more, since '
                               f'host {host} is reached from other computers: openssl rand -hex 16 > token.txt')
        return ''
    try:
        token = regular(Path(path)).read_text(encoding='utf-8').strip()
    except (OSError, ValueError) as error:
        raise SettingError('token_file', path, f'a text file that can be read ({error})') from error
    if len(token) < LEAST_TOKEN or not token.isprintable() or ' ' in token:
        raise SettingError('token_file', path, f'one word of {LEAST_TOKEN} characters or more in it')
    return token


@dataclass(frozen=True)
class Door:
    """Who may come in: ``host`` and ``port`` (0: any) to listen on, ``token`` ('': none is asked for), how many
    ``viewers``."""

    host: str
    port: int
    token: str = ''
    viewers: int = 8


@dataclass(frozen=True)
class Site:
    """A ``page`` with its ``scripts``, and what reads an order of its viewers: None for what is none."""

    page: str
    scripts: tuple[str, ...]
    read: Callable[[str | None], DisplayOrder | None]

    @property
    def files(self) -> dict[str, str]:
        """Names of the files by their paths."""
        return {'/': self.page, **{f'/{name}': name for name in ('page.css', 'texts.js', 'drawing.js', 'connection.js',
                                                                 *self.scripts)}}


SCALE = Site('page.html', ('page.js', 'tables.js'), read_order)


class Viewer:
    """What waits for one viewer: of each kind the newest text, so it is never more than one of each."""

    def __init__(self, first: Mapping[str, str]) -> None:
        self._waiting: dict[str, str] = dict(first)
        self._ready = asyncio.Event()
        self._ready.set()
        self._times: deque[float] = deque(maxlen=BURST)

    def put(self, kind: str, text: str) -> None:
        """The newest of its kind takes the place of an older one."""
        self._waiting[kind] = text
        self._ready.set()

    async def take(self) -> list[str]:
        """All that waits, at least one."""
        await self._ready.wait()
        self._ready.clear()
        texts, self._waiting = list(self._waiting.values()), {}
        return texts

    def floods(self) -> bool:
        """Whether an order more is too many within a second."""
        now = time.monotonic()
        full = len(self._times) == BURST and now - self._times[0] < 1.0
        self._times.append(now)
        return full


class Server:
    """Listens from the start on; raises MbseError where its packages are absent or the port is taken.

    ``port``: that it listens on. ``orders``: what viewers asked for, to be taken by another thread. ``count``: viewers;
    ``dropped``: of them those that took nothing, or said what nobody says; ``closed``: other connections; ``failed``:
    errors within the server, of which the last one is the ``failure``.
    """

    _loop: asyncio.AbstractEventLoop

    def __init__(self, door: Door, site: Site = SCALE) -> None:
        self.site, self.door = site, door
        self.count, self.dropped, self.closed, self.failed, self.failure = 0, 0, 0, 0, ''
        self.orders: deque[tuple[Viewer, DisplayOrder]] = deque()
        self._kept: dict[str, str] = {}
        self._viewers: set[Viewer] = set()
        self._open: dict[tuple[str, int], Any] = {}         # connections by their addresses, the oldest first
        self._served: set[tuple[Any, ...]] = set()          # of these the viewers
        server = _made(self)
        family = socket.AF_INET6 if ':' in door.host else socket.AF_INET
        try:
            self._socket = socket.create_server((door.host, door.port), family=family, backlog=128)
        except OSError as error:
            raise MbseError(f'cannot listen on {door.host}, port {door.port}: {error.strerror}') from error
        self.port = self._socket.getsockname()[1]
        self._server, self._up = server, threading.Event()
        self._thread = threading.Thread(target=self._run, name='display server', daemon=True)
        self._thread.start()
        if not self._up.wait(LONGEST_START):
            raise MbseError(f"the page's server did not start within {LONGEST_START:g} s")

    @property
    def address(self) -> str:
        """Where the page is."""
        host = f'[{self.door.host}]' if ':' in self.door.host else self.door.host
        return f'http://{host}:{self.port}/'

    def say(self, kind: str, text: str, keep: bool = False) -> None:
        """A text for all viewers; the last one that is to ``keep`` is the first that a new viewer gets."""
        self._call(self._say, kind, text, keep)

    def answer(self, viewer: Viewer, number: int, text: str) -> None:
        """A text for one viewer."""
        self._call(viewer.put, f'answer {number}', text)

    def close(self) -> None:
        """End all connections and the thread."""
        self._server.should_exit = self._server.force_exit = True
        self._thread.join(5.0)
        self._socket.close()

    def _call(self, function: Any, *arguments: Any) -> None:
        try:
            self._loop.call_soon_threadsafe(function, *arguments)
        except RuntimeError:        # the loop has just ended
            pass

    def _say(self, kind: str, text: str, keep: bool) -> None:
        if keep:
            self._kept[kind] = text
        for viewer in self._viewers:
            viewer.put(kind, text)

    def _run(self) -> None:
        async def serve() -> None:
            self._loop = asyncio.get_running_loop()
            self._loop.set_exception_handler(self._note)
            self._up.set()
            beats = asyncio.create_task(self._beat())
            await self._server.serve(sockets=[self._socket])
            beats.cancel()
        asyncio.run(serve())

    async def _beat(self) -> None:
        while True:
            self._say('beat', '{"kind":"beat"}', False)
            await asyncio.sleep(BEAT)

    def _note(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """What goes wrong with a connection ends this one; a stranger writes nothing into the log by it."""
        self.failed += 1
        self.failure = f'{type(context.get("exception")).__name__}: {context.get("exception")}'[:200]

    def enter(self, connection: Any) -> None:
        """One that is open. Where there are too many, the oldest of the address that has most, except viewers, goes: so
        nobody keeps the others out."""
        self._open[connection.client] = connection
        others = [address for address in self._open if address not in self._served and address != connection.client]
        if len(self._open) > CONNECTIONS:
            crowd = Counter(host for host, _ in self._open)
            most = max(others, key=lambda address: crowd[address[0]]) if others else connection.client
            self.end(self._open[most])

    def leave(self, connection: Any) -> None:
        """One that is gone."""
        if self._open.get(connection.client) == connection:
            del self._open[connection.client]

    def end(self, connection: Any) -> None:
        """Close one at once."""
        self.closed += 1
        self.leave(connection)
        connection.connections.discard(connection)
        connection.transport.abort()

    async def file(self, request: Any) -> Any:
        """One of the page's files."""
        from starlette.responses import PlainTextResponse, Response
        if not self._is_ours(request.headers.get('host', '')):
            return PlainTextResponse('another name than that of this computer', 421, HEADERS)
        if request.url.path == TEXTS:
            return Response(json.dumps(languages()), media_type='application/json', headers=HEADERS)
        path = PAGE / self.site.files[request.url.path]
        content = path.read_bytes().replace(b'<!-- dialogs -->', (PAGE / 'dialogs.html').read_bytes())
        return Response(content, media_type=KINDS[path.suffix], headers=HEADERS)

    async def socket(self, ws: Any) -> None:
        """One viewer, from its token to its end."""
        host, origin = ws.headers.get('host', ''), ws.headers.get('origin')
        if not self._is_ours(host) or origin not in (None, f'http://{host}', f'https://{host}'):
            await ws.close(1008)        # before it is accepted: status 403
            return
        await ws.accept()
        if self.count >= self.door.viewers:
            await ws.close(FULL)
        elif not await self._knows_the_token(ws):
            await ws.close(REFUSED)
        elif self.count >= self.door.viewers:       # while it told the token
            await ws.close(FULL)
        else:
            await self._serve(ws)

    def _is_ours(self, host: str) -> bool:
        """Whether a page may be called so: on the loopback another name is a trick of another site (DNS rebinding)."""
        name = host.rpartition(':')[0] if host.rpartition(':')[2].isdigit() else host
        return not is_loopback(self.door.host) or is_loopback(name.strip('[]'))

    async def _knows_the_token(self, ws: Any) -> bool:
        if not self.door.token:
            return True
        try:
            await ws.send_text('{"kind":"token"}')       # a page without one asks its viewer at once
            said = json.loads(await asyncio.wait_for(ws.receive_text(), GREETING))['token']
            if hmac.compare_digest(said.encode(), self.door.token.encode()):
                return True
        except Exception:       # whatever it was, it was not the token
            pass
        await asyncio.sleep(1.0)        # who guesses has to wait
        return False

    async def _serve(self, ws: Any) -> None:
        viewer, address = Viewer(self._kept), tuple(ws.client or ())
        self._viewers.add(viewer)
        self._served.add(address)
        self.count = len(self._viewers)
        tasks = [asyncio.create_task(self._send(ws, viewer)), asyncio.create_task(self._receive(ws, viewer))]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            code = next((task.result() for task in done if task.exception() is None), 1011)
        finally:
            for task in tasks:
                task.cancel()
            self._viewers.discard(viewer)
            self._served.discard(address)
            self.count = len(self._viewers)
        if code:
            self.dropped += 1
            try:
                await asyncio.wait_for(ws.close(code), 1.0)
            except Exception:       # it is gone
                pass

    async def _send(self, ws: Any, viewer: Viewer) -> int:
        while True:
            for text in await viewer.take():
                try:
                    await asyncio.wait_for(ws.send_text(text), PATIENCE)
                except asyncio.TimeoutError:
                    return 1011

    async def _receive(self, ws: Any, viewer: Viewer) -> int:
        """Until it leaves, 0, or says something that nobody here says."""
        while True:
            message = await ws.receive()
            if message['type'] != 'websocket.receive':
                return 0
            order = self.site.read(message.get('text'))
            if order is None or viewer.floods():
                return BAD
            if len(self.orders) >= MOST_ORDERS:
                viewer.put(f'answer {order.number}', answer_text(order.number, False, 'too many orders wait'))
            else:
                self.orders.append((viewer, order))


def languages() -> dict[str, dict[str, str]]:
    """The page's texts by the code of their language (ISO 639-1) and their key: a file ``texts.CODE.json`` each."""
    return {path.name.split('.')[1]: json.loads(path.read_text(encoding='utf-8'))
            for path in sorted(PAGE.glob('texts.*.json'))}


def answer_text(number: int, success: bool, text: str) -> str:
    """The answer to an order."""
    return json.dumps({'kind': 'answer', 'number': number, 'success': success, 'text': text})


def _made(owner: Server) -> Any:
    """A server of uvicorn with our routes; raises MbseError where a package is absent."""
    try:
        import uvicorn
        import websockets  # noqa: F401
        from starlette.applications import Starlette
        from starlette.routing import Route, WebSocketRoute

        from .display_connections import LimitedConnection, LimitedSocket
    except ImportError as error:
        raise MbseError(f'{error.name or error} is not installed: {HOW}') from error
    routes = [*(Route(path, owner.file, methods=['GET']) for path in (*owner.site.files, TEXTS)),
              WebSocketRoute('/live', owner.socket)]
    http, ws = (type(kind.__name__, (kind,), {'owner': owner}) for kind in (LimitedConnection, LimitedSocket))
    return uvicorn.Server(uvicorn.Config(
        Starlette(routes=routes), http=http, ws=ws, ws_max_size=LONGEST, ws_ping_interval=2.0, ws_ping_timeout=PATIENCE,
        ws_per_message_deflate=False, lifespan='off', log_config=None, log_level='critical', access_log=False,
        server_header=False, proxy_headers=False, h11_max_incomplete_event_size=LONGEST_HEAD,
        timeout_keep_alive=int(GREETING) - 1, loop='asyncio'))
