# SPDX-License-Identifier: Apache-2.0
"""Starts the processes of a graph without ROS launch, with our profile of Fast DDS (quick discovery and repair), shows
their output, restarts what dies, stops all."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ...errors import MbseError
from ...resources import share_directory
from .graph import Graph, Process

# Fast DDS 3 has another name for an element of the profile, and loads nothing of a file with the old one.
FAST_DDS_2_PROFILE = 'FASTRTPS_DEFAULT_PROFILES_FILE', 'fastdds_quick_discovery.xml'
FAST_DDS_3_PROFILE = 'FASTDDS_DEFAULT_PROFILES_FILE', 'fastdds3_quick_discovery.xml'
PROFILE_VARIABLES = FAST_DDS_2_PROFILE[0], FAST_DDS_3_PROFILE[0]
FAST_DDS_2 = ('humble', 'iron', 'jazzy')
POLL = 0.05
RESPAWN_DELAY = 0.1     # s; longer after the first start, twice as long each time a process lives less than STEADY
LONGEST_DELAY = 16.0
STEADY = 15.0           # s
STANDBY_AFTER = 10.0    # s in which the nodes that start need the processor, until a process waits for the next one
NEXT_STANDBY = 3.0      # s after that one has become a node
DRAIN = 1.0             # s that the others get for the last messages after the end of a final process, by ROS launch
LEAVE = 60.0            # s that each of them gets by ours, where one after the other does what it still has to do
# The second signal stops what a node still does with what has come. SIGINT: a traceback while Python still imports.
ESCALATION = ((signal.SIGTERM, 4.0), (signal.SIGTERM, 4.0), (signal.SIGKILL, 5.0))
CHILD, STANDBY = Path(__file__).with_name('child.py'), 'mbse_ros.nodes.graphs.child'
BAD_START = 2           # status of a node that cannot use its machine or parameters: once more would not help


def dds_profile(environment: Mapping[str, str]) -> dict[str, str]:
    """Variable that names our profile for the ROS 2 of an environment (ROS_DISTRO); {} where the user has named one."""
    if any(name in environment for name in PROFILE_VARIABLES):
        return {}
    name, file = FAST_DDS_2_PROFILE if environment.get('ROS_DISTRO') in FAST_DDS_2 else FAST_DDS_3_PROFILE
    return {name: str(share_directory() / 'config' / file)}


def cpu_seconds(pid: int) -> float | None:
    """Seconds that a process, all its threads and the system for it have used so far; None where nothing says it."""
    try:
        fields = Path(f'/proc/{pid}/stat').read_text().rpartition(')')[2].split()
    except OSError:
        return None
    return (int(fields[11]) + int(fields[12])) / os.sysconf('SC_CLK_TCK')


def command(process: Process) -> list[str]:
    """Command line of a process; nodes of this package run in the interpreter in use."""
    if process.package == 'mbse_ros':
        words = [sys.executable, '-m', f'mbse_ros.nodes.{process.executable}']
    else:
        words = [found(process)]
    words += [*process.arguments, '--ros-args']
    if process.package == 'mbse_ros' and not process.parts:
        words += ['-r', f'__node:={process.name}']
    if process.namespace:
        words += ['-r', f'__ns:=/{process.namespace.strip("/")}']
    for source, target in process.remappings.items():
        words += ['-r', f'{source}:={target}']
    for name, value in (*process.parameters.items(), *process.own_parameters().items()):
        words += ['-p', f'{name}:={parameter_text(value)}']
    for file in process.files:      # last: of two that give the same parameter the later one counts
        words += ['--params-file', file]
    return words


def found(process: Process) -> str:
    """Path of the executable of another package; raises MbseError where it is not installed."""
    path = shutil.which(process.executable)
    if path is None:
        raise MbseError(f'{process.executable} is not installed here (ROS package {process.package})')
    return path


def check_ros(graph: Graph) -> None:
    """Raise MbseError where a graph has nodes of this package and what they import from ROS 2 is not there."""
    if all(process.package != 'mbse_ros' for process in graph.processes):
        return
    for module, what in (('rclpy', 'source a ROS 2'), ('mbse_ros.msg', 'build the package')):
        if find_spec(module) is None:
            raise MbseError(f'the nodes need {module}, which is not found: {what}, or use ./mbse of the source tree, '
                            'which makes its own environment')


def with_parent(process: Process) -> list[str]:
    """Words before a command of a process that shall end with this one, even where this one is killed.

    The signal comes with the death of the thread that starts the process. A recorder has its bag to close; a node may
    be in a function that no signal reaches.
    """
    number = death_signal(process)
    return [sys.executable, '-I', '-S', str(CHILD), str(os.getpid()), str(number)] if number else []


def death_signal(process: Process) -> int:
    """What a process gets when this one dies, 0: nothing can be sent."""
    if not sys.platform.startswith('linux'):
        return 0
    return int(signal.SIGTERM if process.executable == 'recorder_node' else signal.SIGKILL)


def up(graph: Graph, write: Callable[[str], None] = print, duration: float | None = None) -> int:
    """Run a graph until SIGINT, SIGTERM, the end of its final process or ``duration``, s; 0 when all went well, 2
    where a node cannot start with its arguments, which ends it at once.

    Must run in the main thread. ``write`` gets each line of output with the process's name before it. Raises MbseError
    where a node cannot be imported, with or without another start.
    """
    check_ros(graph)
    stop = threading.Event()
    old = {number: signal.signal(number, lambda *_: stop.set()) for number in (signal.SIGINT, signal.SIGTERM)}
    running = RunningGraph(graph, write)
    try:
        end = None if duration is None else time.monotonic() + duration
        running.start()
        while running.step() and not stop.wait(POLL) and (end is None or time.monotonic() < end):
            pass
    finally:
        running.stop()
        for number, handler in old.items():
            signal.signal(number, handler)
    return running.status


class RunningGraph:
    """Processes of a graph while they run: `start`, `step` now and then, `stop`.

    ``children`` holds the running processes by name; ``status`` is 0 as long as nothing failed for good, 2 where a node
    could not use its arguments at its first start.
    """

    def __init__(self, graph: Graph, write: Callable[[str], None] = print,
                 environment: Mapping[str, str] | None = None) -> None:
        self.children: dict[str, subprocess.Popen[str]] = {}
        self.status = 0
        self._processes = {process.name: process for process in graph.processes}
        self._commands = {name: command(process) for name, process in self._processes.items()}
        self._environment = {**dds_profile(os.environ), **os.environ, 'PYTHONUNBUFFERED': '1', **(environment or {})}
        self._write, self._lock = write, threading.Lock()
        self._width = max(map(len, self._processes), default=0)
        self._due: dict[str, float] = {}
        self._born: dict[str, float] = {}
        self._delay = dict.fromkeys(self._processes, RESPAWN_DELAY)
        self._readers: list[threading.Thread] = []
        self._ours = any(process.package == 'mbse_ros' and process.respawn for process in graph.processes)
        self._standby: subprocess.Popen[str] | None = None
        self._standby_due = time.monotonic() + STANDBY_AFTER
        self._leaving: list[tuple[str, float]] | None = None    # processes that end, the first one by this time, s

    def start(self) -> None:
        """Start all processes."""
        for name in self._processes:
            self._launch(name)

    def step(self) -> bool:
        """Look after the processes; False when the graph is over."""
        if self._leaving is not None:
            return self._leave()
        for name, child in list(self.children.items()):
            code = child.poll()
            if code is not None and not self._ended(name, code):
                return False
        for name, due in list(self._due.items()):
            if time.monotonic() >= due:
                del self._due[name]
                self._launch(name)
        if self._standby is not None and self._standby.poll() is not None:
            self._standby, self._standby_due = None, time.monotonic() + STANDBY_AFTER
        if self._ours and self._standby is None and not self._due and time.monotonic() >= self._standby_due:
            self._standby = self._started([*with_parent(Process('standby', 'standby')), sys.executable, '-m', STANDBY],
                                          stdin=subprocess.PIPE)
        return bool(self.children or self._due)

    def stop(self) -> None:
        """End all processes: SIGTERM, and SIGKILL for those that do not heed it."""
        self._due.clear()
        if self._standby is not None:
            self._standby.kill()
            self._standby.communicate()
        for number, patience in ESCALATION:
            for child in self.children.values():
                if child.poll() is None:
                    child.send_signal(number)
            end = time.monotonic() + patience
            while time.monotonic() < end and any(child.poll() is None for child in self.children.values()):
                time.sleep(POLL)
            late = [name for name, child in self.children.items() if child.poll() is None]
            if not late:
                break
            self._say('up', f'{number.name} was not enough for {", ".join(late)}')
        for name, child in self.children.items():
            early = child.returncode == -signal.SIGTERM      # before it listened
            self._note_status(name, 0 if early else child.returncode)
        self.children.clear()
        for reader in self._readers:
            reader.join(timeout=2.0)

    def _launch(self, name: str) -> None:
        child = self._from_standby(name) or self._started([*with_parent(self._processes[name]), *self._commands[name]])
        self.children[name], self._born[name] = child, time.monotonic()
        self._commands[name] = command(self._processes[name].once_more())
        reader = threading.Thread(target=self._forward, args=(name, child), daemon=True)
        reader.start()
        self._readers.append(reader)

    def _started(self, words: list[str], **more: Any) -> subprocess.Popen[str]:
        # A session of its own: Ctrl-C in the terminal comes to us alone, and we stop the nodes in order.
        return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors='replace',
                                env=self._environment, start_new_session=True, **more)

    def _from_standby(self, name: str) -> subprocess.Popen[str] | None:
        """The process that waits, as this node; None where none does."""
        process, standby = self._processes[name], self._standby
        if standby is None or standby.stdin is None or standby.poll() is not None or process.package != 'mbse_ros':
            return None
        self._standby, self._standby_due = None, time.monotonic() + NEXT_STANDBY
        _, _, module, *arguments = self._commands[name]
        try:
            standby.stdin.write(json.dumps([module, arguments, death_signal(process)]) + '\n')
            standby.stdin.close()
        except OSError:     # somebody has just killed it
            standby.wait()
            return None
        return standby

    def _forward(self, name: str, child: subprocess.Popen[str]) -> None:
        for line in child.stdout or ():
            self._say(name, line.rstrip('\n'))

    def _say(self, name: str, line: str) -> None:
        with self._lock:
            self._write(f'[{name:<{self._width}}] {line}')

    def _ended(self, name: str, code: int) -> bool:
        """Deal with a process that ended by itself; False when the graph is over with it."""
        process = self._processes[name]
        del self.children[name]
        how = 'ended' if code == 0 else f'exit status {code}' if code > 0 else f'killed by {signal.Signals(-code).name}'
        if code == BAD_START and (process.respawn or process.final) and self._delay[name] == RESPAWN_DELAY:
            self._say('up', f'{name} {how}: it cannot start with these arguments; the graph is over')
            self.status = BAD_START
            return False
        if process.final:
            self._say('up', f'{name} {how}: the graph is over')
            self._note_status(name, code)
            self._leaving = [(other.name, 0.0) for other in self._processes.values()
                             if other.name in self.children and other.package == 'mbse_ros']
            return self._leave()
        if process.respawn and code != BAD_START:
            self._say('up', f'{name} {how}: starting it again; the graph continues')
            steady = time.monotonic() - self._born[name] > STEADY
            delay = RESPAWN_DELAY if steady else self._delay[name]
            self._delay[name] = min(2.0 * delay, LONGEST_DELAY)
            self._due[name] = time.monotonic() + delay
            return True
        self._say('up', f'{name} {how}; the graph continues without it')
        self._note_status(name, code)
        return True

    def _leave(self) -> bool:
        """End the nodes in the order in which data go through them, each once it has done what came from those before
        it; False when all have ended. So no result is missing behind a simulation, however busy the computer is."""
        for name, until in self._leaving or ():
            if self.children[name].poll() is not None or 0.0 < until < time.monotonic():
                self._leaving = (self._leaving or [])[1:]
                continue
            if not until:
                self.children[name].terminate()
                self._leaving = [(name, time.monotonic() + LEAVE), *(self._leaving or [])[1:]]
            return True
        return False

    def _note_status(self, name: str, code: int | None) -> None:
        if code != 0:
            self.status = self.status or 1


def parameter_text(value: Any) -> str:
    """A parameter's value as YAML on one line."""
    return json.dumps(float(value) if isinstance(value, float) else value)
