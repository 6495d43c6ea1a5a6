# SPDX-License-Identifier: Apache-2.0
"""Start, spin and stop a node the same way in every executable."""

from __future__ import annotations

import signal
from collections.abc import Callable, Sequence

import rclpy
from rclpy.exceptions import ParameterException
from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor
from rclpy.logging import get_logger

from ..errors import MbseError

try:
    from rclpy.experimental import EventsExecutor as _Executor
except ImportError:   # Humble
    _Executor = SingleThreadedExecutor

BAD_START = 2


class Runnable:
    """What `run` asks of a node; each default does nothing.

    ``exit_status`` ends the process as soon as a callback sets it.
    """

    exit_status: int | None = None

    def start(self) -> None:
        """Called once before the first callback."""

    def tick(self) -> float | None:
        """Do what is due by the clock; return the seconds until the next time, None: only messages count."""
        return None

    def finish(self) -> None:
        """Called once when no callback can come any more; signals no longer interrupt."""


def run(make_node: Callable[[], Runnable], args: Sequence[str] | None = None) -> int:
    """Serve ``make_node()`` until SIGINT, SIGTERM or its ``exit_status``; return the status for the shell.

    A machine file or parameter that cannot be used is a fatal line in the log and status 2.
    """
    rclpy.init(args=args)
    node: Runnable | None = None
    try:
        node = make_node()
        node.start()
        _spin(node)
    except (KeyboardInterrupt, ExternalShutdownException):
        pass
    except (MbseError, ParameterException) as error:
        get_logger(_name(make_node, node)).fatal(str(error))
        return BAD_START
    except Exception:
        if rclpy.ok():   # else the context vanished under a wait or a publish: a signal, no fault
            raise
    finally:
        # No destroy_node(): a second Ctrl-C (the terminal's and launch's) would land in it as a traceback.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        if node is not None:
            node.finish()
        rclpy.try_shutdown()
        signal.signal(signal.SIGINT, signal.SIG_IGN)   # rclpy put the old one back
    return node.exit_status or 0


def _spin(node: Runnable) -> None:
    """Callbacks and ticks until the context or the node ends.

    One at a time: EventsExecutor.spin() hangs in the wheels of Jazzy and Kilted, and a tick needs the turn anyway.
    """
    executor = _Executor()
    executor.add_node(node)
    while rclpy.ok() and node.exit_status is None:
        executor.spin_once(timeout_sec=node.tick())


def _name(make_node: Callable[[], Runnable], node: Runnable | None) -> str:
    return node.get_name() if node is not None else getattr(make_node, '__name__', 'mbse_ros')
