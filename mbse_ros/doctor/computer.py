# SPDX-License-Identifier: Apache-2.0
"""Checks of a computer: clocks (stamps of several computers must be of one time, and a step of the grid is 1 ms), free
room on the disks that are written to, receive buffers of UDP against what the largest messages of a graph take.

Then what keeps the nodes from their turn in time: priority, memory that may be swapped out, slow clocks, load.
"""

from __future__ import annotations

import ctypes
import os
import resource
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from ..bags.storage.disk_room import LEAST_FREE, MB, free_bytes, megabytes
from ..workers import processors
from .checks import FAILS, OK, WARNING, Check

PACKAGE = Path(__file__).resolve().parent.parent
SYNCHRONIZED = Path('/run/systemd/timesync/synchronized')
TIME_ERROR, STA_UNSYNC = 5, 0x40        # of adjtimex(2)
STEP = 1_000_000        # ns, of the grid
FINE = 10_000           # ns
READS, STEPS = 1_000_000, 20      # looks at most, and steps that are enough
SLACK = 3600.0          # s: disks of other computers have their own time
SOURCE = 'another clock source, such as tsc or hpet: /sys/devices/system/clocksource'
SYNCHRONIZE = 'sudo timedatectl set-ntp true, or install chrony'
SCARCE = 1000 * MB      # the cache alone may take so much; a log of an excavator takes some 3 MB/s
SETTINGS = Path('/proc/sys/net/core')
# A state of an excavator (zx200, 10 steps) is 9.2 kB; with a sensor at 10 Hz, 100 steps, ten times as much. The kernel
# charges a datagram with up to twice its size. A reader that gets no turn for 0.1 s finds 10 states of 10 steps or one
# of 100, and those of the sensors and the graph's other topics.
LARGEST = 92_000        # bytes
NEEDED = 2 * LARGEST    # bytes
GENEROUS = 4_194_304    # bytes, what is proposed
CPUS = Path('/sys/devices/system/cpu')
STATUS = Path('/proc/self/status')
PRIORITY = 50           # of SCHED_FIFO, above which the kernel's own threads are
MAY_NICE, MAY_LOCK = 23, 14     # CAP_SYS_NICE, CAP_IPC_LOCK of capabilities(7)
LIMITS = '/etc/security/limits.d/mbse_ros.conf, then log in again'


class _Timex(ctypes.Structure):
    """struct timex of adjtimex(2), with room behind it."""

    _fields_ = [('modes', ctypes.c_uint), ('offset', ctypes.c_long), ('freq', ctypes.c_long),
                ('maxerror', ctypes.c_long), ('esterror', ctypes.c_long), ('status', ctypes.c_int),
                ('rest', ctypes.c_byte * 256)]


def kernel_says() -> tuple[bool, float] | None:
    """Whether the kernel's clock is disciplined, and the largest error it thinks of, s; None: it does not say."""
    try:
        call, found = ctypes.CDLL(None, use_errno=True).adjtimex, _Timex()
        state = call(ctypes.byref(found))       # modes 0: nothing is set
    except (OSError, AttributeError):
        return None
    if state < 0:
        return None
    return state != TIME_ERROR and not found.status & STA_UNSYNC, found.maxerror * 1e-6


def synchronized_check(several: bool, kernel: Callable[[], tuple[bool, float] | None] = kernel_says,
                       mark: Path = SYNCHRONIZED) -> Check:
    """Whether the clock follows a server; a warning only where ``several`` computers may talk."""
    found = kernel()
    if found is not None and found[0]:
        return Check('clock', OK, f'synchronised, error below {found[1]:.3f} s')
    if mark.exists():
        return Check('clock', OK, 'synchronised by systemd-timesyncd')
    text = 'not known whether it is synchronised' if found is None else 'not synchronised'
    if not several:
        return Check('clock', OK, f'{text}; one computer needs no more')
    return Check('clock', WARNING, f'{text}: stamps of other computers may be of another time', SYNCHRONIZE)


def resolution_check(read: Callable[[], int] = time.monotonic_ns) -> Check:
    """The smallest step of the steady clock, ns, as it is seen."""
    steps, last = [], read()
    for _ in range(READS):
        now = read()
        if now != last:
            steps.append(now - last)
        last = now
        if len(steps) == STEPS:
            break
    if any(step < 0 for step in steps):
        return Check('clock steps', FAILS, 'the steady clock runs back', SOURCE)
    least = min(steps, default=None)
    if least is None or least > FINE:
        text = 'stands still' if least is None else f'goes by steps of {least / 1e6:g} ms'
        return Check('clock steps', FAILS if least is None or least >= STEP else WARNING, f'the steady clock {text}',
                     SOURCE)
    return Check('clock steps', OK, f'{least} ns')


def date_check(package: Path = PACKAGE, now: Callable[[], float] = time.time) -> Check:
    """The wall clock is not before the time at which the package was built, as one without a battery is at start."""
    built = max((path.stat().st_mtime for path in package.rglob('*.py')), default=0.0)
    text = time.strftime('%Y-%m-%d %H:%M:%S UTC', time.gmtime(now()))
    if now() < built - SLACK:
        day = time.strftime('%Y-%m-%d', time.gmtime(built))
        return Check('date', FAILS, f'{text} is before the package was made ({day})',
                     f'{SYNCHRONIZE}; or sudo date -s "..."')
    return Check('date', OK, text)


def disk_check(what: str, path: Path, free: Callable[[Path], int] = free_bytes) -> Check:
    """Room at a path: recordings are refused below 50 MB. Raises OSError."""
    left = free(path)
    text = f'{megabytes(left)} free at {path}'
    if left < LEAST_FREE:
        return Check(f'disk, {what}', FAILS, text, f'make room: nothing is recorded below {megabytes(LEAST_FREE)}')
    if left < SCARCE:
        return Check(f'disk, {what}', WARNING, text, 'make room before you record, or write to another disk')
    return Check(f'disk, {what}', OK, text)


def receive_buffer_check(folder: Path = SETTINGS) -> Check:
    """``rmem_default`` is what Fast DDS takes by default, ``rmem_max`` what any DDS may ask for.

    Raises OSError where the system does not say.
    """
    usual, most = (int((folder / name).read_text()) for name in ('rmem_default', 'rmem_max'))
    text = f'net.core.rmem_max {megabytes_or_kb(most)}, rmem_default {megabytes_or_kb(usual)}'
    low = [name for name, value in (('rmem_max', most), ('rmem_default', usual)) if value < NEEDED]
    if low:
        return Check('UDP buffer', WARNING, f'{text}: a large segment and its state take {megabytes_or_kb(NEEDED)}',
                     'sudo sysctl -w ' + ' '.join(f'net.core.{name}={GENEROUS}' for name in low))
    return Check('UDP buffer', OK, f'{text}; a large segment and its state take {megabytes_or_kb(NEEDED)}')


def megabytes_or_kb(count: int) -> str:
    """'213 kB', '4 MB'."""
    return f'{count / 1000:.0f} kB' if count < 1_000_000 else megabytes(count)


def priority_check(limit: int | None = None, able: bool | None = None) -> Check:
    """Whether a node may be given a real-time priority: its parameter ``thread_priority``."""
    limit = resource.getrlimit(resource.RLIMIT_RTPRIO)[0] if limit is None else limit
    able = has_capability(MAY_NICE) if able is None else able
    if able or limit == resource.RLIM_INFINITY or limit >= PRIORITY:
        return Check('real-time priority', OK, f'RLIMIT_RTPRIO {_words(limit)}' + able * ', CAP_SYS_NICE')
    return Check('real-time priority', WARNING, f'RLIMIT_RTPRIO {limit}: nodes wait behind other programs',
                 f'where timing counts: {priority_mend(PRIORITY)}, and thread_priority:={PRIORITY}')


def memory_check(limit: int | None = None, able: bool | None = None) -> Check:
    """Whether a node may be kept from being swapped out: its parameter ``lock_memory``."""
    limit = resource.getrlimit(resource.RLIMIT_MEMLOCK)[0] if limit is None else limit
    able = has_capability(MAY_LOCK) if able is None else able
    text = f'RLIMIT_MEMLOCK {limit if limit == resource.RLIM_INFINITY else megabytes(limit)}'.replace(
        str(resource.RLIM_INFINITY), 'unlimited')
    if able or limit == resource.RLIM_INFINITY:     # with a limit, memory asked for later may be refused
        return Check('locked memory', OK, text + able * ', CAP_IPC_LOCK')
    return Check('locked memory', WARNING, f'{text}: nodes may be swapped out',
                 f'where timing counts: {memory_mend()}; or do without swap')


def priority_mend(priority: int) -> str:
    """What lets a process have a real-time priority."""
    return f'`{_user()} - rtprio {priority}` in {LIMITS}'


def memory_mend() -> str:
    """What lets a process lock all its memory."""
    return f'`{_user()} - memlock unlimited` in {LIMITS}'


def governor_check(folder: Path = CPUS) -> Check:
    """What sets the clocks of the processors."""
    files = folder.glob('cpu[0-9]*/cpufreq/scaling_governor')
    found = Counter(path.read_text().strip() for path in files)
    if not found:
        return Check('CPU governor', OK, 'not shown here, as in most virtual machines')
    text = ', '.join(f'{count} CPUs {name}' for name, count in sorted(found.items()))
    if 'powersave' in found:
        return Check('CPU governor', WARNING, f'{text}: clocks are slow to rise',
                     'sudo cpupower frequency-set -g performance')
    return Check('CPU governor', OK, text)


def processor_check(count: int | None = None, load: float | None = None) -> Check:
    """Processors that this process may use, and how many programs want them (mean of the last minute)."""
    count = processors() if count is None else count
    load = os.getloadavg()[0] if load is None else load
    text = f'{count} CPU{"s" * (count != 1)}, load {load:.2f}'
    if load > count:
        return Check('CPUs', WARNING, f'{text}: more programs than processors', 'end other programs (top shows them)')
    if count < 2:
        return Check('CPUs', WARNING, f'{text}: four nodes share one', 'give the computer or container another one')
    return Check('CPUs', OK, text)


def has_capability(bit: int, status: Path = STATUS) -> bool:
    """Whether this process has a capability of Linux; False where the system does not say."""
    try:
        words = dict(line.split(':', 1) for line in status.read_text().splitlines() if ':' in line)
        return bool(int(words['CapEff'], 16) >> bit & 1)
    except (OSError, KeyError, ValueError):
        return False


def _words(limit: int) -> str:
    return 'unlimited' if limit == resource.RLIM_INFINITY else str(limit)


def _user() -> str:
    return os.environ.get('USER') or f'#{os.getuid()}'
