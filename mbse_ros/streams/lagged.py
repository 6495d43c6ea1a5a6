# SPDX-License-Identifier: Apache-2.0
"""``LaggedStage``: stamped samples of a mechanism's sensors in, estimates a lag later out, by the smoother.

A filter of the same model goes ahead: it judges the samples, says how far the estimate of an instant is to be trusted,
and gives the state to start from where the smoother has to start again. The smoother takes each instant once no more of
its samples are waited for. To take samples and to solve are two calls, so that samples are taken while the solver is
busy or behind.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..dynamics.model import Model
from ..errors import DivergenceError, SampleError, SettingError
from ..filters.linkage_settings import LinkageSettings, numbers
from ..graph.estimate import EstimationNoises
from ..graph.smoother import LinkageSmoother, default_estimation_noises
from ..graph.window import ChainWindow, Row
from ..monitor.faults import Fault
from .linkage import LinkageStage
from .records import LinkageEstimate, Measured, ObserverStatus, Sampled
from .start import encoded, moved_to

SMOOTHER, FILTER = 'smoother', 'errorEKF_FE'        # the filter of the smoother's model
SHARE = 4               # of the window: what one solution takes at most, as it starts from a Taylor series
BEHIND = 10_000         # instants that may wait for the solver


@dataclass(frozen=True)
class Instant:
    """An instant as the filter sees it, with its samples."""

    filtered: LinkageEstimate
    sampled: Sampled


class LaggedStage:
    """Smoother with a ``lag``, s, on a model with ``sensors`` (default: all of its file), ``step`` in seconds.

    ``settings``: of the filter; noises, stddev and start are the smoother's, too. ``delay``, s: a sample that comes so
    late still counts. ``channels`` (s,) and ``inputs`` (k,) as those of ``LinkageStage``. Raises SettingError.
    """

    def __init__(self, model: Model, settings: LinkageSettings = LinkageSettings(), sensors: Sequence[str] = (),
                 step: float = 0.005, lag: float = 0.2, delay: float = 0.02, backend: str = 'auto') -> None:
        if settings.estimator != FILTER:
            raise SettingError('estimator', settings.estimator, f"{FILTER}, the filter of the smoother's model")
        if settings.options:
            raise SettingError('options', settings.options, 'none: the smoother has no options')
        if not delay <= settings.delay_window:
            raise SettingError('delay', delay, f'at most delay_window, {settings.delay_window:g} s')
        self.model, self.lag = model, lag
        self._filter = LinkageStage(model, settings, sensors, step, backend)
        self.channels, self.inputs, self.step_ns = self._filter.channels, self._filter.inputs, self._filter.step_ns
        dt = self.step_ns * 1e-9
        noises = smoother_noises(model, self._filter.sensors, settings)
        self.smoother = LinkageSmoother(model, self._filter.sensors, dt, noises, backend)
        self.names = tuple(f'{kind}/{name}' for kind in ('position', 'velocity', 'force') for name in model.independent)
        self._delay, self._most = max(1, round(delay / dt)), max(1, round(lag / dt) // SHARE)
        self._skipped = 0
        self._warm_up()
        self.reset()

    def _warm_up(self) -> None:
        """First runs of the window, which cost more than the others."""
        window = self.smoother.window(2 * self.smoother.dt)
        none, rest = np.full(len(self.channels), np.nan), np.zeros(len(self.inputs))
        for i in range(4):
            window.extend(i, [(i * self.smoother.dt, none, rest)])

    def reset(self) -> None:
        """Forget state and samples; the next sample starts again."""
        self._filter.reset()
        self._fresh: deque[Instant] = deque()       # samples of them may still come
        self._ready: deque[Instant] = deque()       # wait for the solver
        self._inside: deque[Instant] = deque()      # in the window
        self._window: ChainWindow | None = None
        self._settled, self._restart = 0, True
        self._used = 0      # the last published instant of which a sample was used

    @property
    def ready(self) -> int:
        """Instants that wait for the solver."""
        return len(self._ready)

    @property
    def dropped(self) -> dict[str, int]:
        """Samples or instants not used, by reason."""
        late = {'solver too slow': self._skipped} if self._skipped else {}
        return {**self._filter.dropped, **late}

    def refusals(self) -> list[SampleError]:
        """Samples dropped since the last call, with the reason."""
        return self._filter.refusals()

    # Samples

    def add(self, stamp_ns: int, samples: Mapping[str, float]) -> None:
        """Take samples of one instant by channel, SI, NaN where missing; cheap, nothing is solved."""
        for filtered in self._filter.add(stamp_ns, samples):
            self._hear(filtered)
        while self._fresh and self._fresh[0].filtered.sequence <= self._fresh[-1].filtered.sequence - self._delay:
            self._settle()

    def _hear(self, filtered: LinkageEstimate) -> None:
        """A new instant of the filter, or the newest one corrected."""
        if filtered.restart:
            self._settle_all()
            self._settled = 0
        if filtered.sequence <= self._settled:
            return
        if self._fresh and self._fresh[-1].filtered.sequence == filtered.sequence:
            before = self._fresh.pop().filtered
            filtered = replace(filtered, restart=before.restart)
        self._fresh.append(Instant(filtered, self._sampled(filtered)))
        if filtered.status is ObserverStatus.LOST:      # the filter may start again
            self._settle_all()

    def _sampled(self, filtered: LinkageEstimate) -> Sampled:
        """Samples of an instant; those of one that the filter has let go of are not known."""
        found, missing = self._filter.sampled(filtered.sequence), np.full(len(self.channels), np.nan)
        return found or Sampled(missing, filtered.measured, filtered.innovation, filtered.innovation_stddev,
                                self._ready[-1].sampled.inputs if self._ready else np.zeros(len(self.inputs)))

    def _settle(self) -> None:
        """Hand the oldest instant to the solver, with the samples that came since it was new."""
        instant = self._fresh.popleft()
        self._settled = instant.filtered.sequence
        self._ready.append(replace(instant, sampled=self._filter.sampled(self._settled) or instant.sampled))

    def _settle_all(self) -> None:
        while self._fresh:
            self._settle()

    # Estimates

    def solve(self) -> tuple[LinkageEstimate, ...]:
        """Take what waits into the window, up to a quarter of it; the estimates that became final, in order."""
        if len(self._ready) > BEHIND:
            return self._skip()
        if not self._ready:
            return ()
        first, before = self._ready[0], self._inside[-1] if self._inside else None
        if first.filtered.status is ObserverStatus.LOST:
            return (*self._end(), self._lost(self._ready.popleft(), first.filtered.reason, first.filtered.faults))
        ended: tuple[LinkageEstimate, ...] = ()
        window = self._window
        if window is None or before is None or not _follows(before, first):
            ended = self._end()
            window = self._begin(first)
        return (*ended, *self._extend(window))

    def flush(self) -> tuple[LinkageEstimate, ...]:
        """All that is not published yet, with the samples that there are; the next sample starts again."""
        self._settle_all()
        found: list[LinkageEstimate] = []
        while self._ready:
            found += self.solve()
        return (*found, *self._end())

    def _begin(self, instant: Instant) -> ChainWindow:
        """A window that starts at an instant: at what the sensors say where the filter starts there, too, else where
        the filter is."""
        q, qd, model = instant.filtered.q, instant.filtered.qd, self.model
        if instant.filtered.restart:
            moved = None
            if self._filter.settings.start_at == 'sensors':
                moved = moved_to(model, encoded(model, self.channels, instant.sampled.used))
            q, qd = model.start.q if moved is None else moved, model.start.qd
        self._window, self._restart = self.smoother.window(self.lag, q, qd), True
        return self._window

    def _extend(self, window: ChainWindow) -> tuple[LinkageEstimate, ...]:
        """Instants that follow each other into the window; those that leave it."""
        rows: list[Row] = []
        while self._ready and len(rows) < self._most:
            instant = self._ready[0]
            if rows and not _follows(self._inside[-1], instant):
                break
            self._inside.append(self._ready.popleft())
            t = (instant.filtered.sequence - 1) * self.smoother.dt
            rows.append((t, instant.sampled.used, instant.sampled.inputs))
        step = self._inside[-1].filtered.sequence - len(rows) + 1
        try:
            found = window.extend(step, rows)
        except DivergenceError as error:
            lost, self._inside, self._window = self._inside, deque(), None
            return tuple(self._lost(instant, str(error), Fault.UNSOLVED) for instant in lost)
        return self._estimates(found)

    def _end(self) -> tuple[LinkageEstimate, ...]:
        """The rest of the window, of which nothing more comes."""
        if self._window is None:
            return ()
        window, self._window = self._window, None
        return self._estimates(window.rest())

    def _estimates(self, found: Sequence[tuple[np.ndarray, ...]]) -> tuple[LinkageEstimate, ...]:
        return tuple(self._estimate(self._inside.popleft(), *values[1:6]) for values in found)

    def _estimate(self, instant: Instant, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray, mean: np.ndarray,
                  covariance: np.ndarray) -> LinkageEstimate:
        """The smoother's values in the filter's estimate."""
        status, reason, faults = self._assessed(instant,
                                                np.sqrt(np.fmax(covariance.diagonal(), 0.0)[:len(self.model.z)]))
        return self._made(instant, mean.copy(), covariance.copy(), (q, qd, qdd), status, reason,
                          faults)

    def _assessed(self, instant: Instant, stddev: np.ndarray) -> tuple[ObserverStatus, str, Fault]:
        """Status, reason, faults: the filter's, if the positions (g,) are known and samples are near. The filter sees a
        gap when it is over."""
        filtered, settings = instant.filtered, self._filter.settings
        if any(item is Measured.USED for item in instant.sampled.measured) or filtered.sequence < self._used:
            self._used = filtered.sequence
        idle, worst = (filtered.sequence - self._used) * self.smoother.dt, int(np.argmax(stddev))
        if not stddev[worst] <= settings.lost_stddev:
            return ObserverStatus.LOST, f'{self.names[worst]} known to {stddev[worst]:.3g} only', Fault.VAGUE
        if filtered.status is ObserverStatus.OK and idle > settings.coast_after:
            return ObserverStatus.COASTING, f'no sample used for {idle:.3g} s', Fault.UNMEASURED
        return filtered.status, filtered.reason, filtered.faults

    def _lost(self, instant: Instant, reason: str, faults: Fault) -> LinkageEstimate:
        """An estimate without values."""
        n, size = len(self.model.names), len(self.names)
        return self._made(instant, np.full(size, np.nan), np.full((size, size), np.nan), np.full((3, n), np.nan),
                          ObserverStatus.LOST, reason, faults)

    def _made(self, instant: Instant, mean: np.ndarray, covariance: np.ndarray,
              motion: Sequence[np.ndarray] | np.ndarray, status: ObserverStatus, reason: str,
              faults: Fault) -> LinkageEstimate:
        (q, qd, qdd), at, force = motion, instant.sampled, slice(2 * len(self.model.z), None)
        restart, self._restart = self._restart, False
        return replace(
            instant.filtered, revision=0, restart=restart, estimator=SMOOTHER, names=self.names, mean=mean,
            covariance=covariance, q=q, qd=qd, qdd=qdd, force_names=self.model.independent, force=mean[force],
            force_stddev=np.sqrt(np.maximum(covariance.diagonal()[force], 0.0)), parameters={},
            innovation=at.innovation, innovation_stddev=at.innovation_stddev, measured=at.measured, status=status,
            reason=reason, faults=faults, dropped=sum(self.dropped.values()))

    def _skip(self) -> tuple[LinkageEstimate, ...]:
        """The solver is hopelessly behind: go on from the newest instant."""
        ended, last = self._end(), self._ready[-1]
        self._skipped += len(self._ready)
        self._ready.clear()
        return (*ended, self._lost(last, f'the solver is {BEHIND} instants behind; they are left out',
                                   Fault.UNSOLVED))


def _follows(before: Instant, after: Instant) -> bool:
    """Whether one window can hold both."""
    a, b = before.filtered, after.filtered
    return b.sequence == a.sequence + 1 and not b.restart and b.status is not ObserverStatus.LOST


def smoother_noises(model: Model, sensors: Sequence[str], settings: LinkageSettings, speed: float | None = None
                    ) -> EstimationNoises:
    """The smoother's noises from the settings of the filter; ``speed``: standard deviation of a start's speeds, default
    ``start_unseen``. Raises SettingError."""
    walk = numbers('noises', settings.noises, ('acceleration',)).get('acceleration')
    speed = settings.start_unseen if speed is None else speed
    made = default_estimation_noises(model, settings.start_position, speed, settings.start_other, walk)
    stddev = numbers('stddev', settings.stddev, sensors)
    return replace(made, stddev={name: float(value[0]) for name, value in stddev.items()})
