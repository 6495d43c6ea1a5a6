# SPDX-License-Identifier: Apache-2.0
"""Work cycles: what the operator's hand does with the valves, and how the stroke's ends are kept clear."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Move:
    """One movement: valve command, V, over ``duration``, s, with ramps of ``ramp``, s, at both ends.

    It ends earlier when the first piston reaches ``until``, as a share of the stroke.
    """

    command: float
    duration: float
    ramp: float = 0.2
    until: float | None = None


@dataclass(frozen=True)
class WorkCycle:
    """Sequence of moves from a start position, as a share of the stroke."""

    start: float
    moves: tuple[Move, ...]

    @property
    def duration(self) -> float:
        """Longest time it takes, s."""
        return sum(move.duration for move in self.moves)


def lift_hold_lower(ramp: float = 0.2, commands: Sequence[float] = (3.0, 5.0, 8.0), start: float = 0.3) -> WorkCycle:
    """Lift, hold, lower at three speeds: 24 s."""
    moves = [Move(0.0, 0.6)]
    for command, duration in zip(commands, (2.9, 2.2, 1.6)):
        moves += [Move(command, duration, ramp), Move(0.0, 1.2),
                  Move(-command, duration + 0.5, ramp, until=start), Move(0.0, 1.2)]
    return WorkCycle(start, (*moves, Move(0.0, max(0.0, 24.0 - sum(m.duration for m in moves)))))


def random_cycle(rng: np.random.Generator, duration: float = 24.0) -> WorkCycle:
    """Random lifts, holds and lowers: speeds, lengths, ramps from 20 ms to 0.5 s."""
    moves, total = [Move(0.0, 0.5)], 0.5
    sign = 1.0 if rng.random() < 0.7 else -1.0
    while total < duration:
        command, length = sign * rng.uniform(2.0, 9.0), rng.uniform(0.8, 3.0)
        move = Move(command, length, float(np.exp(rng.uniform(*np.log([0.02, 0.5])))))
        hold = Move(0.0, rng.uniform(0.0, 1.5))
        moves += [move, hold]
        total += move.duration + hold.duration
        sign = -sign if rng.random() < 0.8 else sign
    return WorkCycle(rng.uniform(0.2, 0.6), tuple(moves))


class Operator:
    """Plays a cycle, watching the first piston: a move ends early at its target or 8 % before an end of the stroke."""

    MARGIN = 0.08

    def __init__(self, cycle: WorkCycle) -> None:
        self.cycle = cycle
        self._index, self._begin, self._end = 0, 0.0, cycle.moves[0].duration

    def command(self, time: float, share: float) -> float:
        """Valve command, V, at ``time``, s, with the piston at ``share`` of its stroke."""
        while time >= self._end - 1e-9:
            if self._index + 1 >= len(self.cycle.moves):
                return 0.0
            self._index += 1
            self._begin, self._end = self._end, self._end + self.cycle.moves[self._index].duration
        move = self.cycle.moves[self._index]
        if move.command != 0.0 and self._must_stop(move, share):
            self._end = min(self._end, time + move.ramp)
        edge = min(time - self._begin, self._end - time)
        return move.command * min(1.0, edge / move.ramp)

    def _must_stop(self, move: Move, share: float) -> bool:
        if move.command > 0:
            return share >= min(1 - self.MARGIN, 1.0 if move.until is None else move.until)
        return share <= max(self.MARGIN, 0.0 if move.until is None else move.until)
