# SPDX-License-Identifier: Apache-2.0
"""The thread of a compiled estimator, as its node has it."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

from ...errors import MbseError


class RosCalls(ctypes.Structure):
    """Addresses of the four functions that loop.c calls, as its mbse_ros_calls."""

    _fields_ = [(name, ctypes.c_void_p) for name in ('take', 'publish', 'listen', 'reset_error')]


def rcl_calls() -> RosCalls:
    """Those of rcl; raises MbseError where its library is not there."""
    try:
        rcl, rcutils = ctypes.CDLL('librcl.so'), ctypes.CDLL('librcutils.so')
        found = (rcl.rcl_take_serialized_message, rcl.rcl_publish_serialized_message,
                 rcl.rcl_subscription_set_on_new_message_callback, rcutils.rcutils_reset_error)
    except (OSError, AttributeError) as error:
        raise MbseError(f'the compiled estimator needs librcl.so of Humble or later: {error}') from error
    return RosCalls(*(ctypes.cast(function, ctypes.c_void_p).value for function in found))


class EstimatorLoop:
    """A compiled estimator (``library`` of `compiled_estimator`) between entities of rcl, by their addresses: the
    ``subscriptions`` in the order of `input_topics`, publishers of ``state`` and ``payload``. Closed once."""

    def __init__(self, library: ctypes.CDLL, calls: RosCalls, subscriptions: Sequence[int], state: int, payload: int
                 ) -> None:
        self._library, self._calls = library, calls
        self._loop = library.mbse_loop_new(ctypes.byref(calls), (ctypes.c_void_p * len(subscriptions))(*subscriptions),
                                           state, payload)
        if not self._loop:
            raise MbseError('no memory for the compiled estimator')
        self._running = self._asked = False

    def start(self) -> None:
        """Serve; raises MbseError where the system has no thread."""
        failed = self._library.mbse_loop_start(self._loop)
        if failed:
            raise MbseError(f'the thread of the compiled estimator did not start: error {failed}')
        self._running = True

    def take(self, topic: int, cdr: bytes) -> None:
        """One message, without the thread."""
        self._library.mbse_loop_take(self._loop, topic, cdr, len(cdr))

    def reset(self) -> None:
        """Forget state and mass before the next message."""
        self._library.mbse_loop_reset(self._loop)

    def look(self, use: Callable[[Any], None]) -> bool:
        """Numbers that were asked for at the last look, to ``use`` now; whether there were any. Else asks for them."""
        found = self._library.mbse_loop_look(self._loop) if self._asked else None
        if found:
            use(found.contents)
            self._asked = False
            return True
        if not self._asked:
            self._library.mbse_loop_want(self._loop)
            self._asked = True
        return False

    def stop(self, at_once: bool = False) -> None:
        """End the thread, which takes what waits, unless ``at_once``."""
        if self._running:
            self._running = False
            self._library.mbse_loop_stop(self._loop, int(at_once))

    def close(self) -> None:
        """End it and free its memory."""
        self.stop(at_once=True)
        self._library.mbse_loop_free(self._loop)
