# SPDX-License-Identifier: Apache-2.0
"""How far a state is to be trusted: what one of a machine and one of a mechanism are asked alike."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from .channels import ChannelMonitor
from .faults import NONE, Fault, ObserverStatus, joined

Said = tuple[str, Fault]        # a reason and its kind
T = TypeVar('T')


@dataclass(frozen=True)
class Assessment:
    """Status, reason and faults of a state. ``broken``: nothing of it can be kept; ``again``: places, among the
    independent coordinates, of those that start again from the samples of the channels at ``by``; ``astray``: its
    covariance says nothing, either."""

    status: ObserverStatus
    reason: str = ''
    again: tuple[int, ...] = ()
    by: tuple[int, ...] = ()
    broken: bool = False
    astray: bool = False
    faults: Fault = NONE

    @classmethod
    def of(cls, status: ObserverStatus, said: Iterable[Said], **more: Any) -> Assessment:
        """Of what is said, '' for nothing."""
        said = [(text, fault) for text, fault in said if text]
        return cls(status, '; '.join(text for text, _ in said), faults=joined(fault for _, fault in said), **more)


class StateMonitor(Generic[T]):
    """Watches the samples of a stage, channel by channel in ``watch``, and the states ``T`` that follow from them.

    ``questions`` to a state, and to what the gate has refused, in order: whether it can be, is settled, and has samples
    that are in order; None: there is nothing to be said.
    """

    start: float        # time, s, at which the state started

    def __init__(self, watch: ChannelMonitor, *questions: Callable[[T, str], Assessment | None]) -> None:
        self.watch, self.questions = watch, questions

    def judge_state(self, state: T, threshold: float) -> Assessment:
        """Of a state: the first answer; ``threshold`` of the gate: see ``ChannelMonitor.rejected``."""
        refused = self.watch.rejected(threshold)
        for question in self.questions:
            if found := question(state, refused):
                return found
        return Assessment(ObserverStatus.OK, refused, faults=Fault.REJECTED if refused else NONE)
