# SPDX-License-Identifier: Apache-2.0
"""What keeps the nodes from their turn in time: priority, memory that may be swapped out, slow clocks, load."""

from __future__ import annotations

import os
import resource
from collections import Counter
from pathlib import Path

from ..bags.storage.disk_room import megabytes
from ..workers import processors
from .checks import OK, WARNING, Check

CPUS = Path('/sys/devices/system/cpu')
STATUS = Path('/proc/self/status')
PRIORITY = 50           # of SCHED_FIFO, above which the kernel's own threads are
MAY_NICE, MAY_LOCK = 23, 14     # CAP_SYS_NICE, CAP_IPC_LOCK of capabilities(7)
LIMITS = '/etc/security/limits.d/mbse_ros.conf, then log in again'


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
