# SPDX-License-Identifier: Apache-2.0
"""Receive buffers of UDP against what the largest messages of a graph take."""

from __future__ import annotations

from pathlib import Path

from ..bags.storage.disk_room import megabytes
from .checks import OK, WARNING, Check

SETTINGS = Path('/proc/sys/net/core')
# A state of an excavator (zx200, 10 steps) is 9.2 kB; with a sensor at 10 Hz, 100 steps, ten times as much. The kernel
# charges a datagram with up to twice its size. A reader that gets no turn for 0.1 s finds 10 states of 10 steps or one
# of 100, and those of the sensors and the graph's other topics.
LARGEST = 92_000        # bytes
NEEDED = 2 * LARGEST    # bytes
GENEROUS = 4_194_304    # bytes, what is proposed


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
