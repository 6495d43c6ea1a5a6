# SPDX-License-Identifier: Apache-2.0
"""What was estimated of a log of a machine: series, words, JSON, a report; the truth beside it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..filters.hydraulic_state import MASS
from ..machine import Machine
from ..machine.equations import why_unweighed
from ..monitor.faults import Fault
from ..payload.mass import Cause, center_of
from ..payload.tool_force import ALIGNED, ToolForce
from ..report.result import ResultSeries, entry_unit, with_entries
from ..report.text import cost, cost_line
from ..simulation.truth import KINDS, MachineTruth
from ..streams.records import PayloadEstimate, PayloadStatus
from .log_loads import WeighedLoad
from .track import (
    COLUMNS,
    FORCE_PARTS,
    FORCE_SHOWN,
    ONE_LIFT,
    SHOWN,
    SURE,
    KeptEstimate,
    held_lines,
    held_seconds,
    one_way,
    truth_at,
    unit_of,
)

if TYPE_CHECKING:
    from ..report.data import Run

LARGEST = 3     # causes of the uncertainty in the answer
UNKNOWN = math.nan, math.nan
LOAD_OR_PAYLOAD = ('(payload: what hangs there at the end of the log; load: what was delivered, weighed while it was '
                   'carried, each with its own interval)')


@dataclass(frozen=True, repr=False)
class MachineEstimate(KeptEstimate):
    """Motion and payload of a machine at times ``t`` (k,), s, one for each sensor period; SI.

    ``names`` (l,) of the observer's state, such as ``position/lift``; ``mean``, ``stddev`` (k, l); ``mass``, ``lower``,
    ``upper`` (k,), kg: the payload and its 95 % interval, NaN while it is not known; ``status`` (k): why the mass is or
    is not updated, such as 'updating'; ``loads``; ``truth``; what was kept besides: see ``KeptEstimate``.
    """

    @property
    def estimate(self) -> MachineEstimate:
        """Itself: ``estimate.track`` is ``track``."""
        return self

    @property
    def names(self) -> tuple[str, ...]:
        """Names (l,) of the state's entries."""
        return self.last.state.names

    @property
    def mean(self) -> np.ndarray:
        """State (k, l)."""
        return self.states.mean

    @property
    def mass(self) -> np.ndarray:
        """Mass of the payload (k,), kg."""
        return self.states.mass

    @property
    def lower(self) -> np.ndarray:
        """Lower ends (k,) of its 95 % interval, kg."""
        return self.states.lower

    @property
    def upper(self) -> np.ndarray:
        """Upper ends (k,), kg."""
        return self.states.upper

    @property
    def status(self) -> tuple[str, ...]:
        """Status (k) of the mass, the words of ``streams.records.PayloadStatus`` in small letters."""
        return self.track.status_words

    @property
    def payloads(self) -> Mapping[str, PayloadEstimate]:
        """Of several payloads the estimate of each at the end, by name, and ``estimate['mass/NAME']`` (k,) over time;
        none of one."""
        return self.last.payload.payloads

    @property
    def loads(self) -> tuple[WeighedLoad, ...]:
        """Loads as ``mbse loads`` has them: ``start``, ``end``, s, ``mass``, ``lower``, ``upper``, kg, ``status``,
        ``trusted``, ``faults``."""
        elapsed = self.track.elapsed - self.track.elapsed[0]
        times = ((load, np.interp([load.start, load.end], elapsed, self.t).tolist()) for load in self.counted)
        return tuple(replace(load, start=start, end=end) for load, (start, end) in times)

    @cached_property
    def truth(self) -> MachineTruth | None:
        """The true state at the same times where the bag is of a simulated machine, for ``plot(truth=...)``."""
        found = truth_at(self.recorded, self.machine, self.track.stamp_ns)
        return None if found is None else MachineTruth(
            self.t, self.machine, *(getattr(found, kind) for kind in COLUMNS))

    @property
    def run(self) -> Run:
        """All that the report shows."""
        bag = self.facts.get('Bag')
        from .estimate_report import report_run
        return report_run(self, f'Estimate {f"from {Path(bag).resolve().name}" if bag else f"of {self.machine.name}"}',
                          self.facts)

    def report(self, folder: str | Path, pictures: bool = True) -> Path:
        """Write the report, index.html and PNGs, or without ``pictures``; gives its page. Raises OSError, MbseError
        where the state over time was not kept."""
        from ..report.writer import write_report  # here, because it takes its time to import
        return write_report(self.run, Path(folder), pictures)

    def series(self) -> list[ResultSeries]:
        """The mass with its interval, then the state's entries with their deviations; pressures in one panel."""
        state = state_series(self.machine, self.names, self.mean, self.stddev)
        columns = dict(self.states.columns)
        others = [ResultSeries(f'mass/{name}', 'kg', columns.pop(f'mass/{name}'), lower=columns.pop(f'lower/{name}'),
                               upper=columns.pop(f'upper/{name}')) for name in self.payloads]
        others += [ResultSeries(name, 'N', columns.pop(name), columns.pop(f'tool_force_stddev/{part}'),
                                panel='force at the tool') for part in FORCE_SHOWN
                   if (name := f'tool_force/{part}') in columns]
        others += [ResultSeries(name, unit_of(name), values) for name, values in columns.items()]
        return [ResultSeries('mass', 'kg', self.mass, lower=self.lower, upper=self.upper), *state, *others]

    def _end(self) -> list[str]:
        payload = self.last.payload        # known where no states over time were kept, too
        return [f'{f"{name}: " if name else ""}mass {found.mass:.6g} kg ({found.lower:.6g} to {found.upper:.6g})'
                for name, found in (payload.payloads or {'': payload}).items()]

    def _found(self) -> dict[str, ResultSeries]:
        return with_entries(super()._found(), self.names, self.mean, self.stddev,
                            partial(entry_unit, self.machine.description))

    def summary(self) -> list[str]:
        """The answer, what became of it at the end of the log, and the cost."""
        payload, unweighed, doubts = self.last.payload, why_unweighed(self.machine), self.doubts
        if unweighed:
            lines = [f'no mass: {unweighed}']
        elif payload.payloads:
            lines = [line for name, found in payload.payloads.items() for line in _mass_lines(
                f'payload {name}', found, self.budgets.get(name, ()), bool(doubts), True)]
        elif not math.isfinite(payload.mass):
            why, doubts = doubts[0] if doubts else payload.reason or 'no sample of it can be trusted yet', doubts[1:]
            lines = [f'payload unknown: {why}', *held_lines(self.track)]
        else:
            lines = _mass_lines('payload', payload, self.budget, bool(doubts))
            if payload.lower > 0.0 and any(name.startswith('moment/') for name in self.last.state.names):
                places = ', '.join(f'{axis} {1e3 * value:.0f} mm (1 sigma {1e3 * stddev:.0f})'
                                   for axis, (value, stddev) in _centre(self).items() if stddev > 0.0)
                lines.append(f'its centre in the frame of {self.machine.payload_data.body}: {places}')
            if payload.status is not PayloadStatus.UPDATING:
                lines.append(f'held at the end of the log: {payload.reason}')
        if payload.tool_force is not None:
            lines += _force_lines(self)
        if (tool := self.machine.description.attachment) is not None:
            lines.append(tool.line)
        lines += [f'not trusted: {doubt}' for doubt in doubts]
        lines += [f'load {k}: {load.text}' for k, load in enumerate(self.counted, 1)]
        lines += [LOAD_OR_PAYLOAD] if self.counted and math.isfinite(payload.mass) else []
        lines += [ONE_LIFT] if math.isfinite(payload.mass) and one_way(self) else []
        lines += [f'loads are not counted: {self.uncounted}'] if self.uncounted and not unweighed else []
        return [*lines, cost_line(self.seconds, self.log_seconds)]

    def _values(self, full: bool) -> dict[str, Any]:
        """Payload at the end, warnings, cost, and in ``full`` the state at the stamps."""
        payload = self.last.payload
        doubtful = self.doubts and payload.status is not PayloadStatus.NO_DATA
        status = PayloadStatus.IMPLAUSIBLE if doubtful else payload.status
        centre = list(_centre(self).values()) if self.machine.description.payload is not None else [UNKNOWN]
        result: dict[str, Any] = {
            'payload': {'mass': payload.mass, 'stddev': payload.stddev, 'interval': [payload.lower, payload.upper],
                        'status': status.name.lower(), 'faults': payload.faults.words, 'samples': payload.samples,
                        **self._trust,
                        'seconds': {status.name.lower(): seconds
                                    for status, seconds in held_seconds(self.track).items()},
                        'centre': [centre[0][0], centre[-1][0]], 'centre_stddev': [centre[0][1], centre[-1][1]],
                        'budget': _causes(self.budget),
                        'loads': [load.values() for load in self.counted]},
            'warnings': list(self.warnings), 'cost': cost(self.seconds, self.log_seconds)}
        if payload.payloads:
            result['payloads'] = {name: {
                'mass': found.mass, 'stddev': found.stddev, 'interval': [found.lower, found.upper],
                'raw': found.raw, 'low_passed': found.low_passed, 'status': found.status.name.lower(),
                'reason': found.reason, 'faults': found.faults.words, 'samples': found.samples,
                'budget': _causes(self.budgets.get(name, ()))} for name, found in payload.payloads.items()}
        if payload.tool_force is not None:
            result['tool_force'] = {**vars(payload.tool_force), **_pointing(payload.tool_force),
                                    'largest': _largest_force(self), 'unknown_contact': _unknown_contact(self)}
        return result | ({'state': _state(self)} if full else {})


def _mass_lines(label: str, payload: PayloadEstimate, budget: Sequence[Cause], doubtful: bool,
                several: bool = False) -> list[str]:
    """A mass and what makes it uncertain; of several payloads where it is not known, or held, why."""
    if not math.isfinite(payload.mass) or several and Fault.VAGUE in payload.faults:
        return [f'{label} unknown: {payload.reason or "no sample of it can be trusted yet"}']
    known = math.isfinite(payload.upper - payload.lower)
    interval = f'{payload.lower:.2f} to {payload.upper:.2f} kg' if known else 'not known yet'
    lines = [f'{label} {"not trusted: " if doubtful else ""}{payload.mass:.2f} kg, 95 % interval {interval}, from '
             f'{payload.samples} samples of the mass']
    causes = [f'{cause} {cause.kg:.2g} kg' for cause in budget[:LARGEST] if cause.kg > 0.0]
    if known and causes:
        lines.append(f'largest causes of the interval, 1 sigma: {", ".join(causes)}')
    if several and payload.status is not PayloadStatus.UPDATING:
        lines.append(f'{label} held at the end of the log: {payload.reason}')
    return lines


def _causes(budget: Sequence[Cause]) -> list[dict[str, Any]]:
    return [{'cause': cause.cause, 'kg': cause.kg, 'assumed': cause.assumed, 'aged': cause.aged} for cause in budget]


def _centre(estimate: MachineEstimate) -> dict[str, tuple[float, float]]:
    """Where the load is at the end of the log, see ``center_of``."""
    state = estimate.last.state
    return center_of(estimate.machine, state.names, state.mean[-1], state.covariance)


def _largest_force(estimate: MachineEstimate) -> dict[str, Any] | None:
    """The largest force at the tool that is more than SURE deviations: time from the start of the log, s,
    parts, N, and deviations; None: there is none."""
    if estimate.track.largest_force is None:
        return None
    row, found = estimate.track.largest_force
    return {'t': float(estimate.track.elapsed[row]), 'force': [*found.force.tolist(), found.component],
            'stddev': [*found.stddev.tolist(), found.component_stddev], 'direction': found.direction,
            **_pointing(found)}


def _pointing(force: ToolForce) -> dict[str, Any]:
    """Size and direction of a force, which has another ``direction``: that of its component."""
    found = force.pointing
    return {'size': found.size, 'size_stddev': found.size_stddev, 'pointing': found.direction,
            'pointing_stddev': found.direction_stddev}


def _unknown_contact(estimate: MachineEstimate) -> dict[str, float]:
    """Seconds of contact without a force by the reason, the longest first."""
    unknown = {reason: length for (reason, contact), length in estimate.track.force_seconds.items()
               if contact and reason}
    return dict(sorted(unknown.items(), key=lambda item: -item[1]))


def _force_lines(estimate: MachineEstimate) -> list[str]:
    """The largest force at the tool, or that there is none, and for how long a contact had none, and why."""
    point, seconds = estimate.machine.payload_data.contact, estimate.track.force_seconds
    largest = _largest_force(estimate)
    if largest is not None:
        body, shown = point.partition('.')[0], np.isfinite(largest['force'])
        # one number says something along a known direction alone, and nothing new where all of it is in the axes
        shown[-1] = bool(np.abs(largest['direction'][~shown[:-1]]).max(initial=0.0) > ALIGNED)
        along = ', '.join(f'{value:.2f}' for value in largest['direction'])
        names = *FORCE_PARTS[:-1], f'along ({along})'
        words = ', '.join(f'{name} {force / 1e3:.1f} kN (1 sigma {stddev / 1e3:.1f})' for name, force, stddev, there
                          in zip(names, largest['force'], largest['stddev'], shown) if there)
        lines = [f'largest force of the surroundings on {point}, in the axes of {body}, at t = {largest["t"]:.1f} s: '
                 f'{words}']
        if math.isfinite(largest['size']):
            known = 'known' if np.isfinite(largest['pointing']).any() else 'not known'
            lines[0] += (f'; {largest["size"] / 1e3:.1f} kN (1 sigma {largest["size_stddev"] / 1e3:.1f}), '
                         f'its direction {known} (1 sigma {math.degrees(largest["pointing_stddev"]):.1f} deg)')
    elif any(not reason for reason, _ in seconds):
        lines = [f'no force at {point} larger than {SURE:g} of its standard deviations']
    else:
        reason, _ = max(seconds, key=lambda key: seconds[key])
        return [f'no force at {point}: {reason}']
    if unknown := _unknown_contact(estimate):
        said = [f'{reason}{f" ({length:.1f} s)" if len(unknown) > 1 else ""}' for reason, length in unknown.items()]
        lines.append(f'force at {point} not known for {sum(unknown.values()):.1f} s of contact: '
                     f'{"; ".join(said[:SHOWN])}')
    return lines


def _state(estimate: MachineEstimate) -> dict[str, Any]:
    """Kinds of entries, each (n, entries), their standard deviations, and the payload's track."""
    names, states, stddev = estimate.last.state.names, estimate.states, estimate.stddev
    state: dict[str, Any] = {'stamp_ns': estimate.track.stamp_ns, 'names': names}
    for kind in dict.fromkeys(name.split('/')[0] for name in names):
        columns = [i for i, name in enumerate(names) if name.startswith(kind + '/')]
        state |= {kind: states.mean[:, columns], f'{kind}_stddev': stddev[:, columns]}
    for item in ('mass', 'lower', 'upper'):
        state[f'payload_{item}'] = getattr(states, item)
    state['payload_status'] = estimate.track.status_words
    return state | states.columns


def state_series(machine: Machine, names: Sequence[str], mean: np.ndarray, stddev: np.ndarray) -> list[ResultSeries]:
    """Entries (l,) of the state of a machine, without the mass, from ``mean`` and ``stddev`` (k, l): motion, pressures
    in one panel, all else."""
    state = [ResultSeries(name, entry_unit(machine.description, name), mean[:, k], stddev[:, k],
                          panel='pressures' if name.startswith('pressure/') else '')
             for k, name in enumerate(names) if name != MASS]
    order = {kind: place for place, kind in enumerate(KINDS)}
    return sorted(state, key=lambda item: order.get(item.name.partition('/')[0], len(order)))
