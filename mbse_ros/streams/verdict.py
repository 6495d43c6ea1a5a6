# SPDX-License-Identifier: Apache-2.0
"""Status, reason and faults of a mass for which a state was used."""

from __future__ import annotations

from ..monitor.faults import NONE, Fault, reason_of
from ..payload.load_change import LoadChange
from ..payload.mass import Mass
from .records import GATES, PayloadStatus

Verdict = tuple[PayloadStatus, str, Fault]     # its reason and faults
FIRST_WEIGHED = 0.5     # s of weighing before a mass counts, at first and after that, where some cylinders do not weigh


def verdict_of(mass: Mass, change: LoadChange, limits: tuple[float, float], unseen: str, joint: bool) -> Verdict:
    """By how the load changes (``change``) and the ``limits`` of the payload, kg; ``unseen``: what may have moved while
    nothing weighed; ``joint``: the observer weighed it."""
    low, high = limits
    if joint and not change.found and mass.mass == mass.mass:
        return PayloadStatus.CHANGING, reason_of(Fault.FIRST_MASS), Fault.FIRST_MASS
    if change.unseen and change.changing:
        return PayloadStatus.CHANGING, (
            f'{reason_of(Fault.UNSEEN)}: {unseen} moved while nothing weighed; it counts again after '
            f'{FIRST_WEIGHED:g} s of weighing'), Fault.UNSEEN
    if mass.beyond(limits) and not change.just_begun:
        return PayloadStatus.IMPLAUSIBLE, (
            f'{reason_of(Fault.LIMITS)} {low:g} to {high:g} kg (payload.limits): overload, contact with something, '
            "or a sensor or the machine's file is wrong"), Fault.LIMITS
    if mass.contradiction:
        return PayloadStatus.IMPLAUSIBLE, (
            f"{reason_of(Fault.CONTRADICTION)}: a sensor or the machine's file is wrong, most likely "
            f'{mass.contradiction}'), Fault.CONTRADICTION
    if change.unknown_again:
        return PayloadStatus.NO_DATA, reason_of(Fault.PAUSED), Fault.PAUSED
    if change.changing and not change.unweighed or mass.settling:
        return PayloadStatus.CHANGING, reason_of(Fault.LOAD_CHANGES), Fault.LOAD_CHANGES
    if mass.surprise:
        return PayloadStatus.CHANGING, (
            f'{reason_of(Fault.SURPRISE)}: the machine has moved, or a sensor has become wrong'), Fault.SURPRISE
    return *GATES['too slow' if joint and mass.gate == 'open' and not mass.taken else mass.gate], NONE


def vague(mass: Mass, limits: tuple[float, float], share: float) -> Verdict | None:
    """Of a mass whose interval is wider than a ``share`` of the range of the ``limits``, kg: it is not weighed."""
    widest = share * (limits[1] - limits[0])
    if not 2.0 * mass.half_width > widest:
        return None
    words = f'its interval is wider than {widest:g} kg (payload.max_interval_share of payload.limits)'
    return PayloadStatus.NOT_OBSERVABLE, reason_of(Fault.VAGUE, words), Fault.VAGUE
