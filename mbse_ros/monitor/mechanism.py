# SPDX-License-Identifier: Apache-2.0
"""How far the state of a mechanism is to be trusted, and which coordinates are to start again: decided coordinate by
coordinate, by what sees it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from math import isfinite, nan, sqrt
from typing import NamedTuple

import numpy as np

from ..compiled import Kernel
from ..description.coordinate_units import measured_unit
from ..filters.linkage_settings import LinkageSettings
from ..filters.observability.mechanism import ACCELERATION, POSITION, VELOCITY
from ..filters.parts.problem import Problem
from .bounds import Bounds, mechanism_ends
from .channels import LASTING, PATIENCE, ChannelMonitor
from .faults import NONE, Fault, ObserverStatus, reason_of
from .state import Assessment, Said, StateMonitor
from .steps import FEWEST, JumpCheck
from .units import UnitRatio

STEP, HIGHEST = 10.0, 1e9       # by which it is raised each time, and at most
LONGEST = 7         # times that the wait until it falls is doubled
NONSENSE = 1e3      # times the unknown speed of a start: a standard deviation that says nothing


class MechanismState(NamedTuple):
    """Entries ``names`` (l,) of a filter at a time, s, with their covariance (l, l), coordinates and velocities (n,),
    and the samples ``o`` (s,)."""

    t: float
    names: Sequence[str]
    q: np.ndarray
    qd: np.ndarray
    covariance: np.ndarray
    o: Sequence[float]


class MechanismMonitor(StateMonitor[MechanismState]):
    """Watches the samples of a problem's channels and the states that follow from them."""

    def __init__(self, problem: Problem) -> None:
        self.observed, self.problem = ObservedCoordinates(problem), problem
        self._stddev = problem.stddev.tolist()
        units = [UnitRatio(measured_unit(problem.model.description, name.partition('.')[0]), angular)
                 for name, angular in zip(problem.channels, problem.angular)]
        watch = ChannelMonitor(problem.channels, mechanism_ends(problem, self._stddev), (), self._seen_by_others,
                               JumpCheck(problem.angular), units)
        super().__init__(watch, self._lost, self._settling, self._doubtful)     # it settles before samples are asked
        self.bounds = Bounds(problem.model)
        self._settings = LinkageSettings()
        self.reset()

    def reset(self) -> None:
        """As before the first sample."""
        self.watch.reset()
        self.bounds.reset()
        self._restarts, self.in_row, self.raised, self._raised_by = 0, 0, 1.0, ''
        self._episodes, self._peak, self._since = 0, 1.0, 0.0
        self._now = 0.0, self.problem.model.start.q, self.problem.model.start.qd
        self.begin(0.0, 0.0)

    def begin(self, t: float, settling: float, why: str = '', faults: Fault = NONE) -> None:
        """A state (re)starts at a time, s, and settles for so long; ``why``, ``faults``: of a restart."""
        self.start, self._settled, self._why, self._lowered = t, t + settling, why, t
        self._faults = faults | Fault.SETTLING
        self._restarts += bool(why)
        self.watch.begin()

    def raise_noise(self, by: Sequence[int]) -> bool:
        """Count a restart by channels; whether ``raised``, the factor of the noise of the motion, has risen: it rises
        where restarts follow each other, until the filter follows its sensors, and at once as far as before."""
        self._since = self._now[0] if not self.in_row else self._since
        self.in_row += 1
        lasts = self.in_row >= PATIENCE and self._now[0] - self._since >= LASTING * self._settings.lost_after
        if not (lasts or self._peak > 1.0) or self.raised >= HIGHEST:
            return False
        self._episodes += self.raised == 1.0
        self.raised = self._peak = max(self.raised * STEP, self._peak if self.raised == 1.0 else 1.0)
        self._raised_by = ', '.join(self.problem.channels[i] for i in by)
        return True

    def lower_noise(self, t: float) -> bool:
        """Whether ``raised`` has fallen: for ``lost_after``, for twice as long after each time that it rose again, the
        innovations are far smaller than stated."""
        wait = self._settings.lost_after * 2.0 ** min(self._episodes - 1, LONGEST)
        if self.raised <= 1.0 or t - max(self._settled, self._lowered) < wait or not self.watch.innovations.cautious():
            return False
        self.raised, self._lowered = max(1.0, self.raised / STEP), t
        return True

    def unusable(self, samples: Mapping[int, float], stddev: list[float]) -> dict[Fault, list[int]]:
        """Places, by fault, of those of some samples, by their place and NaN where missing, that lie where they cannot,
        or are of a sensor that is not in order; ``stddev`` (s,) of all channels."""
        if self._stddev is not stddev:
            self._stddev, self.watch.ranges.ends = stddev, mechanism_ends(self.problem, stddev)
        found = {Fault.STUCK: self.watch.stuck({i: value for i, value in samples.items() if value == value})}
        return found | self.watch.unusable([samples.get(i, nan) for i in range(len(stddev))])

    def take(self, t: float, q: np.ndarray, qd: np.ndarray, o: Sequence[float], innovation: Sequence[float],
             variance: Sequence[float], used: Sequence[bool], stddev: Sequence[float],
             settings: LinkageSettings) -> None:
        """What the filter made of the samples of an instant, and the coordinates and velocities (n,) it then had."""
        self._now, self._settings = (t, q, qd), settings
        self.watch.take(t, o, innovation, variance, used, stddev, settings)

    def assess(self, state: MechanismState, threshold: float, settings: LinkageSettings) -> Assessment:
        """Of a state, with the settings in force."""
        self._now, self._settings = (state.t, state.q, state.qd), settings
        found = self.judge_state(state, threshold)
        if found.status is ObserverStatus.OK:
            self.bounds.know(*self._now)
        return found

    def _lost(self, state: MechanismState, refused: str) -> Assessment | None:
        """Whether a state cannot be, or coordinates are to start again."""
        variance = state.covariance.diagonal().tolist()
        wrong = self._nonsense(state, variance)
        vague = '' if wrong else _vague(state.names, variance, self._settings)
        if wrong or vague:
            said = (wrong or (vague, Fault.VAGUE), *self._beyond(), (refused, Fault.REJECTED))
            return Assessment.of(ObserverStatus.LOST, said, broken=bool(wrong), astray=bool(refused))
        self._doubted = self.watch.doubted(self._settings.lost_after, state.t)
        again, by = self._again(state.t, self._doubted, state.o)
        if again:
            unseen = ', '.join(self.problem.model.independent[k] for k in again)
            return Assessment.of(ObserverStatus.LOST, ((self._refusal(by, refused), Fault.REJECTED),
                                                       (f'{unseen} {reason_of(Fault.RESTARTED)}', Fault.RESTARTED)),
                                 again=again, by=by, astray=True)
        if state.t < self._settled and self._why and refused:
            return Assessment(ObserverStatus.LOST, refused, astray=True, faults=Fault.REJECTED)
        return None

    def _settling(self, state: MechanismState, refused: str) -> Assessment | None:
        if state.t >= self._settled:
            return None
        return Assessment(ObserverStatus.STARTING, self._why or reason_of(Fault.SETTLING), faults=self._faults)

    def _doubtful(self, state: MechanismState, refused: str) -> Assessment | None:
        reasons = self._reasons(state.t, self._doubted, refused)
        if not self._doubted:
            self.in_row = 0
        return Assessment.of(ObserverStatus.COASTING, reasons) if reasons else None

    def stated(self, names: Sequence[str], covariance: np.ndarray, assessment: Assessment, settings: LinkageSettings
               ) -> np.ndarray:
        """Covariance (l, l) that an estimate is published with: the filter's, and at least all that can be where
        samples contradict it for long."""
        if not assessment.astray:
            return covariance
        return covariance + np.diag(self.bounds.unknown(names, settings.start_velocity) ** 2)

    def _nonsense(self, state: MechanismState, variance: list[float]) -> Said | None:
        """Why nothing of a state can be kept; None where it can."""
        q, qd = state.q, state.qd
        most = (NONSENSE * max(self._settings.start_velocity, 1.0)) ** 2
        if not (isfinite(sum(variance)) and isfinite(sum(q.tolist())) and isfinite(sum(qd.tolist()))):
            return reason_of(Fault.NOT_FINITE), Fault.NOT_FINITE
        if min(variance, default=0.0) < 0.0:
            return 'the covariance has a negative variance', Fault.NOT_FINITE
        if max(variance, default=0.0) > most:
            for name, value in zip(state.names, variance):
                if value > most and name.startswith(('position/', 'velocity/')):
                    return f'{name} known to {sqrt(value):.3g} only', Fault.VAGUE
        broken = self.bounds.broken(state.t, q.tolist(), qd.tolist(), self._settings.start_velocity)
        return (broken, Fault.OUT_OF_RANGE) if broken else None

    def _again(self, t: float, doubted: Sequence[int], o: Sequence[float]) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Coordinates that start again, and the channels by which: those that are refused for long and alone see a
        coordinate, or more than see it and are used."""
        watch, longest = self.watch, self._settings.lost_after
        due = [i for i in doubted if watch.offset[i] > 0 and o[i] == o[i] and not watch.units[i].found and (
            t - self.start >= longest / 2.0 or not self._restarts and watch.used_at[i] < self.start)]
        if not due:
            return (), ()
        rows, others = self._rows(), self._in_order(doubted)
        coordinates: set[int] = set()
        by = []
        if t - self.start < longest / 2.0:      # the first sample was wrong, and all that followed from it
            due, others = [i for i, value in enumerate(o) if value == value], []
        else:       # what was disturbed with it
            due = [i for i, count in enumerate(watch.innovations.refusals)
                   if i in due or count >= FEWEST and o[i] == o[i]]
            others = [i for i in others if i not in due]
        for i in due:
            own = self.observed.coordinates(rows, i)
            against = sum(bool(set(own) & set(self.observed.coordinates(rows, k))) for k in others)
            beside = sum(bool(set(own) & set(self.observed.coordinates(rows, k))) for k in doubted)
            if self.observed.alone(rows, i, others) or beside > against:
                by.append(i)
                coordinates.update(own)
        return tuple(sorted(coordinates)), tuple(by)

    def _reasons(self, t: float, doubted: Sequence[int], refused: str) -> list[Said]:
        """What is wrong, one by one."""
        watch, settings, names = self.watch, self._settings, self.problem.channels
        unchecked = self._unchecked(doubted)
        beyond = self._beyond()
        if not (unchecked or beyond) and self.raised == 1.0 and watch.calm(t, settings.coast_after):
            return []
        idle = watch.since_used(t, self.start)
        found = [(f'no sample used for {idle:.3g} s', Fault.UNMEASURED)] if idle > settings.coast_after else []
        found += beyond
        stuck, silent = [name for name, is_so in zip(names, watch.constant) if is_so], watch.silent(t, settings)
        jumped = watch.jumps.found(names) if watch.jumps else []
        # what a constant sensor has led astray is no unit
        units = [f'{name} in {unit.found}' for name, unit in zip(names, watch.units) if unit.found and not stuck]
        found += [(reason_of(Fault.STUCK, *stuck), Fault.STUCK)] if stuck else []
        found += [(f'silent: {", ".join(silent)}', Fault.MISSING)] if silent else []
        found += [(reason_of(Fault.JUMPED, *jumped), Fault.JUMPED)] if jumped else []
        found += [(f'another unit: {", ".join(units)}', Fault.UNIT)] if units else []
        doubted = sorted({*doubted, *watch.doubted(settings.coast_after, t)})
        found += [(f'nothing checks {names[i]}: its samples are predicted to {sqrt(watch.predicted[i]):.3g} only '
                   f'(lost_stddev {settings.lost_stddev:g}): too few samples, or too much noise of the motion',
                   Fault.UNCHECKED) for i in unchecked]
        if self.raised > 1.0:
            found.append((reason_of(Fault.MISFIT, 'the noise of the motion is raised '
                                    f'{self.raised:g} times to follow {self._raised_by}'), Fault.MISFIT))
        found += [(reason_of(Fault.MISFIT, f'mean NIS of {names[i]} {mean:.3g}, expected 1'), Fault.MISFIT)
                  for i, mean in watch.innovations.misfits(settings.lost_after)]
        if doubted or found and refused:
            found.append((self._refusal(doubted, refused), Fault.REJECTED))
        return found

    def _beyond(self) -> list[Said]:
        """Which last samples lie where they cannot."""
        return [(self._reads(place, value, fault), fault) for place, found in self.watch.ranges.beyond.items()
                for fault, value in found.items()]

    def _reads(self, place: int, value: float, fault: Fault) -> str:
        name = self.problem.channels[place]
        sensor = self.problem.model.description.sensors[name.partition('.')[0]]
        where, low, high = (f'beyond the limits of {sensor.coordinate}', *self.bounds.limits[sensor.coordinate][1:]
                            ) if fault is Fault.FAR else (reason_of(fault), *(sensor.range or (nan, nan)))
        return f'{name} reads {value:.4g}, {where}, {low:.4g} to {high:.4g}'

    def _unchecked(self, doubted: Sequence[int]) -> list[int]:
        """Places of channels that alone see a coordinate, and that any sample would fit."""
        most = self._settings.lost_stddev ** 2
        wide = [i for i, variance in enumerate(self.watch.predicted) if variance > most and self.observed.places[i]]
        if not wide:
            return []
        rows, others = self._rows(), self._in_order(doubted)
        return [i for i in wide if self.observed.alone(rows, i, others)]

    def _refusal(self, doubted: Sequence[int], refused: str) -> str:
        """Rejected samples in words, of channels in doubt also where the last one was used."""
        rest = [self.problem.channels[i] for i in doubted if not self.watch.offset[i] > 0]
        more = f'most samples of {", ".join(rest)} do not fit' if rest else ''
        drive = [name for name, seen, driving in zip(self.problem.channels, self.watch.seen_at, self.watch.driving)
                 if driving and isfinite(seen)]
        doubt = f'or wrong are {", ".join(drive)}, which drive the prediction' if doubted and drive else ''
        return '; '.join(part for part in (refused, more, doubt) if part)

    def _rows(self) -> np.ndarray:
        _, q, qd = self._now
        return self.observed.rows(q, qd[self.problem.model.z])

    def _in_order(self, doubted: Sequence[int]) -> list[int]:
        """Places of channels that send and that nothing speaks against."""
        t, watch = self._now[0], self.watch
        silent = watch.silent(t, self._settings)
        return [i for i, name in enumerate(watch.names) if isfinite(watch.seen_at[i]) and i not in doubted
                and not watch.constant[i] and name not in silent]

    def _seen_by_others(self, place: int) -> bool:
        others = self._in_order(self.watch.doubted(self._settings.lost_after, self._now[0]))
        return not self.observed.alone(self._rows(), place, others)


def _vague(names: Sequence[str], variance: list[float], settings: LinkageSettings) -> str:
    """Which position is not known; '' where all are."""
    most = settings.lost_stddev ** 2
    if max(variance, default=0.0) > most:
        for name, value in zip(names, variance):
            if value > most and name.startswith('position/'):
                return f'{name} known to {sqrt(value):.3g} only'
    return ''


PLACES = 'encoder', 'inclinometer', 'distance', 'position'      # kinds whose samples are functions of the pose
RATES = 'rate', 'velocity', 'gyro'                              # of pose and speed
BLIND = 1e-3        # share of a row, or of a direction, below which it is not there
NEW = 0.3           # share of a row that no other sensor has: then this one alone sees something


class ObservedCoordinates:
    """Of one problem: ``places`` and ``rates`` (s,), whether a channel is of such a kind."""

    def __init__(self, problem: Problem) -> None:
        self.problem, sensors = problem, problem.model.description.sensors
        kinds = [sensors[channel.partition('.')[0]].kind for channel in problem.channels]
        self.places, self.rates = [kind in PLACES for kind in kinds], [kind in RATES for kind in kinds]
        self._kernel: Kernel | None = None

    def rows(self, q: np.ndarray, zd: np.ndarray) -> np.ndarray:
        """Derivatives (s, 3g) by positions, speeds and accelerations of the independent coordinates, in units of what
        is usually known of each and of the sensor's standard deviation."""
        of, g = self.problem, self.problem.g
        parts = self._evaluated(q, zd)[1:]
        scaled = [part * unit for part, unit in zip(parts, (POSITION, VELOCITY, ACCELERATION))]
        if not all(np.isfinite(part).all() for part in scaled):
            return np.zeros((len(of.channels), 3 * g))
        rows = np.hstack(scaled)
        return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-300)

    def poses(self, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Samples (s,) of the pose, and their derivatives (s, g) by the independent coordinates."""
        h, slope, *_ = self._evaluated(q, np.zeros(self.problem.g))
        return h, slope

    def _evaluated(self, q: np.ndarray, zd: np.ndarray) -> list[np.ndarray]:
        of, g = self.problem, self.problem.g
        if self._kernel is None:        # seldom called: to compile it would take longer
            self._kernel = Kernel(of.sensors, 'vm')
        found = self._kernel(q, zd, np.zeros(g), np.zeros(of.system.u.numel()), [0.0], np.asarray(of.model.parameters))
        return [np.reshape(part, (len(of.channels), -1)) if k else np.ravel(part) for k, part in enumerate(found)]

    def alone(self, rows: np.ndarray, place: int, others: Collection[int]) -> bool:
        """Whether a channel sees something that the others do not: who knows a position over time knows its speed and
        acceleration, too."""
        g, row = self.problem.g, rows[place]
        known = [shifted for k in others if k != place for shifted in (
            rows[k], np.concatenate([np.zeros(g), rows[k][:2 * g]]), np.concatenate([np.zeros(2 * g), rows[k][:g]]))]
        if not np.any(row) or not known:
            return bool(np.any(row))
        basis = np.array(known)
        return bool(np.linalg.norm(row - row @ np.linalg.pinv(basis, rcond=BLIND) @ basis) > NEW)

    def coordinates(self, rows: np.ndarray, place: int) -> list[int]:
        """Places, among the independent ones, of the coordinates that a channel sees."""
        share = np.abs(rows[place]).reshape(3, -1).max(axis=0)
        return [k for k, value in enumerate(share.tolist()) if value > BLIND * max(share.max(), 1e-300)]

    def shown(self, q: np.ndarray) -> np.ndarray:
        """Of which independent coordinates (g,) sensors of places and of rates, all together, show the speed."""
        g, rows = self.problem.g, self.rows(q, np.zeros(self.problem.g))
        basis = [row[:g] for row, place in zip(rows, self.places) if place]
        basis += [row[g:2 * g] for row, rate in zip(rows, self.rates) if rate]
        if not basis:
            return np.zeros(g, dtype=bool)
        known = np.array(basis)
        return np.asarray(np.diag(np.linalg.pinv(known, rcond=BLIND) @ known) > 1.0 - NEW)
