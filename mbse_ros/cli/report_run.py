# SPDX-License-Identifier: Apache-2.0
"""From estimates to the arrays of a report."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from scipy.stats import chi2

from ..bags.series import TruthSeries
from ..errors import MbseError
from ..machine import Machine
from ..report.data import Animation, Innovation, Nis, PayloadTrack, Run, Series, Signal, Table
from ..streams.records import PayloadStatus
from .offline import Estimate, truth_at

SHOWN = {'position': ('mm', 1e3), 'velocity': ('mm/s', 1e3), 'acceleration': ('m/s²', 1.0), 'pressure': ('MPa', 1e-6),
         'spool': ('V', 1.0), 'flow': ('l/min', 6e4)}
GROUPS = {'position': 'Position', 'velocity': 'Velocity', 'acceleration': 'Acceleration', 'pressure': 'Pressures',
          'spool': 'Spool', 'flow': 'Flows'}
FRAMES_PER_SECOND = 12.5
ONE_LIFT = ('Friction and load cannot be told apart from one lift: both push against the piston. The mass rests on the '
            "friction in the machine's file; only a run that also lowers the load can check it.")


def report_run(estimate: Estimate, title: str, facts: Mapping[str, str] | None = None) -> Run:
    """All that the report shows of an estimate."""
    t = (estimate.stamps_ns - estimate.outputs[0].segment.start_ns) * 1e-9
    truth = truth_at(estimate)
    return Run(
        title=title, machine=estimate.machine.name, facts={**_facts(estimate), **(facts or {})},
        notes=tuple(_notes(estimate)), signals=tuple(_signals(estimate, t, truth)),
        innovations=tuple(_innovations(estimate, t)), nis=_nis(estimate, t), payload=_payload(estimate, t, truth),
        animation=_animation(estimate, t), tables=tuple(_tables(estimate, truth)))


def _facts(estimate: Estimate) -> dict[str, str]:
    kinds = {v.kind for v in estimate.machine.description.hydraulics.valves.values()}
    return {'Machine': estimate.machine.name, 'Valve model': ', '.join(sorted(kinds)),
            'Length of the log': f'{estimate.log_seconds:.1f} s', 'Segments': str(len(estimate.outputs)),
            'Computing time': f'{estimate.seconds:.3f} s ({100 * estimate.seconds / estimate.log_seconds:.2f} % of '
                              'real time)'}


def _notes(estimate: Estimate) -> list[str]:
    """What the result does not say."""
    notes = [f'Warning: {warning}' for warning in estimate.warnings]
    column = estimate.outputs[0].state.names.index(f'velocity/{estimate.machine.cylinders[0]}')
    fast = np.array([o.state.mean[-1, column] for o in estimate.outputs
                     if o.payload.status is PayloadStatus.UPDATING])
    if len(fast) and max(np.mean(fast > 0), np.mean(fast < 0)) > 0.95:     # all but noise goes one way
        notes.append(ONE_LIFT)
    notes.append("The 95 % interval holds the scatter of the samples and the uncertainties stated in the machine's "
                 'file; it cannot hold what that file does not know of.')
    return notes


def _signals(estimate: Estimate, t: np.ndarray, truth: TruthSeries | None) -> list[Signal]:
    states = [o.state for o in estimate.outputs]
    names, channels = states[0].names, states[0].channels
    mean, variance = np.array([s.mean[-1] for s in states]), np.array([np.diag(s.covariance) for s in states])
    measured, known = np.array([s.measured for s in states]), _true_columns(estimate.machine, truth)
    signals = []
    for i, name in enumerate(names):
        kind, owner = name.split('/')
        unit, scale = SHOWN[kind]
        samples = Series(t, measured[:, channels.index(name)]) if name in channels else None
        true = Series(t, known[name]) if name in known else None
        estimated = Series(t, mean[:, i], np.sqrt(np.maximum(variance[:, i], 0.0)))
        signals.append(Signal(f'{kind} {owner}', unit, scale, GROUPS[kind], samples, estimated, true))
    return signals


def _true_columns(machine: Machine, truth: TruthSeries | None) -> dict[str, np.ndarray]:
    """True values (n,) by the name of the state's entry."""
    if truth is None:
        return {}
    columns = {f'{kind}/{c}': getattr(truth, kind)[:, i]
               for kind in ('position', 'velocity', 'acceleration') for i, c in enumerate(machine.cylinders)}
    return columns | {f'pressure/{v}': truth.pressure[:, i] for i, v in enumerate(machine.volumes)}


def _innovations(estimate: Estimate, t: np.ndarray) -> list[Innovation]:
    states = [o.state for o in estimate.outputs]
    value, stddev = np.array([s.innovation for s in states]), np.array([s.innovation_stddev for s in states])
    result = []
    for i, channel in enumerate(states[0].channels):
        unit, scale = ('kPa', 1e-3) if channel.startswith('pressure') else SHOWN['position']
        result.append(Innovation(channel, unit, t, value[:, i], stddev[:, i], scale))
    return result


def _nis(estimate: Estimate, t: np.ndarray) -> Nis:
    dof = np.array([float(o.state.nis_dof) for o in estimate.outputs])
    safe = np.maximum(dof, 1.0)
    value = np.where(dof > 0, [o.state.nis for o in estimate.outputs], np.nan)
    return Nis(t, value, dof, chi2.ppf(0.025, safe), chi2.ppf(0.975, safe))


def _payload(estimate: Estimate, t: np.ndarray, truth: TruthSeries | None) -> PayloadTrack:
    payloads = [o.payload for o in estimate.outputs]
    columns = {name: np.array([getattr(p, name) for p in payloads], dtype=float)
               for name in ('raw', 'low_passed', 'mass', 'lower', 'upper', 'status')}
    names = {int(s): s.name.lower().replace('_', ' ') for s in PayloadStatus}
    return PayloadTrack(t, **columns, status_names=names, updating=int(PayloadStatus.UPDATING),
                        true=None if truth is None else truth.payload)


def _animation(estimate: Estimate, t: np.ndarray) -> Animation | None:
    """Estimated and measured machine at the frames of the animation; None where it leaves its geometry."""
    machine, states = estimate.machine, [o.state for o in estimate.outputs]
    count = len(machine.cylinders)
    step = max(1, round(1.0 / FRAMES_PER_SECOND / max(np.median(np.diff(t)), 1e-6))) if len(t) > 1 else 1
    rows = range(0, len(t), step)
    columns = [states[0].channels.index(f'position/{c}') for c in machine.cylinders
               if f'position/{c}' in states[0].channels]
    try:
        estimated = _lines(machine, [states[i].mean[-1, :count] for i in rows])
        measured = _lines(machine, [states[i].measured[columns] for i in rows]) if len(columns) == count else None
    except MbseError:
        return None
    masses = [estimate.outputs[i].payload.mass for i in rows]
    captions = [f'{mass:.1f} kg' if np.isfinite(mass) else '? kg' for mass in masses]
    return Animation(t[list(rows)], estimated, measured, captions)


def _lines(machine: Machine, positions: list[np.ndarray]) -> dict[str, np.ndarray]:
    """Polylines (frames, k, 3) at piston positions; a sample that is missing repeats the one before."""
    frames, last = [], np.mean(machine.stroke, axis=1)
    for position in positions:
        last = np.where(np.isfinite(position), position, last)
        frames.append(machine.outline(last))
    return {name: np.array([frame[name] for frame in frames]) for name in frames[0]}


def _tables(estimate: Estimate, truth: TruthSeries | None) -> list[Table]:
    """Errors against the truth, after the first second."""
    if truth is None:
        return []
    late = (estimate.stamps_ns - estimate.outputs[0].segment.start_ns) > 1_000_000_000
    names, known = estimate.outputs[0].state.names, _true_columns(estimate.machine, truth)
    rows = []
    for name, true in known.items():
        error = np.array([o.state.mean[-1, names.index(name)] for o in estimate.outputs]) - true
        if late.any():
            unit, scale = SHOWN[name.split('/')[0]]
            rows.append((name, f'{scale * np.sqrt(np.mean(error[late] ** 2)):.4g} {unit}',
                         f'{scale * np.max(np.abs(error[late])):.4g} {unit}'))
    return [Table('Error against the truth at the stamps, after 1 s', ('quantity', 'RMS', 'largest'), rows)]
