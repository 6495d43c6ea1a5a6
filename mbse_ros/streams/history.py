# SPDX-License-Identifier: Apache-2.0
"""The filter's grid: stamps to instants, measurements by instant, the states to go back to when a sample is late."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from itertools import groupby

import numpy as np

from ..errors import DivergenceError
from ..filters.linkage_settings import LinkageSettings
from ..filters.observer import FilterTuning, LinkageObserver
from .records import Measured, Sampled
from .start import converted_state

CONFIRMED = 3           # samples in sequence out of the grid's reach make a new one
NEAR_NS = 1_000_000_000
MOST_TIMES = 3          # other times that are remembered
NONE = np.zeros(0)      # of an instant that the filter has not reached


class StampStatus(Enum):
    """What to do with a sample by its stamp."""

    USE = 'use'
    LATE = 'later than the delay window'
    AWAY = 'its stamp is out of reach of all others'
    RESTART = 'time has jumped'


class TimeGrid:
    """Grid whose instant 1 is the first sample's; a sample belongs to the nearest instant (an error of half a step)."""

    origin_ns: int

    def __init__(self, step_ns: int) -> None:
        self.step_ns = step_ns
        self._away: list[tuple[int, int]] = []      # other times: their last stamp, and how many agree

    def start(self, stamp_ns: int) -> None:
        """Begin a grid with a sample."""
        self.origin_ns, self._away = stamp_ns - self.step_ns, []

    def index(self, stamp_ns: int) -> int:
        """Nearest instant of a stamp."""
        return (2 * (stamp_ns - self.origin_ns) + self.step_ns) // (2 * self.step_ns)

    def stamp(self, index: int) -> int:
        """Stamp of an instant, ns."""
        return self.origin_ns + index * self.step_ns

    def classify(self, stamp_ns: int, oldest: int, newest: int, reach_ns: int) -> StampStatus:
        """Verdict on a stamp: instants ``oldest`` and before are settled; beyond ``reach_ns`` of the newest one lies
        another time, which counts once CONFIRMED samples agree on it."""
        ahead = stamp_ns - self.stamp(newest)
        if ahead > reach_ns or ahead < -max(NEAR_NS, 2 * (newest - oldest) * self.step_ns):
            return StampStatus.RESTART if self._confirmed(stamp_ns) else StampStatus.AWAY
        self._away = []
        return StampStatus.LATE if self.index(stamp_ns) <= oldest else StampStatus.USE

    def _confirmed(self, stamp_ns: int) -> bool:
        """Whether enough samples agree on another time; those of a third one, of a wrong clock, may lie between."""
        near = next((item for item in self._away if abs(stamp_ns - item[0]) <= NEAR_NS), (0, 0))
        self._away = [*[item for item in self._away if item is not near][-MOST_TIMES:], (stamp_ns, near[1] + 1)]
        return near[1] + 1 >= CONFIRMED


@dataclass(frozen=True)
class TunedFilter:
    """A filter with a tuning: what runs an instant."""

    observer: LinkageObserver
    tuned: FilterTuning


@dataclass
class HistoryEntry:
    """One instant ``index`` of the grid: measurements ``o`` (s,), NaN where missing; ``running``: the filter that runs
    it, and its tuning; ``u``: inputs that change here, by their place; ``state`` and ``output`` of the filter after it,
    ``held`` inputs (k,) in force, NONE before it runs; ``revision``."""

    index: int
    o: np.ndarray
    running: TunedFilter
    u: dict[int, float]
    state: np.ndarray
    output: np.ndarray
    held: np.ndarray
    revision: int = -1


class History:
    """The last instants, one after the other; the oldest is what can be gone back to."""

    def __init__(self, channels: int, inputs: int, base: HistoryEntry) -> None:
        self._shape, self._missing = (channels, inputs), np.full(channels, np.nan)
        self._entries: deque[HistoryEntry] = deque([base])

    @property
    def base(self) -> HistoryEntry:
        """The oldest instant: its measurements are settled."""
        return self._entries[0]

    @property
    def last(self) -> HistoryEntry:
        """The newest instant."""
        return self._entries[-1]

    def __getitem__(self, index: int) -> HistoryEntry:
        return self._entries[index - self.base.index]

    def since(self, index: int) -> list[HistoryEntry]:
        """Entries from an instant on."""
        return [self._entries[i] for i in range(index - self.base.index, len(self._entries))]

    def extend(self, index: int, running: TunedFilter) -> None:
        """Empty instants up to one that is new."""
        for new in range(self.last.index + 1, index + 1):
            self._entries.append(HistoryEntry(new, self._missing.copy(), running, {}, NONE, NONE, NONE))

    def begin(self, index: int, state: np.ndarray, running: TunedFilter) -> None:
        """Settle all up to an instant, after which a filter has this state."""
        held = self.base.held
        while self.base.index < index:
            self._entries.popleft()
            held = _changed(held, self.base.u)      # also of instants that no filter has run
        self._entries[0] = replace(self.base, state=state, running=running, held=held)

    def newest(self, index: int) -> np.ndarray:
        """The last measurements (s,) up to an instant; NaN where there are none."""
        o = self._missing.copy()
        for entry in self._entries:
            if entry.index <= index:
                o = np.where(np.isnan(entry.o), o, entry.o)
        return o

    def latest(self, place: int) -> int:
        """The last instant at which a channel was measured; the oldest one where it was not."""
        return next((entry.index for entry in reversed(self._entries) if entry.o[place] == entry.o[place]),
                    self.base.index)

    def trim(self, count: int) -> None:
        """Keep the base and ``count`` instants after it."""
        while len(self._entries) > count + 1:
            self._entries.popleft()

    def rows(self, entries: Sequence[HistoryEntry], dt: float) -> np.ndarray:
        """Rows ``[o, u, t]`` of entries for the filter; the inputs are held from the entry before."""
        held = self[entries[0].index - 1].held
        rows = np.empty((len(entries), sum(self._shape) + 1))
        s = self._shape[0]
        for row, entry in zip(rows, entries):
            entry.held = held = _changed(held, entry.u)
            row[:s], row[s:-1], row[-1] = entry.o, held, entry.index * dt
        return rows


def _changed(held: np.ndarray, u: Mapping[int, float]) -> np.ndarray:
    """Inputs (k,) of which some change, by their place."""
    if u:
        held = held.copy()
        held[list(u)] = list(u.values())
    return held


class HeldInputs:
    """``start`` (k,): in force before the grid begins. Those that are ahead of the grid wait."""

    def __init__(self, count: int) -> None:
        self.start = np.zeros(count)
        self._waiting: list[tuple[int, int, float]] = []        # instant, place, value

    def add(self, index: int, place: int, value: float) -> None:
        """An input of an instant."""
        self._waiting.append((index + 1, place, value))

    def placed(self, history: History) -> int | None:
        """Put them into those of their instants that are there: the first one that they change, or the one after the
        newest; None where nothing waits."""
        if not self._waiting:
            return None
        first = after = history.last.index + 1
        ahead = []
        for item in self._waiting:
            index, place, value = item
            if index < after:
                index = max(index, history.base.index + 1)
                history[index].u[place] = value
                first = min(first, index)
            else:
                ahead.append(item)
        self._waiting = ahead
        return first


def propagate(before: HistoryEntry, entries: Sequence[HistoryEntry], rows: np.ndarray,
              settings: LinkageSettings) -> bool:
    """Give entries after ``before`` their states from rows ``[o, u, t]``; False where they are not finite."""
    start = 0
    for _, group in groupby(entries, key=lambda entry: id(entry.running)):
        part = list(group)
        running, stop = part[0].running, start + len(part)
        try:
            _, outputs, states = running.observer.steps(_converted(before, running, settings), rows[start:stop],
                                                        running.tuned.flat)
        except DivergenceError:
            return False
        if not (np.isfinite(states).all() and np.isfinite(outputs).all()):
            return False
        for entry, state, output in zip(part, states, outputs):
            entry.state, entry.output, entry.revision = state, output, entry.revision + 1
        before, start = part[-1], stop
    return True


def _converted(entry: HistoryEntry, running: TunedFilter, settings: LinkageSettings) -> np.ndarray:
    """State of an instant for the filter of the next one."""
    old, new = entry.running.observer, running.observer
    if old is new:
        return entry.state
    out = old.filter.outputs.arrays(entry.output)
    return converted_state(old.filter, entry.state, out, new.filter, entry.index * new.dt, settings, new.tangents)


def sampled(history: History, entry: HistoryEntry) -> Sampled:
    """What the filter made of the samples of an instant."""
    out = entry.running.observer.outputs(entry.output)
    measured = tuple(Measured.MISSING if o != o else Measured.USED if used > 0.5 else Measured.REJECTED
                     for o, used in zip(entry.o.tolist(), out['used'].tolist()))
    after = history[entry.index + 1].held if entry.index < history.last.index else entry.held
    return Sampled(entry.o, measured, np.where(np.isnan(entry.o), np.nan, out['innovation']),
                   np.sqrt(np.fmax(out['innovation_variance'], 0.0)), (entry.held + after) / 2)
