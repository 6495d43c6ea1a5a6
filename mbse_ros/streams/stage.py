# SPDX-License-Identifier: Apache-2.0
"""What the stages of machines and of mechanisms have in common: samples in, estimates out.

Each aligns its samples in its own way: a machine's are interpolated to a ``Segment`` of all channels; one of a
mechanism counts at once, at the nearest instant, and takes the filter back where it comes late. Then each judges the
samples, starts the state, or some of it again, and runs its filter. What follows is the same: learn, judge the state,
publish.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Generic, TypeVar

from ..monitor.faults import Health
from ..monitor.state import Assessment

T = TypeVar('T')
E = TypeVar('E')


class Stage(ABC, Generic[T, E]):
    """Estimates ``E`` of states ``T``, each what the filter made of the samples of a segment or of an instant."""

    @property
    @abstractmethod
    def settings(self) -> Any:
        """The tuning in force."""

    @property
    def note(self) -> str:
        """What is wrong with the tuning in force; '' when nothing is."""
        return ''

    @abstractmethod
    def health(self) -> Health:
        """Of the last innovations."""

    @abstractmethod
    def reset(self) -> None:
        """Forget state and samples; the next ones start again."""

    def _follow(self, new: Sequence[T], changed: Sequence[T]) -> tuple[tuple[E, ...], Assessment]:
        """Learn from samples that are ``new``; judge the states that ``changed``, at least one, and publish them, up to
        one of which nothing can be kept. The estimates, and what is said of the last one."""
        for state in new:
            self._learn(state)
        found = []
        for state in changed:
            assessment = self._judge(state)
            found.append(self._publish(state, assessment))
            if assessment.broken:
                self._lose(assessment)
                break
        return tuple(found), assessment

    @abstractmethod
    def _learn(self, state: T) -> None:
        """What the filter made of samples, channel by channel."""

    @abstractmethod
    def _judge(self, state: T) -> Assessment:
        """How far a state is to be trusted."""

    @abstractmethod
    def _publish(self, state: T, assessment: Assessment) -> E:
        """The record."""

    @abstractmethod
    def _lose(self, assessment: Assessment) -> None:
        """Nothing of the state can be kept; the next samples start again."""
