# SPDX-License-Identifier: Apache-2.0
"""Work cycles: what the operator's hands do with each valve and drive, and how the stroke's ends are kept clear."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from ..errors import SettingError

CYCLES = ('lift_hold_lower', 'random', 'boom', 'dig')
DURATION = 24.0     # s
FASTEST = 9.0       # V, of random commands
HARD, GENTLE = (0.02, 0.5), (0.2, 0.6)      # s: ramps of valves and swings, and of the joints of an arm


@dataclass(frozen=True)
class Move:
    """One movement: command, V (of a drive: speed, SI), over ``duration``, s, with ramps of ``ramp``, s, at both ends.

    It ends earlier when the piston reaches ``until``, as a share of the stroke; the next one begins then, or where the
    cycle is ``timed``, when the duration is over.
    """

    command: float
    duration: float
    ramp: float = 0.2
    until: float | None = None


@dataclass(frozen=True)
class WorkCycle:
    """Moves of each control from a start position.

    ``start``: shares of the strokes, one for all cylinders or by name; ``moves`` of the first valve, ``others`` of the
    rest, by the names of valves and drives; ``load``: times, s, and what share of the payload hangs on the machine
    then, linear between them; ``soil``: the same of the force of the soil.
    """

    start: float | Mapping[str, float]
    moves: tuple[Move, ...]
    others: Mapping[str, tuple[Move, ...]] = field(default_factory=dict)
    load: tuple[tuple[float, float], ...] = ((0.0, 1.0),)
    timed: bool = False
    soil: tuple[tuple[float, float], ...] = ((0.0, 0.0),)

    @property
    def duration(self) -> float:
        """Longest time it takes, s."""
        return max(sum(move.duration for move in moves) for moves in (self.moves, *self.others.values()))

    def soil_at(self, time: float) -> float:
        """Share of the soil's force that pushes at a time, s."""
        return float(np.interp(time, *np.array(self.soil, dtype=float).T))

    def share_of(self, cylinder: str) -> float:
        """Where a piston starts, as a share of its stroke."""
        return self.start if isinstance(self.start, float) else self.start.get(cylinder, 0.3)

    def load_at(self, time: float) -> float:
        """Share of the payload that hangs on the machine at a time, s."""
        return float(np.interp(time, *self._loads))

    @cached_property
    def _loads(self) -> np.ndarray:
        return np.array(self.load, dtype=float).T.copy()

    def repeated(self, count: int) -> WorkCycle:
        """The cycle so many times; each begins where the one before ended."""
        length = self.duration
        load = [(k * length + t, share) for k in range(count if len(self.load) > 1 else 1) for t, share in self.load]

        def filled(moves: tuple[Move, ...]) -> tuple[Move, ...]:
            rest = length - sum(move.duration for move in moves)
            return (*moves, *((Move(0.0, rest),) if rest > 0 else ())) * count
        soil = [(k * length + t, share) for k in range(count) for t, share in self.soil]
        return WorkCycle(self.start, filled(self.moves), {name: filled(moves) for name, moves in self.others.items()},
                         tuple(load), self.timed, tuple(soil))


def lift_hold_lower(ramp: float = 0.2, commands: Sequence[float] = (3.0, 5.0, 8.0), start: float = 0.3) -> WorkCycle:
    """Lift, hold, lower at three speeds by the first valve: 24 s."""
    moves = [Move(0.0, 0.6)]
    for command, duration in zip(commands, (2.9, 2.2, 1.6)):
        moves += [Move(command, duration, ramp), Move(0.0, 1.2),
                  Move(-command, duration + 0.5, ramp, until=start), Move(0.0, 1.2)]
    return WorkCycle(start, (*moves, Move(0.0, max(0.0, DURATION - sum(m.duration for m in moves)))))


def random_cycle(rng: np.random.Generator, duration: float = DURATION, others: Sequence[str] = (),
                 drives: Sequence[str] = ()) -> WorkCycle:
    """Random lifts, holds and lowers, of each valve its own: speeds, lengths, ramps from 20 ms to 0.5 s."""
    moves = _random_moves(rng, duration)
    start = rng.uniform(0.2, 0.6)
    more = {name: _random_moves(rng, duration) for name in others}
    more |= {name: _random_moves(rng, duration, 0.05) for name in drives}
    return WorkCycle(start, moves, more)


def joints_cycle(rng: np.random.Generator, speeds: Sequence[float], names: Sequence[str], duration: float = DURATION
                 ) -> WorkCycle:
    """Random moves of all joints of an arm at once, to and fro, up to ``speeds``, rad/s or m/s."""
    moves = {name: _random_moves(rng, duration, speed / FASTEST, GENTLE) for name, speed in zip(names, speeds)}
    return WorkCycle(0.5, moves.pop(names[0]), moves)


def _random_moves(rng: np.random.Generator, duration: float, scale: float = 1.0, ramps: tuple[float, float] = HARD
                  ) -> tuple[Move, ...]:
    moves, total = [Move(0.0, 0.5)], 0.5
    sign = 1.0 if rng.random() < 0.7 else -1.0
    while total < duration:
        command, length = scale * sign * rng.uniform(2.0, FASTEST), rng.uniform(0.8, 3.0)
        move = Move(command, length, float(np.exp(rng.uniform(*np.log(ramps)))))
        hold = Move(0.0, rng.uniform(0.0, 1.5))
        moves += [move, hold]
        total += move.duration + hold.duration
        sign = -sign if rng.random() < 0.8 else sign
    return tuple(moves)


def dig(valves: Mapping[str, str], drives: Sequence[str]) -> WorkCycle:
    """Dig, lift, swing, dump and back, with a load taken and dropped: 22 s.

    ``valves``: by cylinder the name of its valve. Raises SettingError where boom, arm or bucket is missing.
    """
    if not {'boom', 'arm', 'bucket'} <= valves.keys():
        raise SettingError('cycle', 'dig', 'another cycle: this one takes cylinders named boom, arm and bucket, not '
                           + ', '.join(valves))
    hold = Move(0.0, 1.0)
    boom = (hold, Move(0.0, 4.5), Move(6.5, 3.0, 0.4, 0.75), Move(0.0, 5.5), Move(-5.0, 3.5, 0.4, 0.3), Move(0.0, 4.5))
    arm = (hold, Move(6.0, 3.5, 0.3, 0.8), Move(0.0, 6.5), Move(-6.0, 3.0, 0.3, 0.3), Move(0.0, 8.0))
    bucket = (hold, Move(0.0, 1.0), Move(6.0, 3.0, 0.3, 0.85), Move(0.0, 5.5), Move(-7.0, 3.0, 0.3, 0.2),
              Move(0.0, 8.5))
    swing = (hold, Move(0.0, 5.5), Move(0.4, 3.0, 0.8), Move(0.0, 4.0), Move(-0.4, 3.0, 0.8), Move(0.0, 5.5))
    others = {valves['arm']: arm, valves['bucket']: bucket, **{name: swing for name in drives}}
    load = ((0.0, 0.0), (3.0, 0.0), (5.0, 1.0), (11.0, 1.0), (12.5, 0.0))
    soil = ((0.0, 0.0), (1.5, 0.0), (2.0, 1.0), (4.5, 1.0), (5.0, 0.0))
    return WorkCycle({'boom': 0.35, 'arm': 0.35, 'bucket': 0.25}, boom, others, load, True, soil)


class Operator:
    """Plays the moves of one control, watching its piston: a move ends early at its target or 8 % before an end."""

    MARGIN = 0.08

    def __init__(self, moves: tuple[Move, ...], timed: bool = False) -> None:
        self.moves, self._timed = moves, timed
        self._index, self._begin, self._end = 0, 0.0, moves[0].duration
        self._slot = self._end

    def command(self, time: float, share: float) -> float:
        """Command at ``time``, s, with the piston at ``share`` of its stroke."""
        while time >= self._slot - 1e-9:
            if self._index + 1 >= len(self.moves):
                return 0.0
            self._index += 1
            self._begin = self._slot
            self._end = self._slot = self._begin + self.moves[self._index].duration
        move = self.moves[self._index]
        if move.command != 0.0 and self._must_stop(move, share):
            self._end = min(self._end, time + move.ramp)
            self._slot = self._slot if self._timed else self._end
        edge = max(min(time - self._begin, self._end - time), 0.0)
        return move.command * min(1.0, edge / move.ramp)

    def _must_stop(self, move: Move, share: float) -> bool:
        if move.command > 0:
            return share >= min(1 - self.MARGIN, 1.0 if move.until is None else move.until)
        return share <= max(self.MARGIN, 0.0 if move.until is None else move.until)
