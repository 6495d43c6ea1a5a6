# SPDX-License-Identifier: Apache-2.0
"""What remains of a log: of its Outputs columns of numbers, not the mean and covariance of each step."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np

from ..bags.series import TruthSeries
from ..errors import MbseError
from ..machine import Machine
from ..monitor.clocks import Elapsed, elapsed_at
from ..monitor.faults import Fault
from ..payload.mass import Cause
from ..payload.tool_force import ToolForce
from ..report.result import Result
from ..simulation.truth import KINDS
from ..streams.pipeline import Output
from ..streams.records import ObserverStatus, PayloadStatus
from .log_loads import WeighedLoad
from .log_samples import Growing

LONGEST_HOLE_NS = 100_000_000
COLUMNS = (*KINDS, 'payload')
CHUNK = 256             # outputs that wait to become rows
FAR = 6.0               # standard deviations; hard steps of the valve reach 12 on a model that fits
SHOWN = 3       # reasons, the longest first
SURE = 5.0      # standard deviations of a force that is not chance
HELP = {
    PayloadStatus.TOO_SLOW: 'move a cylinder that carries the load faster than payload.min_speed, for 2 s and more',
    PayloadStatus.OUTSIDE_STROKE: 'keep the pistons off the ends of their strokes (payload.stroke_margin)',
    PayloadStatus.NOT_OBSERVABLE: 'move to a pose in which the load presses on a cylinder (payload.max_sample_share)',
    PayloadStatus.ACCELERATING: 'move more evenly, or raise payload.max_acceleration_share',
    PayloadStatus.CHANGING: 'move on for 2 s with the same load',
    PayloadStatus.CONTACT: 'lift the load clear of what it touches',
    PayloadStatus.IMPLAUSIBLE: 'compare the data with the machine: mbse check-data BAG --machine M',
    PayloadStatus.NO_DATA: 'see what the observer says; mbse check-data BAG --machine M compares data and machine'}
ONE_WAY = 0.95       # share of the samples of the mass in one direction: all but noise
ONE_LIFT = ('Friction and load cannot be separated by one lift: both push against the piston. The mass rests on the '
            "friction in the machine's file; only a run that also lowers the load can check it.")
FASTER = 'send this sensor more often, or move more slowly'


class KeptNumber(NamedTuple):
    """A number of each Output that is kept, and its unit, SI; ``placed``: JSON and series have a place for it, others
    are columns under their names."""

    unit: str
    of: Callable[[Output], float]
    placed: bool = False


# A line here is a column of the result of `estimate`: of JSON (--full), of `series()`, and so of tables and figures.
NUMBERS = {
    'nis': KeptNumber('1', lambda output: output.state.nis, True),
    'nis_dof': KeptNumber('1', lambda output: output.state.nis_dof, True),
    'mass': KeptNumber('kg', lambda output: output.payload.mass, True),
    'lower': KeptNumber('kg', lambda output: output.payload.lower, True),
    'upper': KeptNumber('kg', lambda output: output.payload.upper, True),
    'raw': KeptNumber('kg', lambda output: output.payload.raw, True),
    'low_passed': KeptNumber('kg', lambda output: output.payload.low_passed, True)}
FORCE_PARTS = *'xyz', 'component'       # of the force at the tool, kept where there is one, with deviations, ...
FORCE_SHOWN = *FORCE_PARTS, 'size'      # ... and with those of its size, ...
DIRECTION_STDDEV = 'tool_force_stddev/direction'    # ... and how uncertain its direction is
OF_EACH = 'mass', 'lower', 'upper', 'raw'       # kept of each of several payloads, as `mass/NAME`


def unit_of(column: str) -> str:
    """Unit of a column, SI."""
    if column == DIRECTION_STDDEV:
        return 'rad'
    return NUMBERS[column].unit if column in NUMBERS else 'N' if column.startswith('tool_force') else 'kg'


@dataclass(frozen=True)
class States:
    """At the ends of the segments: ``mean``, ``variance`` (n, nx) of the state, ``measured``, ``innovation``,
    ``innovation_stddev`` (n, channels); ``share`` (n, channels): samples in the segment, 1 or less; ``numbers`` (n,) by
    the names of NUMBERS, which are attributes, too."""

    mean: np.ndarray
    variance: np.ndarray
    measured: np.ndarray
    innovation: np.ndarray
    innovation_stddev: np.ndarray
    share: np.ndarray
    numbers: Mapping[str, np.ndarray]

    def __getattr__(self, name: str) -> np.ndarray:
        if name not in NUMBERS:
            raise AttributeError(name)
        return self.numbers[name]

    @property
    def columns(self) -> dict[str, np.ndarray]:
        """Numbers (n,) that are columns under their names."""
        return {name: values for name, values in self.numbers.items()
                if name not in NUMBERS or not NUMBERS[name].placed}


@dataclass(frozen=True)
class Track:
    """One row for each segment: ``start_ns``, ``stamp_ns``, ``length_ns``, ``restart`` (n,), status and reason of
    observer and payload (n,), the reasons as places among ``reasons``, their faults as bits of ``Fault``; the ``last``
    Output whole.

    ``far``, ``worst``, ``worst_at`` (channels,): how many innovations lie beyond FAR, the farthest in standard
    deviations, and its row. ``largest_force``: that at the tool with the largest part that is not chance, and its row;
    ``force_seconds``, s: by the reason why there was none ('': there was), and whether a contact was noticed.
    ``signs`` (2, state): how many entries of the state were above and below 0 where samples went into the mass.
    ``states``: None where they were not kept.
    """

    start_ns: np.ndarray
    stamp_ns: np.ndarray
    length_ns: np.ndarray
    restart: np.ndarray
    observer_status: np.ndarray
    observer_reason: np.ndarray
    status: np.ndarray
    reason: np.ndarray
    reasons: tuple[str, ...]
    observer_faults: np.ndarray
    faults: np.ndarray
    far: np.ndarray
    worst: np.ndarray
    worst_at: np.ndarray
    last: Output
    signs: np.ndarray
    largest_force: tuple[int, ToolForce] | None = None
    force_seconds: Mapping[tuple[str, bool], float] = field(default_factory=dict)
    states: States | None = None

    @classmethod
    def of(cls, outputs: Iterable[Output], states: bool = True) -> Track:
        """Of Outputs, one or more."""
        tracker = Tracker(states)
        for output in outputs:
            tracker.add(output)
        return tracker.track()

    def __len__(self) -> int:
        return len(self.stamp_ns)

    @cached_property
    def elapsed(self) -> np.ndarray:
        """Time from the start of the log to the stamps (n,), s, on the axis of ``Elapsed``."""
        return elapsed_at(self.start_ns, self.stamp_ns, self.restart) * 1e-9

    @cached_property
    def with_pauses(self) -> np.ndarray:
        """The same by the stamps (n,), s: with all pauses, where the clock was not set back."""
        return elapsed_at(self.start_ns, self.stamp_ns, np.zeros(len(self), bool)) * 1e-9

    @cached_property
    def clock(self) -> Elapsed:
        """The stamps on that axis."""
        found, starts = Elapsed(), np.flatnonzero(self.restart | (np.arange(len(self)) == 0))
        for first, last in zip(starts, np.append(starts[1:], len(self)) - 1):
            found.add(int(self.start_ns[first]), int(self.stamp_ns[last]), True)
        return found

    @property
    def status_words(self) -> tuple[str, ...]:
        """Status (n) of the payload, the words of PayloadStatus in small letters."""
        words = {int(status): status.name.lower() for status in PayloadStatus}
        return tuple(words[status] for status in self.status.tolist())


class Tracker:
    """Takes Outputs, keeps a ``Track`` of them; with ``states`` some 50 numbers of each, else five."""

    def __init__(self, states: bool = True) -> None:
        self._states, self._waiting, self._count = states, list[Output](), 0
        self._rows: dict[str, Growing] = defaultdict(Growing)
        self._wide: dict[str, Growing] = defaultdict(Growing)
        self._numbers: dict[str, Growing] = defaultdict(Growing)
        self._reasons: dict[str, int] = {}
        self._far = self._worst = self._worst_at = np.zeros(0)
        self._signs: np.ndarray | int = 0
        self._largest: tuple[int, ToolForce] | None = None
        self._largest_size, self._force_seconds = 0.0, defaultdict[tuple[str, bool], float](float)

    def __len__(self) -> int:
        return self._count + len(self._waiting)

    def add(self, output: Output) -> None:
        """The next one."""
        self._waiting.append(output)
        if len(self._waiting) > CHUNK:      # the last one of all is still there at the end
            self._settle(self._waiting[:CHUNK])
            del self._waiting[:CHUNK]

    def track(self) -> Track:
        """Of all that came, one or more; ends the taking."""
        last = self._waiting[-1]
        self._settle(self._waiting)
        states = None
        if self._states:
            numbers = {name: rows.array for name, rows in self._numbers.items()}
            states = States(**{name: rows.array for name, rows in self._wide.items()}, numbers=numbers)
        return Track(**{name: rows.array for name, rows in self._rows.items()}, reasons=tuple(self._reasons),
                     far=self._far, worst=self._worst, worst_at=self._worst_at, last=last,
                     signs=np.asarray(self._signs), largest_force=self._largest,
                     force_seconds=dict(self._force_seconds), states=states)

    def _settle(self, outputs: list[Output]) -> None:
        """Outputs become rows."""
        states, payloads, segments = zip(*((o.state, o.payload, o.segment) for o in outputs))
        innovation, stddev = np.array([s.innovation for s in states]), np.array([s.innovation_stddev for s in states])
        self._judge(np.abs(innovation / stddev))
        mean, weighed = np.array([s.mean[-1] for s in states]), [p.status is PayloadStatus.UPDATING for p in payloads]
        self._signs = self._signs + np.array([(mean[weighed] > 0.0).sum(axis=0), (mean[weighed] < 0.0).sum(axis=0)])
        length = np.array([len(segment.values) for segment in segments], np.int64)
        step = np.array([segment.step_ns for segment in segments], np.int64)
        _put(self._rows, start_ns=np.array([segment.start_ns for segment in segments], np.int64),
             stamp_ns=np.array([s.stamp_ns for s in states], np.int64), length_ns=length * step,
             restart=np.array([segment.restart for segment in segments], bool),
             observer_status=np.array([s.status for s in states], np.int8), observer_reason=self._codes(states),
             status=np.array([p.status for p in payloads], np.int8), reason=self._codes(payloads),
             observer_faults=np.array([s.faults for s in states], np.uint32),
             faults=np.array([p.faults for p in payloads], np.uint32))
        if self._states:
            _put(self._wide, mean=mean,
                 variance=np.array([np.diag(s.covariance) for s in states]),
                 measured=np.array([s.measured for s in states]), innovation=innovation, innovation_stddev=stddev,
                 share=np.minimum(length[:, None] / np.maximum([segment.repeats for segment in segments], 1), 1.0))
            _put(self._numbers, **{name: np.array([number.of(output) for output in outputs], float)
                                   for name, number in NUMBERS.items()})
            _put(self._numbers, **{f'{kind}/{name}': np.array([getattr(p.payloads[name], kind) for p in payloads])
                                   for name in payloads[0].payloads for kind in OF_EACH})
        forces = [p.tool_force for p in payloads if p.tool_force is not None]
        if forces:
            values = np.array([[*f.force, f.component, *f.stddev, f.component_stddev] for f in forces]).T
            self._judge_forces(forces, values)
            for f, p, seconds in zip(forces, payloads, (length * step * 1e-9).tolist()):
                self._force_seconds['' if f.known else f.reason, p.status is PayloadStatus.CONTACT] += seconds
            if self._states:
                names = [f'tool_force{kind}/{name}' for kind in ('', '_stddev') for name in FORCE_PARTS]
                points = [f.pointing for f in forces]
                _put(self._numbers, **dict(zip(names, values)), **{
                    'tool_force/size': np.array([point.size for point in points]),
                    'tool_force_stddev/size': np.array([point.size_stddev for point in points]),
                    DIRECTION_STDDEV: np.array([point.direction_stddev for point in points])})
        self._count += len(outputs)

    def _judge(self, ratio: np.ndarray) -> None:
        """Innovations (k, channels), standard deviations."""
        ratio[~np.isfinite(ratio)] = 0.0
        at, columns = ratio.argmax(axis=0), np.arange(ratio.shape[1])
        if not self._count:
            self._far, self._worst, self._worst_at = 0 * at, ratio[at, columns], at
        self._far = self._far + (ratio > FAR).sum(axis=0)
        farther = ratio[at, columns] > self._worst
        self._worst = np.where(farther, ratio[at, columns], self._worst)
        self._worst_at = np.where(farther, at + self._count, self._worst_at)

    def _judge_forces(self, forces: list[ToolForce], values: np.ndarray) -> None:
        """Forces at the tool, their parts and the deviations of these (8, n), N."""
        size, stddev = np.abs(values[:len(FORCE_PARTS)]), values[len(FORCE_PARTS):]
        size = np.max(size, axis=0, where=size > SURE * stddev, initial=0.0)
        k = int(size.argmax())
        if size[k] > self._largest_size:
            self._largest, self._largest_size = (self._count + k, forces[k]), float(size[k])

    def _codes(self, items: tuple[object, ...]) -> np.ndarray:
        """Places of their reasons."""
        return np.array([self._reasons.setdefault(item.reason, len(self._reasons)) for item in items],  # type: ignore
                        np.int32)


def _put(columns: dict[str, Growing], **found: np.ndarray) -> None:
    for name, rows in found.items():
        columns[name].extend(rows)


def coasting_lines(who: str, status: np.ndarray, length_ns: np.ndarray, t: np.ndarray, reason: Callable[[int], str]
                   ) -> list[str]:
    """How long ``who`` coasted without a sensor or was lost, by its status (n,), over ``length_ns`` each, first when,
    ``t`` (n,), s, and why: a line each."""
    lines = []
    for kind, word in ((ObserverStatus.COASTING, 'coasted'), (ObserverStatus.LOST, 'was lost')):
        found = np.flatnonzero(status == kind)
        if len(found):
            why = reason(int(found[0]))
            lines.append(f'the {who} {word} for {int(length_ns[found].sum()) * 1e-9:.2f} s in all, first at '
                         f't = {t[found[0]]:.2f} s{": " if why else ""}{why}')
    return lines


def held_seconds(track: Track) -> dict[PayloadStatus, float]:
    """s of the log by status of the payload, the longest first."""
    statuses, first = np.unique(track.status, return_index=True)
    found = {PayloadStatus(int(status)): float(np.cumsum(track.length_ns[track.status == status] * 1e-9)[-1])
             for status in statuses[np.argsort(first)]}
    return dict(sorted(found.items(), key=lambda item: -item[1]))


def held_lines(track: Track) -> list[str]:
    """The longest reasons for which the mass was held, each with what helps."""
    held = [(status, seconds) for status, seconds in held_seconds(track).items() if status in HELP][:SHOWN]
    return [f'held for {seconds:.1f} s: {reason or status.name.lower()}; '
            f'{FASTER if Fault.RARE in faults else HELP[status]}'
            for (reason, faults), status, seconds in ((_reason(track, s), s, t) for s, t in held)]


def _reason(track: Track, status: PayloadStatus) -> tuple[str, Fault]:
    """The most common one of a status, of several the first, and its faults."""
    rows = np.flatnonzero(track.status == status)
    codes, first, counts = np.unique(track.reason[rows], return_index=True, return_counts=True)
    best = np.lexsort((first, -counts))[0]
    return track.reasons[codes[best]], Fault(int(track.faults[rows[first[best]]]))


@dataclass(frozen=True, repr=False)
class KeptEstimate(Result):
    """What was kept of a log of a machine: ``track``, with innovations; ``recorded``: the truth that the bag has;
    ``warnings``: what was odd; ``seconds`` that reading and estimating took; ``counted``: loads as ``weigh_bags`` has
    them, or ``uncounted``: why there are none; ``budget``: what makes the mass at the end uncertain, kg, the largest
    first, and ``budgets`` of several by name; ``doubts``: what is wrong with the log, so that its masses, whatever
    their status, are not to be trusted; ``facts``: of what log by what tuning, for the report; ``times`` (k,): those of
    arrays, of a bag None."""

    machine: Machine
    track: Track
    recorded: TruthSeries | None
    warnings: tuple[str, ...] = field()     # without a default, although the base has one
    seconds: float
    counted: tuple[WeighedLoad, ...]
    budget: tuple[Cause, ...]
    doubts: tuple[str, ...] = ()
    uncounted: str = ''
    facts: Mapping[str, str] = field(default_factory=dict)
    times: np.ndarray | None = None
    budgets: Mapping[str, tuple[Cause, ...]] = field(default_factory=dict)

    @property
    def t(self) -> np.ndarray:
        """Times (k,), s: of the arrays, of a bag from its start."""
        return self.track.elapsed if self.times is None else self.times

    @property
    def last(self) -> Output:
        """The last segment, whole."""
        return self.track.last

    @property
    def states(self) -> States:
        """State, innovations and mass at the stamps; raises MbseError where they were not kept."""
        if self.track.states is None:
            raise MbseError('the states of the log were not kept')
        return self.track.states

    @cached_property
    def stddev(self) -> np.ndarray:
        """Standard deviations (k, l) of the state."""
        return np.sqrt(self.states.variance)

    @property
    def log_seconds(self) -> float:
        """What the log covers, s: the sum of its segments, without pauses and steps of its clock."""
        return int(self.track.length_ns.sum()) * 1e-9


def truth_at(truth: TruthSeries | None, machine: Machine, stamps_ns: np.ndarray) -> TruthSeries | None:
    """Truth at stamps (n,), ns: linear between those recorded, NaN outside them and in holes of more than 0.1 s.

    None where there is none, or it is of a machine with other independent coordinates or volumes.
    """
    if truth is None or (truth.cylinders, truth.volumes) != (machine.coordinates, machine.volumes):
        return None
    known, rows = np.unique(truth.stamp_ns, return_index=True)
    after = np.clip(np.searchsorted(known, stamps_ns), min(1, len(known) - 1), len(known) - 1)
    hole = (known[after] - known[np.maximum(after - 1, 0)] > LONGEST_HOLE_NS) & (known[after] != stamps_ns)
    t, wanted = (known - known[0]) * 1e-9, np.where(hole, np.nan, (stamps_ns - known[0]) * 1e-9)

    def at(column: np.ndarray) -> np.ndarray:
        flat = column[rows].reshape(len(known), -1).T
        values = np.array([np.interp(wanted, t, row, left=np.nan, right=np.nan) for row in flat])
        return values.T.reshape(len(stamps_ns), *column.shape[1:])

    columns = {name: at(getattr(truth, name)) for name in COLUMNS}
    return TruthSeries(stamps_ns, truth.cylinders, volumes=truth.volumes, **columns)


def one_way(estimate: KeptEstimate) -> bool:
    """Whether every coordinate that a cylinder moves went one way in the samples of the mass."""
    machine, names = estimate.machine, estimate.last.state.names
    signs = estimate.track.signs[:, [names.index(f'velocity/{machine.coordinates[k]}') for k in machine.actuated]]
    weighed = signs.sum(axis=0)
    return bool(weighed.all()) and bool((signs.max(axis=0) > ONE_WAY * weighed).all())
