# SPDX-License-Identifier: Apache-2.0
"""Connections to the operator's page, for its tests."""

from websockets.sync import client


def upgrade(port):
    """What a browser sends to open a WebSocket."""
    return (f'GET /live HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n'
            'Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\n\r\n').encode()


def opened(server, **more):
    return client.connect(f'ws://127.0.0.1:{server.port}/live', **more)
