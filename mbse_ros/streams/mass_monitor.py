# SPDX-License-Identifier: Apache-2.0
"""Whether a state may be weighed, and how far the mass that follows from it is to be trusted."""

from __future__ import annotations

from collections.abc import Callable
from math import inf, nan

from ..machine import Machine
from ..machine.equations import missing_pushes
from ..monitor.clocks import Elapsed
from ..monitor.exchanged import Exchanged
from ..monitor.faults import DOUBTS, GATED, NONE, Fault, reason_of
from ..monitor.mass import (
    FIRST_WEIGHED,
    WANDERED,
    Alarm,
    Drift,
    LoadChange,
    OneWay,
    Trust,
    Verdict,
    vague,
    verdict_of,
    with_zeros,
)
from ..monitor.rates import LASTS_NS, LOOK_BACK, REMEMBERED_NS, Lately
from ..payload.mass import Mass
from .machine_monitor import OR_SENSOR
from .records import JUDGED, ObserverStatus, PayloadStatus, StateEstimate

RETURN_NS = 1_000_000_000    # after a doubt, until what the observer has learnt of the mass meanwhile is forgotten


class MassMonitor:
    """Watches the states and the masses of one machine; ``difference``: see ``PayloadEstimator.difference``.
    ``name``: of several payloads the one whose mass it is; then nothing looks for exchanged hoses and contacts, which
    one mass for all equations shows, and a mass whose interval is wider than its limits is NOT_OBSERVABLE, held or not:
    the poses may not have shown it.

    ``doubted``: whether the last state was in doubt, so that what was learnt of the mass just before is not to count.
    """

    def __init__(self, machine: Machine, difference: Callable[[Mass, Mass], tuple[float, float]],
                 name: str = '') -> None:
        payload = machine.description.payloads[name] if name else machine.payload_data
        self._limits, self._difference, self._of = payload.limits, difference, f'payloads.{name}' if name else 'payload'
        self._exchanged, self._widest = None if name else Exchanged(machine), 1.0 if name else inf
        self._refusable = GATED if name else (PayloadStatus.UPDATING,)     # statuses that a wide interval overrules
        self._whole = len(machine.weighing) == len(machine.actuated)      # else nothing contradicts a jerk
        self._unseen = ' and '.join(missing_pushes(machine)) or 'actuators with silent sensors'
        self.reset()

    def reset(self) -> None:
        """Another load, of which nothing is known."""
        if self._exchanged is not None:
            self._exchanged.reset()
        self._doubted_ns, self._rare_ns, self._rare = -RETURN_NS, -REMEMBERED_NS, ('', NONE)
        self._trust, self._drift, self._one_way = Trust(), Drift(self._difference), OneWay()
        self._change = LoadChange(self._limits[1] - self._limits[0], self._difference,
                                  0.0 if self._whole else FIRST_WEIGHED)
        self._elapsed, self._lately = Elapsed(), Lately(self._limits[1] - self._limits[0])
        self._refused_ns, self._unbalanced, self._swapped = -RETURN_NS, False, False
        self.doubted = False

    @property
    def distrust(self) -> str:
        """How long ago the last alarm was, and what is left until the mass counts again; '' while it counts."""
        return self._trust.left_words(self._elapsed.total * 1e-9)

    def pause_before(self, state: StateEstimate) -> float | None:
        """Time, s, without any sensor before a state that starts again, 0 where that is not why; None where it does
        not."""
        before, length = self._elapsed.total, len(state.mean) * state.step_ns
        now = self._elapsed.add(state.stamp_ns - length, state.stamp_ns, state.restart)
        if not state.restart:
            return None
        pause = (now - before - length) * 1e-9
        if pause > 0.0:
            self._change.pause()
        return pause

    def judge_state(self, state: StateEstimate, mass: Mass | None) -> Verdict | None:
        """Why nothing is weighed by a state, after a ``mass``; None where it is."""
        now, faults, self.doubted = self._elapsed.total, state.faults, False
        rare, outside = (Fault.RARE in faults, Fault.OUTSIDE_FORCE in faults) if faults else (False, False)
        if faults & (Fault.REJECTED | Fault.OUTSIDE_FORCE):
            self._refused_ns = now
        if rare:
            self._rare_ns, self._rare = now, (state.reason, faults)
        # where a zero is wrong each equation weighs another mass, which is no contact
        self._look_at_hoses(state, mass, rare or outside or mass is not None and bool(mass.zeros))
        if state.status is not ObserverStatus.OK:
            if faults == Fault.MISSING:
                self._change.pause()
            if faults & DOUBTS:
                self._doubt()
            return PayloadStatus.NO_DATA, f'observer {state.status.name.lower()}: {state.reason}', faults
        if outside or self._exchanged is not None and self._exchanged.touches:
            self._doubt()
            return (PayloadStatus.CONTACT, reason_of(Fault.OUTSIDE_FORCE) + OR_SENSOR * outside,
                    Fault.OUTSIDE_FORCE)
        if state.weighs and now - self._doubted_ns < RETURN_NS:
            return (PayloadStatus.NO_DATA, f'{reason_of(Fault.DOUBTED)} within the last {RETURN_NS * 1e-9:g} s',
                    Fault.DOUBTED)
        return None

    def _doubt(self) -> None:
        self._doubted_ns, self.doubted = self._elapsed.total, True

    def _look_at_hoses(self, state: StateEstimate, mass: Mass | None, disturbed: bool) -> None:
        """Weigh both ways, with the pressures as they are and exchanged, by states that nothing speaks against."""
        if self._exchanged is None:
            return
        dt = len(state.mean) * state.step_ns * 1e-9
        self._exchanged.signals.take(dt, state.measured)
        if state.status is not ObserverStatus.OK or state.restart or disturbed:
            self._exchanged.interrupt()
            return
        self._exchanged.take(dt, state.mean[-1], state.covariance, (
            state.measured, state.innovation, state.innovation_stddev), mass.mass if mass else nan)

    def judge_mass(self, state: StateEstimate, mass: Mass, kept: float, held: Verdict | None, widest: float) -> Verdict:
        """Status, reason and faults of a ``mass`` after a state; ``kept``: see ``PayloadEstimator``; ``held``: why it
        is not of this state; ``widest``: interval, in ranges of the limits, of a mass that counts as weighed."""
        now, since_rare = self._elapsed.total, self._elapsed.total - self._rare_ns
        self._lately.take(now, state.mass_information, mass, Fault.RARE in state.faults)
        looks_back = (LOOK_BACK,) if since_rare < REMEMBERED_NS else ()
        self._change.take(now * 1e-9, mass, kept, *looks_back)
        verdict = held or self._or_rate(mass, verdict_of(
            mass, self._change, self._limits, self._unseen, state.weighs, self._of))
        if state.weighs:
            verdict = self._or_distrust(state, mass, verdict)
        if self._exchanged is not None and verdict[0] in JUDGED and (
                said := self._exchanged.said(verdict[0] is PayloadStatus.UPDATING)):
            verdict = (PayloadStatus.IMPLAUSIBLE if Fault.EXCHANGED in said[1] else PayloadStatus.NO_DATA), *said
        self._swapped = Fault.EXCHANGED in verdict[2]
        if verdict[0] in self._refusable and not verdict[2]:
            verdict = (vague(mass, self._limits, min(widest, self._widest), self._of)
                       or (with_zeros(mass, verdict) if mass.zeros else verdict))
        return verdict

    def _or_rate(self, mass: Mass, verdict: Verdict) -> Verdict:
        """The same, or that samples too rare are to blame for it."""
        since = self._elapsed.total - self._rare_ns
        if (verdict[0] in (PayloadStatus.CHANGING, PayloadStatus.IMPLAUSIBLE) and since < LASTS_NS
                or verdict[0] is PayloadStatus.UPDATING and since < REMEMBERED_NS and not self._lately.shows(mass)):
            return PayloadStatus.NO_DATA, *self._rare
        return verdict

    def _or_distrust(self, state: StateEstimate, mass: Mass, verdict: Verdict) -> Verdict:
        """The same, but for a mass that looks well soon after one that cannot be."""
        status, why, faults = verdict
        dt, updating = state.step_ns * 1e-9 * len(state.mean), status is PayloadStatus.UPDATING
        known, contact, implausible = (self._change.found, status is PayloadStatus.CONTACT,
                                       status is PayloadStatus.IMPLAUSIBLE or self._swapped)
        doubted = self._doubted_ns == self._elapsed.total
        # samples that are missing speak against nothing
        missing = (state.status is not ObserverStatus.OK and not doubted
                   or status is PayloadStatus.NO_DATA and self._change.unknown_again)
        alarm = (contact or self._change.changing
                 or status in (PayloadStatus.CHANGING, PayloadStatus.NO_DATA)) and not (
            missing or self._change.unseen or Fault.RARE in faults      # rare: it is not said what else there is
            or mass.settling and not self._change.changing)
        refused = state.status is not ObserverStatus.OK and Fault.REJECTED in state.faults
        hidden = self._elapsed.total - self._rare_ns < REMEMBERED_NS     # by the rate: the mass settles for longer
        wanders = self._drift.take(dt, mass, updating and mass.taken > 0,
                                   alarm or implausible or hidden or self._change.just_paused)
        unbalanced = Fault.FORCE_BALANCE in state.faults
        explained = unbalanced and not self._unbalanced and self._elapsed.total - self._refused_ns < RETURN_NS
        self._unbalanced = unbalanced
        if explained or updating:
            why = reason_of(Fault.FORCE_BALANCE) if explained else WANDERED
        elif faults == Fault.DOUBTED:
            why = ''        # the doubt has its own
        self._trust.take(dt, implausible, alarm and known, mass.taken > 0, contact, refused, wanders,
                         doubted and not (known or hidden), Alarm(why, self._elapsed.total * 1e-9),
                         self._drift.direction, self._one_way.take(mass, self._change.changing), explained)
        if updating and self._trust.lost:
            return PayloadStatus.IMPLAUSIBLE, reason_of(Fault.NOT_TRUSTED, self._trust.words), Fault.NOT_TRUSTED
        return verdict
