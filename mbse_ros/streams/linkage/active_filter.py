# SPDX-License-Identifier: Apache-2.0
"""The filter that runs and its tuning; another one is activated at once, or compiled in the background first."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from inspect import signature

from ...dynamics.model import Model
from ...errors import SettingError
from ...estimators.filters.filters import FILTERS
from .engine import Engine
from .health import HealthWatch
from .history import TunedFilter
from .linkage_settings import LinkageSettings, option_values

Watched = tuple[Engine, HealthWatch]


class ActiveFilter:
    """``settings``, the filter ``running`` with them, and the ``watch`` of its health; ``requested``: settings whose
    filter is being compiled. Raises SettingError."""

    running: TunedFilter
    watch: HealthWatch

    def __init__(self, model: Model, sensors: tuple[str, ...], step: float, settings: LinkageSettings, backend: str
                 ) -> None:
        self._cache = FilterCache(model, sensors, step, backend)
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
        before = self.running.engine
        self._take(settings)
        if self.running.engine is not before:
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
        self.running = TunedFilter(self.running.engine, self.running.engine.tuned(self.settings, factor))

    def _take(self, settings: LinkageSettings) -> None:
        engine, watch = self._cache.get(settings)
        running = TunedFilter(engine, engine.tuned(settings))
        self.settings, self.requested, self.running, self.watch = settings, None, running, watch


class FilterCache:
    """Filters, with what watches their health, on a model with some of its sensors; step in seconds."""

    def __init__(self, model: Model, sensors: tuple[str, ...], step: float, backend: str) -> None:
        self._of = model, sensors, step, backend
        self._requests: dict[tuple[str, str], Future[Watched]] = {}
        self._pool = ThreadPoolExecutor(1, 'filters')       # CasADi's symbols allow one thread at a time

    def is_ready(self, settings: LinkageSettings) -> bool:
        """Whether ``get`` would not wait."""
        request = self._requests.get(_key(settings))
        return request is not None and request.done()

    def request(self, settings: LinkageSettings) -> None:
        """Have a filter made in the background. Raises SettingError for options that the filter does not have; what is
        wrong with their values comes out of ``get``."""
        known = signature(FILTERS[settings.estimator]).parameters
        for name in option_values(settings.options):
            if name not in list(known)[1:]:
                raise SettingError('options', name, f'options of {settings.estimator}: ' + ', '.join(list(known)[1:]))
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
        engine = Engine(model, sensors, settings, step, backend)
        prior = settings.start_position, settings.start_unseen, settings.start_other
        return engine, HealthWatch(engine, prior, settings.options)


def _key(settings: LinkageSettings) -> tuple[str, str]:
    return settings.estimator, settings.options
