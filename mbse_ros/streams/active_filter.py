# SPDX-License-Identifier: Apache-2.0
"""The filter that runs, its tuning, and its health: NIS and whiteness of its innovations, and what its sensors see of
the state. Another filter is activated at once, or compiled in the background first."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np

from ..compiled import Kernel
from ..dynamics.model import Model
from ..errors import DivergenceError, SettingError
from ..filters.filters import check_options, noises_of
from ..filters.linkage_settings import LinkageSettings, numbers, option_values
from ..filters.observability.information import observability
from ..filters.observability.mechanism import linearised_function
from ..filters.observer import FilterTuning, LinkageObserver, Noises, tuning_of
from ..filters.parts.problem import Problem, problem
from ..filters.whiteness import FEWEST, InnovationWatch, ljung_box
from ..monitor.faults import Health
from .history import TunedFilter

SEEN = 50           # instants of the observability's window
SIMPLE = ('DEKF', 'errorEKF', 'ADEKF')      # whose covariance does not follow the derivatives of the accelerations
MOTION = ('acceleration', 'color_walk', 'force_walk')      # noises of what moves the mechanism, by the filters' names


class HealthWatch(InnovationWatch):
    """Keeps the last instants of a filter, too, and computes its health when asked."""

    def __init__(self, observer: LinkageObserver, prior: tuple[float, float, float], options: str = '') -> None:
        """``prior``: standard deviations of positions, velocities and all else, the units of observability."""
        self._observer, g = observer, observer.problem.g
        kinds = [name.partition('/')[0] for name in observer.names]
        force = len(kinds) >= 3 * g and kinds[2 * g] in ('force', 'acceleration_error', 'acceleration')
        simple = observer.filter.name in SIMPLE and not options
        kind = 'force' if force else 'simple' if simple else 'exact'
        self._kernel = Kernel(linearised_function(observer.problem, kind), observer.model.backend)
        self._size = (3 if force else 2) * g
        self._prior = np.repeat(prior, g)[:self._size]
        self._warm_up()
        super().__init__()

    def _warm_up(self) -> None:
        """The first call of each part, which costs more than the others."""
        model, size, s = self._observer.model, self._size, len(self._observer.channels)
        self._kernel(model.start.q, model.start.qd[model.z], np.zeros(len(model.inputs)), [0.0], [self._observer.dt],
                     np.asarray(model.parameters))
        ljung_box(np.tile([1.0, -1.0], FEWEST))
        observability(np.tile(np.eye(size), (SEEN, 1, 1)), np.ones((SEEN, s, size)), np.ones(s), self._prior, SEEN)

    def reset(self) -> None:
        """Forget what was."""
        super().reset()
        self._states: deque[tuple[np.ndarray, ...]] = deque(maxlen=SEEN)

    def see(self, q: np.ndarray, qd: np.ndarray, row: np.ndarray) -> None:
        """State (n,) and row ``[o, u, t]`` of an instant."""
        self._states.append((q, qd[self._observer.problem.z], row))

    def assess(self, stddev: np.ndarray) -> Health:
        """Health over the last instants; ``stddev`` (s,) of the sensors."""
        mean, white = self.health
        return Health(mean, white, self._rank(stddev) if mean == mean else -1, self._size)

    def _rank(self, stddev: np.ndarray) -> int:
        if len(self._states) < SEEN:
            return -1
        s, of = len(self._observer.channels), self._observer
        k = len(of.model.inputs)
        found = [self._kernel(q, zd, row[s:s + k], row[s + k:], [of.dt], np.asarray(of.model.parameters))
                 for q, zd, row in self._states]
        F = np.array([item[0].reshape(self._size, self._size) for item in found])
        H = np.array([item[1].reshape(s, self._size) for item in found])
        there = np.array([np.isfinite(row[:s]) for _, _, row in self._states])
        if not np.isfinite(F).all() or not np.isfinite(H).all():
            return -1
        return observability(F, H * there[:, :, None], stddev, self._prior, SEEN)[0].rank


Watched = tuple[LinkageObserver, HealthWatch]


class ActiveFilter:
    """``settings``, the filter ``running`` with them, and the ``watch`` of its health; ``requested``: settings whose
    filter is being compiled. Raises SettingError."""

    running: TunedFilter
    watch: HealthWatch

    def __init__(self, model: Model, sensors: tuple[str, ...], step: float, settings: LinkageSettings, backend: str,
                 observer: LinkageObserver | None = None) -> None:
        self._cache = FilterCache(model, sensors, step, backend)
        if observer is not None:
            self._cache.add(settings, observer)
        self.requested: LinkageSettings | None = None
        self._take(settings)

    def prepare(self, *estimators: str) -> None:
        """Compile filters that are to be switched to without delay; raises SettingError."""
        for estimator in estimators:
            self._cache.get(replace(self.settings, estimator=estimator, options='', noises=''))

    def configure(self, settings: LinkageSettings, wait: bool) -> None:
        """Other settings, or without ``wait`` the request of a filter that is not compiled. Raises SettingError and
        changes nothing then."""
        if not wait and not self._cache.is_ready(settings):
            self._cache.request(settings)
            self.requested = settings
            return
        before = self.running.observer
        self._take(settings)
        if self.running.observer is not before:
            self.watch.reset()

    def activate(self) -> bool:
        """Change to the settings that were requested, if their filter is ready. Raises what was wrong with them,
        and forgets the request then."""
        settings = self.requested
        if settings is None or not self._cache.is_ready(settings):
            return False
        self.requested = None
        self.configure(settings, wait=True)
        return True

    def raise_noise(self, factor: float) -> None:
        """The same filter from the next instant on, with the noises of its motion raised."""
        self.running = TunedFilter(self.running.observer, tuned(self.running.observer, self.settings, factor))

    def _take(self, settings: LinkageSettings) -> None:
        observer, watch = self._cache.get(settings)
        running = TunedFilter(observer, tuned(observer, settings))
        self.settings, self.requested, self.running, self.watch = settings, None, running, watch


class FilterCache:
    """Filters, with what watches their health, on a model with some of its sensors; step in seconds."""

    def __init__(self, model: Model, sensors: tuple[str, ...], step: float, backend: str) -> None:
        self._of = model, sensors, step, backend
        self._requests: dict[tuple[str, str], Future[Watched]] = {}
        self._pool = ThreadPoolExecutor(1, 'filters')       # CasADi's symbols allow one thread at a time

    def add(self, settings: LinkageSettings, observer: LinkageObserver) -> None:
        """Have a filter that has been made, with ``states``."""
        observer.dt = self._of[2]
        made: Future[Watched] = Future()
        made.set_result((observer, HealthWatch(observer, _prior(settings), settings.options)))
        self._requests[_key(settings)] = made

    def is_ready(self, settings: LinkageSettings) -> bool:
        """Whether ``get`` would not wait."""
        request = self._requests.get(_key(settings))
        return request is not None and request.done()

    def request(self, settings: LinkageSettings) -> None:
        """Have a filter made in the background. Raises SettingError for options that the filter does not have; what is
        wrong with their values comes out of ``get``."""
        check_options(settings.estimator, option_values(settings.options))
        if _key(settings) not in self._requests:
            self._requests[_key(settings)] = self._pool.submit(self._make, settings)

    def get(self, settings: LinkageSettings) -> Watched:
        """The filter of settings, waited for where it is not there yet; raises SettingError and forgets it then."""
        self.request(settings)
        try:
            return self._requests[_key(settings)].result()
        except Exception:
            del self._requests[_key(settings)]
            raise

    def _make(self, settings: LinkageSettings) -> Watched:
        model, sensors, step, backend = self._of
        options: dict[str, Any] = option_values(settings.options)
        stddev = _stddev(problem(model, sensors), sensors, settings)
        try:
            observer = LinkageObserver(model, settings.estimator, sensors, stddev=stddev.tolist(), backend=backend,
                                       states=True, dt=step, **options)
        except SettingError as error:
            if error.name not in options:
                raise
            raise SettingError('options', settings.options, f'{error.name}: {error.expected}') from None
        _warm_up(observer, tuned(observer, settings))
        return observer, HealthWatch(observer, _prior(settings), settings.options)


def _prior(settings: LinkageSettings) -> tuple[float, float, float]:
    return settings.start_position, settings.start_unseen, settings.start_other


def _key(settings: LinkageSettings) -> tuple[str, str]:
    return settings.estimator, settings.options


def tuned(observer: LinkageObserver, settings: LinkageSettings, raised: float = 1.0) -> FilterTuning:
    """The tuning of settings for a filter, the noises of its motion ``raised``; raises SettingError."""
    of = observer.filter
    noises = {**noises_of(of), **numbers('noises', settings.noises, of.noises)}
    raised_noises: Noises = {name: np.asarray(value, dtype=float) * (raised if name in MOTION else 1.0)
                             for name, value in noises.items()}
    return tuning_of(of, raised_noises, settings.gate, _stddev(observer.problem, observer.sensors, settings),
                     observer.dt)


def _stddev(of: Problem, sensors: Sequence[str], settings: LinkageSettings) -> np.ndarray:
    """Standard deviations (s,) of the sensors' samples; raises SettingError."""
    given = numbers('stddev', settings.stddev, sensors)
    owners = [channel.partition('.')[0] for channel in of.channels]
    stddev = np.array([known if (own := given.get(owner)) is None else own[min(owners[:k].count(owner), len(own) - 1)]
                       for k, (owner, known) in enumerate(zip(owners, of.stddev))])
    for channel, value in zip(of.channels, stddev):
        if not value > 0:
            raise SettingError('stddev', float(value),
                               f'a number above 0 for {channel}, which the file does not give')
    return stddev


def _warm_up(observer: LinkageObserver, tuning: FilterTuning) -> None:
    """A first run, which costs more than the others."""
    s, k, start = len(observer.channels), len(observer.model.inputs), observer.model.start
    row = np.concatenate([np.full(s, np.nan), np.zeros(k + 1)])
    state = observer.filter.start(start.q, start.qd, 0.1)
    with suppress(DivergenceError):
        observer.steps(state, row[None], tuning.flat)
    observer.parameters(state[observer.filter.state.places['x']], np.ones(len(observer.names)))
