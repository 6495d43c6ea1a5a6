# SPDX-License-Identifier: Apache-2.0
"""Start, spin and stop a node the same way in every executable; its process as the system runs it.

Real-time priority, processors and locked memory begin when the nodes serve: what they compile at their start must not
keep others from a processor. What the system refuses is an error in the log and a warning in the diagnostics as long as
the process lives; the estimates go on.
"""

from __future__ import annotations

import ctypes
import gc
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterable, Sequence
from errno import EPERM
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import rclpy
from rcl_interfaces.msg import SetParametersResult
from rclpy.clock import Clock, ClockType
from rclpy.exceptions import NameValidationException, ParameterException
from rclpy.impl.implementation_singleton import rclpy_implementation
from rclpy.logging import get_logger
from rclpy.parameter import Parameter
from rclpy.signals import SignalHandlerOptions
from rclpy.task import Future

from ...compiled.cache import remove_temporary
from ...doctor.checks import OK
from ...doctor.computer import memory_check, memory_mend, priority_mend
from ...errors import MbseError, SettingError
from .middleware import _Executor, farewell, persistent
from .node_settings import LifecycleSettings
from .parameters import checked_request

T = TypeVar('T', int, str)
THREADS = Path('/proc/self/task')
MOST = 10_000               # processors
CURRENT_AND_FUTURE = 3      # MCL_CURRENT | MCL_FUTURE of mlockall(2)
BAD_START = 2
OURS = MbseError, ParameterException, NameValidationException     # what was given cannot be used
LONGEST_WAIT = 0.1      # s between two looks at the signals
TURN = 60.0             # s


def processors(text: str) -> set[int]:
    """Numbers of the processors in a list as taskset's, '0,2-3'; raises SettingError where it is none, or one is not
    there or not for this process."""
    own, found = os.sched_getaffinity(0), set()
    for part in text.split(','):
        first, dash, last = part.strip().partition('-')
        last = last if dash else first
        if not (first.isdecimal() and last.isdecimal() and int(first) <= int(last)):
            raise SettingError('cpu_affinity', text, 'processors as 1 or 0,2-3')
        found |= set(range(int(first), min(int(last), int(first) + MOST) + 1))
    if not found <= own:
        raise SettingError('cpu_affinity', text, f'processors of this process: {", ".join(map(str, sorted(own)))}')
    return found


class RealTime:
    """What the nodes of one process ask for; raises SettingError where two differ, or for processors that are not
    there.

    ``words``: what is in force; ``refused``: what is not, and the way out, '' where nothing.
    """

    def __init__(self, settings: Iterable[LifecycleSettings]) -> None:
        asked = [item for item in settings if isinstance(item, LifecycleSettings)]
        self._priority = _one('thread_priority', {item.thread_priority for item in asked} - {0}) or 0
        cores = _one('cpu_affinity', {item.cpu_affinity.strip() for item in asked} - {''})
        self._processors = processors(cores) if cores else set()
        self._lock = any(item.lock_memory for item in asked)
        self.words, self.refused = 'as any other program', ''

    def begin(self) -> None:
        """Ask the system for it, for all threads of the process and those that they begin."""
        done, refused = [], []
        for wanted, call, words, mend in (
                (self._processors, self._set_processors, f'processors {_list(self._processors)}', 'ask for others'),
                (self._priority, self._set_priority, f'SCHED_FIFO {self._priority}', priority_mend(self._priority)),
                (self._lock, _lock_memory, 'memory locked', memory_mend())):
            if wanted:
                try:
                    call()
                    done.append(words)
                except OSError as error:
                    refused.append(f'{words}: refused ({error.strerror}); {mend}')
        self.words = ', '.join(done) or ('none' if refused else self.words)
        self.refused = '; '.join(refused)

    def _set_processors(self) -> None:
        _each_thread(lambda thread: os.sched_setaffinity(thread, self._processors))

    def _set_priority(self) -> None:
        _each_thread(lambda thread: os.sched_setscheduler(thread, os.SCHED_FIFO, os.sched_param(self._priority)))


def _one(name: str, values: set[T]) -> T | None:
    """The value that is asked for, None without one."""
    if len(values) > 1:
        raise SettingError(name, ' and '.join(map(str, sorted(values))), 'one value for all nodes of a process')
    return next(iter(values), None)


def _each_thread(call: Callable[[int], object]) -> None:
    for thread in sorted(int(path.name) for path in THREADS.iterdir()):
        try:
            call(thread)
        except ProcessLookupError:      # it has just ended
            continue


def _lock_memory() -> None:
    # With a limit, memory that is asked for later would be refused, in the middle of the work.
    if memory_check().status != OK:
        raise PermissionError(EPERM, os.strerror(EPERM))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mlockall(CURRENT_AND_FUTURE):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def _list(numbers: Iterable[int]) -> str:
    return ','.join(map(str, sorted(numbers)))


class Stop:
    """Whether a signal ``asked`` the process to end, and whether a further one asks it to end ``at_once``, without what
    still waits."""

    def __init__(self) -> None:
        self.asked = self.at_once = False

    def __call__(self, *_: object) -> None:
        """Signal handler."""
        self.at_once = self.asked
        self.asked = True


STOP = Stop()


class Runnable:
    """What `run` asks of a node; each default does nothing.

    ``exit_status`` ends the process soon after a callback has set it. ``hurried``: a callback may make something due at
    once, which `tick` has to do; else callbacks run one after the other for ``longest_wait``, s, without a look at it.
    """

    exit_status: int | None = None
    hurried = True
    longest_wait = LONGEST_WAIT
    real_time: RealTime | None = None       # while it serves
    publishers: Iterable[Any]               # this and what follows is that of the rclpy node which a child is, too
    get_logger: Callable[[], Any]
    get_name: Callable[[], str]
    create_timer: Callable[..., Any]
    destroy_node: Callable[[], None]
    has_parameter: Callable[[str], bool]
    describe_parameter: Callable[[str], Any]
    get_parameter: Callable[[str], Parameter]

    def create_service(self, srv_type: type, srv_name: str, callback: Callable[[Any, Any], Any], **more: Any) -> Any:
        """As rclpy's, which makes the services of parameters by it, too: these refuse what would end the process."""
        callback = checked_request(srv_name, callback)
        return super().create_service(srv_type, srv_name, callback, **more)     # type: ignore[misc]

    def set_parameters_atomically(self, parameter_list: list[Parameter]) -> SetParametersResult:
        """As rclpy's; what is fixed at the start may be set to what it is: a node takes its own dump."""
        changed = [item for item in parameter_list if not self._is_fixed_so(item)]
        if parameter_list and not changed:
            return SetParametersResult(successful=True)
        return super().set_parameters_atomically(changed)       # type: ignore[misc]

    def _is_fixed_so(self, given: Parameter) -> bool:
        if not self.has_parameter(given.name) or not self.describe_parameter(given.name).read_only:
            return False
        own = self.get_parameter(given.name)
        return bool(own.type_ is given.type_ and own.value == given.value)

    def create_publisher(self, *args: Any, **more: Any) -> Any:
        """As rclpy's; a message that the middleware does not take at once is published again."""
        return self.lasting(super().create_publisher(*args, **more))    # type: ignore[misc]

    def lasting(self, publisher: Any) -> Any:
        """The publisher, which tries again where the middleware is busy."""
        return persistent(publisher, lambda text: self.get_logger().warning(text))

    @classmethod
    def main(cls, args: Sequence[str] | None = None) -> NoReturn:
        """Entry point of the executable."""
        run(cls, args)

    def start(self) -> None:
        """Called once before the first callback."""

    def tick(self) -> float | None:
        """Do what is due by the clock; return the seconds until the next time, None: only messages count."""
        return None

    def do_rest(self) -> None:
        """Called once when no callback can come any more: do what has come, and publish what comes of it."""

    def finish(self) -> None:
        """Called once after that."""


def one_line(error: Exception) -> str:
    """The text of an error of rclpy, which draws where in a name the fault is, without its drawing."""
    return ' '.join(str(error).replace('^', ' ').split()) if isinstance(error, NameValidationException) else str(error)


def run(make_node: Callable[[], Runnable], args: Sequence[str] | None = None) -> NoReturn:
    """Serve ``make_node()``, see `run_together`."""
    run_together(lambda: (make_node(),), getattr(make_node, '__name__', 'mbse_ros'), args)


def run_together(make_nodes: Callable[[], Sequence[Runnable]], name: str, args: Sequence[str] | None = None
                 ) -> NoReturn:
    """Serve nodes until SIGINT, SIGTERM or an ``exit_status``, and end the process with that status.

    They start in the order in which they are given. ``name``: of the log, until there are nodes.
    A machine file or parameter that cannot be used is a fatal line in the log and status 2.
    The signals are ours, not rclpy's, which takes the context away under a running callback.
    """
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, STOP)
    nodes: Sequence[Runnable] = ()
    status = BAD_START
    try:
        rclpy.init(args=args, signal_handler_options=SignalHandlerOptions.NO)
        nodes = make_nodes()
        status = 1
        _serve(nodes)
        status = next(filter(None, (node.exit_status for node in nodes)), 0)
        for node in nodes:
            node.destroy_node()
        rclpy.try_shutdown()
    except Exception as error:
        if isinstance(error, OURS) or status == BAD_START and isinstance(error, rclpy_implementation.RCLError):
            get_logger(nodes[0].get_name() if nodes else name).fatal(one_line(error))
        else:
            status = 1
            traceback.print_exc()
    # Not through the end of the interpreter: in one of twenty the executor and the garbage collector hang there.
    sys.stdout.flush()
    sys.stderr.flush()
    remove_temporary()
    os._exit(status)


def _serve(nodes: Sequence[Runnable]) -> None:
    try:
        for node in nodes:
            node.start()
        _begin_real_time(nodes)
        _spin(nodes)
        for node in nodes:
            node.do_rest()
        farewell([publisher for node in nodes for publisher in node.publishers])
    finally:
        for node in nodes:
            node.finish()


def _begin_real_time(nodes: Sequence[Runnable]) -> None:
    """What the parameters of the nodes ask of the system; each node reports it."""
    found = RealTime(node.settings for node in nodes if hasattr(node, 'settings'))
    found.begin()
    for node in nodes:
        node.real_time = found
    if found.refused:
        nodes[0].get_logger().error(found.refused)


class Turns:
    """Runs callbacks for long: to leave EventsExecutor after each one and enter it again costs as much as they do.

    It looks at the time only where no callback waits, so a timer of the first node does the ticks, and ends the turn
    where a signal or a node asks for it. Each entry costs 32 bytes that rclpy does not give back (7.1.5, 9.1.2).
    """

    def __init__(self, executor: Any, nodes: Sequence[Runnable]) -> None:
        self._executor, self._nodes, self._over, self._due = executor, nodes, Future(), 0.0
        look = min(LONGEST_WAIT, *(node.longest_wait for node in nodes))
        nodes[0].create_timer(look, self._look, clock=Clock(clock_type=ClockType.STEADY_TIME))

    def __call__(self, seconds: float) -> None:
        """The next turn; the nodes have just had their ticks, and need the next one in so many seconds."""
        self._over, self._due = Future(), time.monotonic() + seconds
        self._executor.spin_until_future_complete(self._over, TURN)

    def _look(self) -> None:
        if asked_to_end(self._nodes):
            self._over.set_result(None)
        elif (now := time.monotonic()) >= self._due:
            self._due = now + ticked(self._nodes)


def asked_to_end(nodes: Sequence[Runnable]) -> bool:
    """Whether a signal or a node asks for the end."""
    return STOP.asked or any(node.exit_status is not None for node in nodes)


def ticked(nodes: Sequence[Runnable]) -> float:
    """Give each node its tick; seconds until the next one is due."""
    return min((due for node in nodes if (due := node.tick()) is not None), default=LONGEST_WAIT)


def _spin(nodes: Sequence[Runnable]) -> None:
    """Callbacks and ticks until a signal or a node itself ends them.

    One at a time where a node is ``hurried``: a tick needs the turn. With a limit: a wait without one in EventsExecutor
    (Jazzy, Kilted), like its spin(), does not end on a signal.
    """
    executor = _Executor()
    for node in nodes:
        executor.add_node(node)
    turn = executor.spin_once if any(node.hurried for node in nodes) else Turns(executor, nodes)
    gc.freeze()     # what the start has made stays: the collector need not walk through it between two messages
    while not asked_to_end(nodes):
        due = ticked(nodes)
        try:
            turn(min(due, LONGEST_WAIT))
        except rclpy_implementation.RCLError as error:      # an answer whose client is gone, or a busy middleware
            if not rclpy.ok():
                raise
            nodes[0].get_logger().error(f'the middleware refused: {one_line(error)}')
    for node in nodes:
        executor.remove_node(node)
    executor.shutdown()
