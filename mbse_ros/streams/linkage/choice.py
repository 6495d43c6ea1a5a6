# SPDX-License-Identifier: Apache-2.0
"""The filter at work and its tuning; another one is taken at once or made in the background first."""

from __future__ import annotations

from dataclasses import replace

from ...dynamics.model import Model
from .grid import Work
from .health import HealthWatch
from .linkage_settings import LinkageSettings
from .workshop import Workshop


class Choice:
    """``settings`` and the ``work`` and health ``watch`` that follow from them; ``ordered``: settings whose filter is
    being made. Raises SettingError."""

    work: Work
    watch: HealthWatch

    def __init__(self, model: Model, sensors: tuple[str, ...], step: float, settings: LinkageSettings, backend: str
                 ) -> None:
        self._workshop = Workshop(model, sensors, step, backend)
        self.ordered: LinkageSettings | None = None
        self._take(settings)

    def prepare(self, *estimators: str) -> None:
        """Compile filters that are to be switched to without delay; raises SettingError."""
        for estimator in estimators:
            self._workshop.made(replace(self.settings, estimator=estimator, options='', noises=''))

    def configure(self, settings: LinkageSettings, wait: bool) -> None:
        """Other settings, or without ``wait`` the order of a filter that is not compiled. Raises SettingError and
        changes nothing then."""
        if not wait and not self._workshop.is_ready(settings):
            self._workshop.order(settings)
            self.ordered = settings
            return
        before = self.work.engine
        self._take(settings)
        if self.work.engine is not before:
            self.watch.reset()

    def take_up(self) -> bool:
        """Change to the settings that were ordered, if their filter is ready. Raises what was wrong with them; the
        order is forgotten then."""
        settings = self.ordered
        if settings is None or not self._workshop.is_ready(settings):
            return False
        self.ordered = None
        self.configure(settings, wait=True)
        return True

    def raise_noise(self, factor: float) -> None:
        """The same filter from the next instant on, with the noises of its motion raised."""
        self.work = Work(self.work.engine, self.work.engine.tuned(self.settings, factor))

    def _take(self, settings: LinkageSettings) -> None:
        engine, watch = self._workshop.made(settings)
        work = Work(engine, engine.tuned(settings))
        self.settings, self.ordered, self.work, self.watch = settings, None, work, watch
