# SPDX-License-Identifier: Apache-2.0
"""Compiled filters of a stage, each made once: when it is asked for, or before that in the background."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from inspect import signature

from ...dynamics.model import Model
from ...errors import SettingError
from ...estimators.filters.filters import FILTERS
from .engine import Engine
from .health import HealthWatch
from .linkage_settings import LinkageSettings, option_values

Made = tuple[Engine, HealthWatch]


class Workshop:
    """Filters, with what watches their health, on a model with some of its sensors; step in seconds."""

    def __init__(self, model: Model, sensors: tuple[str, ...], step: float, backend: str) -> None:
        self._of = model, sensors, step, backend
        self._orders: dict[tuple[str, str], Future[Made]] = {}
        self._pool = ThreadPoolExecutor(1, 'filters')       # CasADi's symbols allow one thread at a time

    def is_ready(self, settings: LinkageSettings) -> bool:
        """Whether ``made`` would not wait."""
        order = self._orders.get(_key(settings))
        return order is not None and order.done()

    def order(self, settings: LinkageSettings) -> None:
        """Have a filter made in the background. Raises SettingError for options that the filter does not have; what is
        wrong with their values comes out of ``made``."""
        known = signature(FILTERS[settings.estimator]).parameters
        for name in option_values(settings.options):
            if name not in list(known)[1:]:
                raise SettingError('options', name, f'options of {settings.estimator}: ' + ', '.join(list(known)[1:]))
        if _key(settings) not in self._orders:
            self._orders[_key(settings)] = self._pool.submit(self._make, settings)

    def made(self, settings: LinkageSettings) -> Made:
        """The filter of settings, waited for where it is not there yet; raises SettingError and forgets it then."""
        self.order(settings)
        try:
            return self._orders[_key(settings)].result()
        except Exception:
            del self._orders[_key(settings)]
            raise

    def _make(self, settings: LinkageSettings) -> Made:
        model, sensors, step, backend = self._of
        engine = Engine(model, sensors, settings, step, backend)
        prior = settings.start_position, settings.start_unseen, settings.start_other
        return engine, HealthWatch(engine, prior, settings.options)


def _key(settings: LinkageSettings) -> tuple[str, str]:
    return settings.estimator, settings.options
