# SPDX-License-Identifier: Apache-2.0
"""Connections of the display's server: so many and no more, and none that says nothing."""

from __future__ import annotations

from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

from .display_server import CONNECTIONS, GREETING


class LimitedConnection(H11Protocol):       # type: ignore[misc]
    """As uvicorn's; it has no limit of connections that never ask for anything."""

    _refused = False

    def connection_made(self, transport: Any) -> None:
        """Take it, or close it at once."""
        if len(self.connections) >= CONNECTIONS:
            self._refused = True
            transport.abort()
            return
        super().connection_made(transport)
        self.loop.call_later(GREETING, self._silent)

    def connection_lost(self, exc: Exception | None) -> None:
        """Nothing is left of one that was refused."""
        if not self._refused:
            super().connection_lost(exc)

    def _silent(self) -> None:
        """Close one that has not asked for anything; a WebSocket has a protocol of its own by now."""
        if self.cycle is None and self in self.connections:
            self.transport.abort()
