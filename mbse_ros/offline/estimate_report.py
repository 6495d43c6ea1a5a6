# SPDX-License-Identifier: Apache-2.0
"""From the estimate of a machine to all that its report shows: signals, mass, tables, the machine as polylines."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
from scipy.special import chdtri

from ..bags.series import TruthSeries
from ..compiled.compiler import remarks
from ..description.basics import GROUND
from ..description.coordinate_units import unit_and_scale
from ..errors import PositionProblemError, SingularConfigurationError
from ..filters.hydraulic_state import MASS
from ..machine import Machine
from ..machine.equations import why_unweighed
from ..payload.mass import NORMAL
from ..report.data import Animation, Clock, Innovation, Nis, PayloadTrack, Run, Series, Signal, Table, Turn
from ..report.series import root_mean_square
from ..report.text import clock_of, computing_time, number, wall_time
from ..scale.table import mass_text, remark_of
from ..streams.records import ObserverStatus, PayloadStatus
from .track import (
    DIRECTION_STDDEV,
    FORCE_SHOWN,
    OF_EACH,
    ONE_LIFT,
    KeptEstimate,
    one_way,
    truth_at,
    unit_of,
)

GROUPS = {'position': 'Position', 'velocity': 'Velocity', 'acceleration': 'Acceleration', 'pressure': 'Pressures',
          'effort': 'Efforts',
          'spool': 'Spool', 'flow': 'Flows', 'supply': 'Supplies', 'inclination': 'Inclination of the base',
          'base_acceleration': 'Acceleration of the base',
          'payload': 'Payload in the state', 'moment': 'Moment of the payload',
          'swing': 'Swing of the load', 'swing_rate': 'Rate of the swing'}
SET = 1.0       # s by which stamps may differ from the time that went by: more, and a clock was set
TO_DO = {       # at the end of a log, by why the mass is held
    PayloadStatus.TOO_SLOW: 'nothing, if the machine rests: the mass is the last one that was weighed',
    PayloadStatus.NO_DATA: 'see which samples are missing: mbse check-data',
    PayloadStatus.NOT_OBSERVABLE: 'move a cylinder that carries the load; the mass does not show in this pose',
    PayloadStatus.OUTSIDE_STROKE: 'weigh away from the ends of the strokes',
    PayloadStatus.ACCELERATING: 'weigh while the machine moves more gently',
    PayloadStatus.IMPLAUSIBLE: "do not use the mass; check sensors and the machine's file: mbse check-data, then "
                               'mbse calibrate',
    PayloadStatus.CHANGING: 'let the log go on until the load has stayed the same for a while of motion',
    PayloadStatus.CONTACT: 'lift the load free of what it touches, or see the sensor that is named'}
LARGEST = 8     # causes of the uncertainty that are shown
FRAMES_PER_SECOND = 12.5
MOST = 7_500           # frames: those of ten minutes; a longer log has fewer a second
UPRIGHT = 0.999        # share of an axis along z from which on a joint is a swing


def report_run(estimate: KeptEstimate, title: str, facts: Mapping[str, str] | None = None) -> Run:
    """All that the report shows of an estimate."""
    t, truth = estimate.track.elapsed, truth_at(estimate.recorded, estimate.machine, estimate.track.stamp_ns)
    return Run(
        title=title, machine=estimate.machine.name, facts={**_facts(estimate), **(facts or {})},
        notes=tuple(_notes(estimate)), signals=tuple(_signals(estimate, t, truth)),
        innovations=tuple(_innovations(estimate, t)), nis=_nis(estimate, t), payload=_payload(estimate, t, truth),
        animation=animation_of(estimate, t), tables=tuple(_tables(estimate, t, truth)), summary=_summary(estimate),
        clock=_clock(estimate, t))


def _clock(estimate: KeptEstimate, t: np.ndarray) -> Clock | None:
    """The time of day at the axis's zero; None where it was never set, or set back meanwhile."""
    stamps = estimate.track.stamp_ns
    if abs(1e-9 * float(stamps[-1] - stamps[0]) - float(t[-1] - t[0])) > SET:
        return None
    return clock_of(int(stamps[0] - round(1e9 * float(t[0]))))


def _summary(estimate: KeptEstimate) -> dict[str, str]:
    """Why the interval is as wide as it is, and what to do."""
    last = estimate.last.payload
    causes = ', '.join(f'{cause} {number(cause.kg)} kg' for cause in estimate.budget[:3] if cause.kg > 0.0)
    todo = [f'do not use the mass: {"; ".join(estimate.doubts)}'] if estimate.doubts else []
    todo += ['read the warnings below before the mass'] if estimate.warnings else []
    todo += [TO_DO[last.status]] if last.status in TO_DO else []
    found = {'Why the interval is so wide, 1 sigma': causes} if causes else {}
    found |= {f'Why it is held ({last.status.name.lower().replace("_", " ")})': last.reason} if last.reason else {}
    return {**found, 'What to do': '; '.join(todo) or 'nothing: the mass is being weighed'}


def _facts(estimate: KeptEstimate) -> dict[str, str]:
    kinds = {v.kind for v in estimate.machine.hydraulics.valves.values()}
    start = wall_time(int(estimate.track.start_ns[0]))
    dated = {'Start of the log': start} if start else {}
    return {'Valve model': ', '.join(sorted(kinds)), **dated,
            'Length of the log': f'{estimate.log_seconds:.1f} s in {len(estimate.track)} segments',
            'Samples of the mass': str(estimate.last.payload.samples),
            'Computing time': computing_time(estimate.seconds, estimate.log_seconds)}


def _notes(estimate: KeptEstimate) -> list[str]:
    """What the result does not say."""
    notes = [f'Warning: {warning}' for warning in (*estimate.warnings, *remarks())]
    if estimate.uncounted and not why_unweighed(estimate.machine):
        notes.append(f'Loads are not counted: {estimate.uncounted}')
    notes += [ONE_LIFT] if one_way(estimate) else []
    notes.append("The 95 % interval holds the scatter of the samples, the uncertainties stated in the machine's file, "
                 'and what is assumed of sensors and base where it states nothing; no other error.')
    return notes


def _signals(estimate: KeptEstimate, t: np.ndarray, truth: TruthSeries | None) -> list[Signal]:
    states, names, channels = estimate.states, estimate.last.state.names, estimate.last.state.channels
    known = _true_columns(estimate.machine, truth)
    signals = []
    for i, name in enumerate(names):
        kind, owner = name.split('/')
        unit, scale = unit_and_scale(estimate.machine.description, name)
        samples = Series(t, states.measured[:, channels.index(name)]) if name in channels else None
        true = Series(t, known[name]) if name in known else None
        estimated = Series(t, states.mean[:, i], np.sqrt(np.maximum(states.variance[:, i], 0.0)))
        signals.append(Signal(f'{kind} {owner}', unit, scale, GROUPS[kind], samples, estimated, true))
    columns, payloads = dict(states.columns), estimate.last.payload.payloads
    for name in payloads:
        mass, lower, upper, _ = (columns.pop(f'{kind}/{name}') for kind in OF_EACH)
        signals.append(Signal(f'payload {name}', 'kg', group='Payloads',
                              estimated=Series(t, mass, (upper - lower) / (2 * NORMAL))))
    for part in FORCE_SHOWN:
        force, stddev = (columns.pop(f'tool_force{kind}/{part}', None) for kind in ('', '_stddev'))
        if force is not None:
            signals.append(Signal(f'force at the tool, {part}', 'kN', 1e-3, 'Force at the tool',
                                  estimated=Series(t, force, stddev)))
    if (spread := columns.pop(DIRECTION_STDDEV, None)) is not None:
        signals.append(Signal('force at the tool, standard deviation of its direction', 'deg',
                              float(np.degrees(1.0)),
                              'Force at the tool', estimated=Series(t, spread)))
    return [*signals, *(Signal(name, unit_of(name), group='Other numbers', estimated=Series(t, values))
                        for name, values in columns.items())]


def _true_columns(machine: Machine, truth: TruthSeries | None) -> dict[str, np.ndarray]:
    """True values (n,) by the name of the state's entry."""
    if truth is None:
        return {}
    columns = {f'{kind}/{c}': getattr(truth, kind)[:, i]
               for kind in ('position', 'velocity', 'acceleration') for i, c in enumerate(machine.coordinates)}
    return columns | {f'pressure/{v}': truth.pressure[:, i] for i, v in enumerate(machine.volumes)} | {
        MASS: truth.payload}


def _innovations(estimate: KeptEstimate, t: np.ndarray) -> list[Innovation]:
    value, stddev, result = estimate.states.innovation, estimate.states.innovation_stddev, []
    for i, channel in enumerate(estimate.last.state.channels):
        unit, scale = unit_and_scale(estimate.machine.description, channel, difference=True)
        result.append(Innovation(channel, unit, t, value[:, i], stddev[:, i], scale))
    return result


def _nis(estimate: KeptEstimate, t: np.ndarray) -> Nis:
    dof = estimate.states.nis_dof
    safe = np.maximum(dof, 1.0)
    return Nis(t, np.where(dof > 0, estimate.states.nis, np.nan), dof, chdtri(safe, 0.975), chdtri(safe, 0.025))


def _payload(estimate: KeptEstimate, t: np.ndarray, truth: TruthSeries | None) -> PayloadTrack:
    states = estimate.states
    names = {int(s): s.name.lower().replace('_', ' ') for s in PayloadStatus}
    return PayloadTrack(t, states.raw, states.low_passed, states.mass, states.lower, states.upper,
                        estimate.track.status, names, int(PayloadStatus.UPDATING),
                        None if truth is None else truth.payload, *_of_several(estimate))


def _of_several(estimate: KeptEstimate) -> tuple[str, str]:
    """Of several payloads what the others weigh at the end, in words, and the name of the first; else nothing."""
    payloads = estimate.last.payload.payloads
    others = [f'{name}: {found.mass:.1f} kg, 95 % interval {found.lower:.1f} to {found.upper:.1f} kg'
              if np.isfinite(found.mass) else f'{name}: no mass' for name, found in list(payloads.items())[1:]]
    others = [f'{text} ({found.status.name.lower().replace("_", " ")})'
              for text, found in zip(others, list(payloads.values())[1:])]
    return '; '.join(others), next(iter(payloads), '')


def _tables(estimate: KeptEstimate, t: np.ndarray, truth: TruthSeries | None) -> list[Table]:
    """Loads, what makes the mass uncertain, and errors against the truth."""
    tables = [Table('Loads', ('from', 'to', 'by the clock', 'mass, 95 % interval', ''), [
        (f'{load.start:.1f} s', f'{load.end:.1f} s',
         wall_time(load.record.data['start_ns'], load.record.data['end_ns']), f'{mass_text(load.record.mass)} kg',
         remark_of(load.record, set())) for load in estimate.counted])]
    causes = [(str(cause), f'{number(cause.kg)} kg') for cause in estimate.budget[:LARGEST] if cause.kg > 0.0]
    tables.append(Table('What makes the mass uncertain: standard deviations, the largest first',
                        ('cause', 'of the mass'), causes))
    return [table for table in (*tables, _errors(estimate, t, truth)) if table.rows]


def _errors(estimate: KeptEstimate, t: np.ndarray, truth: TruthSeries | None) -> Table:
    """Errors against the truth, after the first second."""
    names, known = estimate.last.state.names, _true_columns(estimate.machine, truth)
    rows = []
    for name in (name for name in known if name in names):
        error = estimate.states.mean[:, names.index(name)] - known[name]
        error = error[(t > 1.0) & np.isfinite(error)]
        if error.size:
            unit, scale = unit_and_scale(estimate.machine.description, name, difference=True)
            rows.append((name, f'{number(scale * root_mean_square(error))} {unit}',
                         f'{number(scale * float(np.max(np.abs(error))))} {unit}'))
    return Table('Error against the truth, after 1 s', ('quantity', 'RMS', 'largest'), rows)


def animation_of(estimate: KeptEstimate, t: np.ndarray) -> Animation:
    """Estimated and measured machine at the frames; turned with the swing, where the machine has one."""
    machine, states, names = estimate.machine, estimate.states, estimate.last.state.channels
    step = max(1, round(1.0 / FRAMES_PER_SECOND / max(np.median(np.diff(t)), 1e-6))) if len(t) > 1 else 1
    step = max(step, -(-len(t) // MOST))
    rows, count = slice(0, None, step), len(machine.coordinates)
    channels = [f'position/{name}' for name in machine.coordinates]
    estimated = _poses(machine, states.mean[rows, :count])
    measured = None
    if set(channels) <= set(names):
        columns = [names.index(channel) for channel in channels]
        measured = _lines(machine, _poses(machine, states.measured[rows][:, columns]))
    captions = [_caption(mass, ObserverStatus(status)) for mass, status in zip(
        states.mass[rows].tolist(), estimate.track.observer_status[rows].tolist())]
    return Animation(t[rows], _lines(machine, estimated), measured, captions, _turn(machine, estimated), machine.solids,
                     states.mass[rows])


def _caption(mass: float, status: ObserverStatus) -> str:
    """The mass, and the observer's status where it cannot be trusted."""
    text = f'{mass:.1f} kg' if np.isfinite(mass) else 'mass not known yet'
    return text if status is ObserverStatus.OK else f'{text} (observer {status.name.lower()})'


def _poses(machine: Machine, coordinates: Iterable[np.ndarray]) -> list[np.ndarray | None]:
    """All coordinates (n,) at independent ones, each from the pose before; None where missing or out of reach."""
    q, poses = None, []
    for z in coordinates:
        pose = None
        if np.isfinite(z).all():
            try:
                pose = q = machine.position(z, q)
            except (PositionProblemError, SingularConfigurationError):
                pass
        poses.append(pose)
    return poses


def _lines(machine: Machine, poses: list[np.ndarray | None]) -> dict[str, np.ndarray]:
    """Polylines (frames, k, 3) of poses; NaN where there is none."""
    hidden = {name: np.full_like(points, np.nan) for name, points in machine.outline_at(machine.model.start.q).items()}
    frames = [hidden if q is None else machine.outline_at(q) for q in poses]
    return {name: np.array([frame[name] for frame in frames]) for name in hidden}


def _turn(machine: Machine, poses: list[np.ndarray | None]) -> Turn | None:
    """Angle of the joint about z that carries the machine on the ground; None where there is none."""
    for name, joint in machine.description.joints.items():
        upright = joint.axis and abs(joint.axis[-1]) > UPRIGHT and machine.description.dimension == 3
        if joint.type == 'revolute' and upright and joint.parent.body == GROUND and name in machine.system.names:
            place = machine.system.names.index(name)
            angle = [np.nan if q is None else np.sign(joint.axis[-1]) * q[place] for q in poses]
            x, y, _ = (item.value for item in machine.description.ground[joint.parent.point])
            return Turn(np.array(angle), (x, y))
    return None
