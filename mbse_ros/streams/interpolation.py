# SPDX-License-Identifier: Apache-2.0
"""Samples of several sensors, each at its own times, to segments on one time grid.

Time. The grid is at start + k step and goes on from segment to segment: a segment starts where the one before
ended, unless ``restart`` is set. It starts at the first instant at which every input has sent a sample. Integer ns.

Segments. A segment ends near the next sample of the slowest channel: it aims at the latest of the channels' next
samples, takes from each channel the sample nearest to that, and ends at the last grid instant that all of them cover.
So sensors that share a stamp, or nearly, give one segment per period, released as the last of them arrives; a phase
between sensors costs at most that phase. A segment is never longer than the largest gap. What is released depends on
the stamps alone, not on the order in which the inputs' samples arrive, as long as no input is given up and no command
comes later than it is waited for.

Values. Linear between consecutive samples of a channel, exact at a sample. A sample that is NaN says that the sensor
has no value: both intervals that touch it are missing (NaN), and nobody waits for a better one. An interval longer than
``max_gap`` is missing; so is one of more than a third of it that is more than 2.5 times as long as the two before it: a
sensor of 10 Hz may jitter and lose a sample, one of 100 Hz has paused. ``repeats`` is the sample interval over the
step, at least 1: so many steps share one sample's information and are to be weighed with repeats times the sample's
variance. Where a sample says that it is less exact than the channel's noise it is that times its ``share``.

Commands are held: a step has the newest command with a stamp at or before it. A command that comes at a third of the
slowest sensor's rate or faster is waited for, and so is one whose rate is not known yet, until a sensor has sent a
sample ``command_wait`` after the segment: one that is only sent when it changes must not stop the stream. A rarer one
is held without waiting. Where a command arrives after its segment it counts from the next one, and ``late`` counts the
steps that had the one before it. Nothing is released
before every command has been received once.

Losses. An input that stays silent while a channel sends for ``lost_after`` is given up: no longer waited for, a
channel's values are NaN, a command's are held. It returns with its next sample; a channel has values from its second
one on. A channel that has never sent is awaited without end (a wrong topic must not pass for a dead sensor): see
``waiting_for``. What waits meanwhile is bounded by ``lost_after``.
Where no channel has values, since all intervals are missing, the next segment has ``restart`` set and a grid of its
own.

Late samples. With ``delay`` above 0 all samples wait until one has come that is so much newer, and are taken in the
order of their stamps: what comes late or out of order by less is used.

Delays. From the stamps of a sensor whose file states a ``delay`` that is taken off first: its samples count when what
they measure was. Segments are released by so much later. What is late or silent is found by the stamps as they were
sent.

Clock. A repeated or backward stamp is refused. Two samples of an input in sequence that lie more than a third of
``max_gap`` back mean that the clock went back (a bag played in a loop): all starts again there, the first refused
sample included.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import index as integer
from types import MappingProxyType

import numpy as np

from ..errors import SampleError
from ..monitor.channels import DroppedSamples
from ..monitor.clocks import LIMIT, Clocks
from ..settings import Settings, setting
from .channel_buffer import SHORT, ChannelBuffer, Reorder
from .records import Segment
from .regular import LARGEST, SegmentBlock, periods, regular_rows, take_rows
from .segment_grid import SegmentGrid

SHORTEST_STEP, LONGEST_STEP = 2e-4, 2e-3    # s, between which a step changes no result (docs/figures.md)


@dataclass(frozen=True)
class InterpolationSettings(Settings):
    """Tuning of the interpolation."""

    step: float = setting(0.001, 'step of the grid that the observer runs on', 's', SHORTEST_STEP, LONGEST_STEP)
    max_gap: float = setting(0.3, 'Longest interval that is interpolated, of a slow sensor; of faster ones a third '
                                  'of it. If all sensors are silent for longer, the estimate starts again', 's',
                                  0.001, 10.0)
    delay: float = setting(0.0, 'How late or out of order a sample may come; every segment waits so long. 0: '
                                'samples of each sensor must come in order', 's', 0.0, 1.0)
    lost_after: float = setting(0.5, 'A sensor or command that is silent for so long while others send counts as '
                                     'lost', 's', 0.01, 60.0)
    command_wait: float = setting(0.05, 'Longest wait of a segment for a command; a later one counts from the next '
                                        'segment on', 's', 0.0, 60.0)


class Interpolator:
    """Turns samples, one at a time, into segments; see the module's text for the rules.

    ``channels`` (at least one) are interpolated, ``commands`` held: the columns of the segments, in this order.
    ``clocks`` says which of them have a clock that is not that of the others: where it is ahead, it is the others that
    seem to be silent. ``delays``, ns: by how much the stamps of channels are later than what they measure.
    """

    def __init__(self, channels: Sequence[str], commands: Sequence[str] = (),
                 settings: InterpolationSettings = InterpolationSettings(),
                 delays: Mapping[str, int] = MappingProxyType({})) -> None:
        self.channels, self.commands = tuple(channels), tuple(commands)
        self._dropped = DroppedSamples(channels, commands, LARGEST)
        self._grid, self._delayed = SegmentGrid(self.channels, self.commands, delays), any(delays.values())
        self._inputs = self._grid.inputs()
        self._reorder = Reorder()
        self.clocks = Clocks()
        self.configure(settings)

    def configure(self, settings: InterpolationSettings) -> None:
        """Use other settings from the next segment on; the grid goes on from its last instant."""
        self.settings = settings
        step, self._gap, self._patience, wait = (round(1e9 * value) for value in (
            settings.step, settings.max_gap, settings.lost_after, settings.command_wait))
        self._short = self._gap // SHORT
        self._grid.configure(step, self._gap, wait, self._patience)
        self._reorder.delay = round(1e9 * settings.delay)

    def reset(self) -> None:
        """Forget all samples and which inputs have sent; ``dropped`` and the segments' sequence go on."""
        self._grid.reset()
        self._reorder.reset()
        self.clocks.reset()
        self._inputs = self._grid.inputs()

    @property
    def dropped(self) -> dict[str, int]:
        """Samples that were not used, by reason, since the interpolator was made."""
        return dict(+(self._dropped.dropped + self._grid.dropped))

    @property
    def late(self) -> dict[str, int]:
        """By command, how many steps had another one because it came after their segment, since the interpolator was
        made."""
        return dict(+self._grid.late)

    @property
    def lost(self) -> tuple[str, ...]:
        """Inputs that have fallen silent and are not waited for."""
        return tuple(name for name, buffer in self._inputs.items() if buffer.lost)

    @property
    def waiting_for(self) -> tuple[str, ...]:
        """Inputs without which nothing goes on: before the start all that are missing, then the one awaited next."""
        return self._grid.waiting_for

    def add(self, channel: str, stamp_ns: int, value: float, share: float = 1.0) -> tuple[Segment, ...]:
        """Take one sample (stamp in ns, value in SI; NaN: missing); returns the segments that it completes.

        ``share``: the information of so many samples of the channel's own noise, 1 to 1000, is one of this and the next
        ones.

        Raises SampleError (unknown channel, value infinite or beyond ``LARGEST``, command not finite, stamp repeated or
        backward): the sample is dropped and counted, the stream goes on.
        """
        stamp = integer(stamp_ns)
        self._dropped.check(channel, stamp, value)
        buffer = self._inputs[channel]
        buffer.share = share
        self.clocks.take(channel, stamp)
        if not self._reorder.delay:
            return self._add(buffer, stamp, value)
        found: list[Segment] = []
        for name, at, sample in self._reorder.add(channel, stamp, value):
            found.extend(self._add(self._inputs[name], at, sample))
        return tuple(found)

    def add_all(self, samples: Iterable[tuple[str, int, float]], refuse: Callable[[SampleError], None]
                ) -> list[Segment]:
        """The segments that samples complete, as by ``add``, in a third of the time; ``refuse`` gets what it raises."""
        found: list[Segment] = []
        inputs, grid, take, patience = self._inputs, self._grid, self.clocks.take, self._patience
        for channel, stamp, value in samples:
            buffer = inputs.get(channel)
            if (buffer is None or stamp - buffer.delay <= buffer.newest or not abs(value) < LARGEST or buffer.lost
                    or self._reorder.delay):
                try:
                    found.extend(self.add(channel, stamp, value))
                except SampleError as error:
                    refuse(error)
                continue
            buffer.share = 1.0
            take(channel, stamp)
            buffer.suspect = None
            stamp -= buffer.delay
            buffer.append(stamp, value)
            if stamp - buffer.stamps[0] >= patience:
                self._give_up_silent(buffer)
            elif not grid.may_release(buffer):
                continue
            found.extend(grid.release(buffer))
        return found

    def add_block(self, names: Sequence[str], places: np.ndarray, stamps: np.ndarray, values: np.ndarray,
                  refuse: Callable[[SampleError, int], None]) -> list[Segment | SegmentBlock]:
        """The same of samples as arrays (n,): ``places`` among ``names``, stamps, ns, and values; where all inputs come
        in rows, many segments at a time. ``refuse`` gets the row, too."""
        found: list[Segment | SegmentBlock] = []
        row = 0

        def samples(first: int, stop: int) -> Iterator[tuple[str, int, float]]:
            nonlocal row
            part, row = slice(first, stop), first - 1
            for sample in zip([names[place] for place in places[part].tolist()], stamps[part].tolist(),
                              values[part].tolist()):
                row += 1
                yield sample

        def one_by_one(first: int, stop: int) -> None:
            found.extend(self.add_all(samples(first, stop), lambda error: refuse(error, row)))
        done, count = 0, len(names)
        for first, stop in self._stretches(names, places, stamps, values):
            one_by_one(done, first)
            order = [names[place] for place in places[first:first + count].tolist()]
            while first < stop:
                stretch = self._take_rows(order, stamps[first:stop:count], values[first:stop].reshape(-1, count))
                done = first + count * (1 if stretch is None else len(stretch))
                if stretch is None:
                    one_by_one(first, done)
                else:
                    found.append(stretch)
                first = done
            done = stop
        one_by_one(done, len(stamps))
        return found

    def _stretches(self, names: Sequence[str], places: np.ndarray, stamps: np.ndarray, values: np.ndarray
                   ) -> list[tuple[int, int]]:
        """Where samples come in rows."""
        if (self._reorder.delay or self._delayed or len(names) < 2 or set(names) != set(self._inputs)
                or len(names) != len(self._inputs)):
            return []
        shortest, longest = periods(self._grid)
        return regular_rows(places, stamps, values, len(names), shortest, min(longest, LIMIT))

    def _take_rows(self, names: list[str], stamps: np.ndarray, values: np.ndarray) -> SegmentBlock | None:
        """Segments of the first rows, taken; None where they have to come one by one."""
        stretch = take_rows(self._grid, [self._inputs[name] for name in names], stamps, values)
        if stretch is not None:
            self.clocks.take_rows(names, stamps[:len(stretch)].tolist())
        return stretch

    def flush(self) -> tuple[Segment, ...]:
        """Segments of the samples that wait for late ones, at the end of a log; samples that cannot be used are
        counted."""
        found: list[Segment] = []
        for name, stamp, value in self._reorder.flush():
            try:
                found.extend(self._add(self._inputs[name], stamp, value))
            except SampleError:
                continue
        return tuple(found)

    def _add(self, buffer: ChannelBuffer, stamp: int, value: float) -> tuple[Segment, ...]:
        """Take a sample in its order."""
        stamp -= buffer.delay
        if stamp <= buffer.newest:
            self._take_backward(buffer, stamp, value)
        else:
            if buffer.lost:     # waited for again; its first sample may lie before the grid: it begins an interval then
                self._grid.set_lost(buffer, False)
            buffer.suspect = None
            buffer.append(stamp, float(value))
            if stamp - buffer.stamps[0] >= self._patience:
                self._give_up_silent(buffer)
            elif not self._grid.may_release(buffer):
                return ()
        return self._grid.release(buffer)

    def _give_up_silent(self, sender: ChannelBuffer) -> None:
        """Samples of ``sender`` have waited for long: give up the inputs that were silent meanwhile.

        Commands alone give up no channel; if no channel sends at all the grid ends, to start again later.
        """
        grid, longest = self._grid, min(self._short, self._patience // 2)     # a hole of the sender proves little
        silent = [buffer for buffer in self._inputs.values() if buffer is not sender and buffer.has_sent
                  and not buffer.lost and sender.active_since(
                      buffer.newest + buffer.delay - sender.delay, longest) >= self._patience]
        if not sender.held:
            for buffer in silent:
                grid.set_lost(buffer, True)
        elif grid.cursor is not None and all(buffer in silent for buffer in grid.live):
            grid.stop(sender.newest)
        if grid.cursor is None:
            grid.prune(sender, self._patience, longest)

    def _take_backward(self, buffer: ChannelBuffer, stamp: int, value: float) -> None:
        """Refuse a repeated or backward stamp, unless it is the second one in sequence far back."""
        first, far = buffer.suspect, buffer.newest - stamp > self._short
        if far and first and 0 < stamp - first[0] <= self._gap:
            self._rewind()
            buffer.append(stamp, float(value))
            return
        buffer.suspect = (stamp, float(value)) if far else None
        reason = 'repeated' if stamp == buffer.newest else 'backward'
        raise self._dropped.refusal(reason, buffer.name, stamp + buffer.delay, value,
                                    f'a stamp after {buffer.newest + buffer.delay} ns')

    def _rewind(self) -> None:
        """The clock went back: start again from the samples that showed it."""
        self._grid.stop(None)
        for buffer in self._inputs.values():
            first = buffer.suspect
            buffer.forget()
            if first:
                self._dropped.dropped['backward'] -= 1
                self._grid.set_lost(buffer, False)
                buffer.append(*first)
