# SPDX-License-Identifier: Apache-2.0
"""Connections of the display's server: so many and no more, and none that asks for nothing."""

from __future__ import annotations

import asyncio
from typing import Any, Protocol

from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

GREETING = 5.0          # s: a connection without the next request is closed after so long


class ConnectionOwner(Protocol):
    """The server: it counts connections."""

    def enter(self, connection: Any) -> None:
        """One more."""

    def leave(self, connection: Any) -> None:
        """It is gone."""

    def end(self, connection: Any) -> None:
        """Its time is over."""


class LimitedConnection(H11Protocol):       # type: ignore[misc]
    """As uvicorn's, which limits a connection only until its first byte: within GREETING each has to ask for a file,
    and to take it, or to become a WebSocket, whatever comes in pieces meanwhile."""

    owner: ConnectionOwner
    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        """Take it; another one may have to go for it."""
        super().connection_made(transport)
        self._wait()
        self.owner.enter(self)

    def on_response_complete(self) -> None:
        """The time for the next request begins."""
        super().on_response_complete()
        self._wait()

    def handle_websocket_upgrade(self, event: Any) -> None:
        """From here on it is of another protocol."""
        self._forget()
        super().handle_websocket_upgrade(event)

    def connection_lost(self, exc: Exception | None) -> None:
        """It is gone."""
        self._forget()
        self.owner.leave(self)
        super().connection_lost(exc)

    def _wait(self) -> None:
        self._forget()
        self._timer = self.loop.call_later(GREETING, self.owner.end, self)

    def _forget(self) -> None:
        if self._timer is not None:
            self._timer.cancel()


class LimitedSocket(WebSocketsSansIOProtocol):      # type: ignore[misc]
    """As uvicorn's; it takes the place of the connection that it was."""

    owner: ConnectionOwner

    def connection_made(self, transport: Any) -> None:
        """It is open already."""
        super().connection_made(transport)
        self.owner.enter(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """It is gone; uvicorn wants it in its list."""
        self.connections.add(self)
        self.owner.leave(self)
        super().connection_lost(exc)
