# SPDX-License-Identifier: Apache-2.0
"""Order of numbered records in a stream: what was repeated, what is missing, when the source started anew."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Verdict:
    """What to do with a record: ``accept`` it or not, treat it as a ``restart``, and why it is not an ordinary one."""

    accept: bool
    restart: bool
    reason: str = ''


class Order:
    """Judges records by their number and time span; time decides, the number tells how many are missing."""

    def __init__(self) -> None:
        self._sequence, self._stop_ns = 0, 0
        self._started = False

    def judge(self, sequence: int, start_ns: int, stop_ns: int, restart: bool) -> Verdict:
        """Verdict on the next record, which spans ``start_ns`` to ``stop_ns``; an accepted one is remembered."""
        verdict = self._judge(sequence, start_ns, stop_ns, restart)
        if verdict.accept:
            self._started, self._sequence, self._stop_ns = True, sequence, stop_ns
        return verdict

    def _judge(self, sequence: int, start_ns: int, stop_ns: int, restart: bool) -> Verdict:
        if not self._started:
            return Verdict(True, True)
        if (sequence, stop_ns) == (self._sequence, self._stop_ns):
            return Verdict(False, False, f'number {sequence} came twice')
        missing = (start_ns - self._stop_ns) * 1e-9
        if restart:
            return Verdict(True, True, f'{missing:.3f} s are missing before number {sequence}' if missing > 0.0 else
                           f'time went back {-missing:.3f} s' if missing < 0.0 else '')
        if start_ns < self._stop_ns:
            return Verdict(False, False, f'number {sequence} begins {-missing:.6f} s before '
                                         f'the end of number {self._sequence}')
        if start_ns == self._stop_ns and sequence == self._sequence + 1:
            return Verdict(True, False)
        lost = sequence - self._sequence - 1
        count = f'{lost} lost' if lost > 0 else 'the source started anew'
        return Verdict(True, True, f'{missing:.3f} s are missing between number '
                                   f'{self._sequence} and number {sequence}: {count}')
