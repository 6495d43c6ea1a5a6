# SPDX-License-Identifier: Apache-2.0
"""``check``: what was understood of a machine's or a mechanism's file, what follows from it, what is odd about it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ..description.age import age_text, as_calibrated, drifting
from ..description.consistency import odd_bodies, odd_sensors, odd_valves
from ..description.coordinate_units import measured_unit, shown, unit_of
from ..description.explain import explain
from ..description.load import describe
from ..description.tables import Section, TableRow, show
from ..dynamics.configurations import neighbours
from ..dynamics.formulations.redundancy import RedundantRow, redundant_rows
from ..dynamics.model import Model, load_model
from ..dynamics.partition import alternatives, choose_independent, condition
from ..dynamics.singular import check_determined, check_start
from ..errors import DescriptionError
from ..filters.observability.machine import check_counts, mass_accuracy, payloads_accuracy
from ..machine import Machine
from ..machine.channels import Channel
from ..machine.equations import check_weighs, missing_pushes, why_unweighed
from ..machine.reach import BEYOND, Reach, misfits, reach_of
from ..report.result import Answer
from ..sources.fields import path_text
from ..sources.machine import for_machine, section_of
from .checked import checked
from .estimate import Tuning, words

THIN = 0.2             # of the bore: rods are 0.4 to 0.8 of it
BADLY = 50.0           # condition of the independent coordinates from which others are proposed
DOUBTED = 3.0           # times the delay of a sensor, from which its deviation may be another unit
FAR = 0.05             # change of the guess by the assembly, m or rad, that is worth a line
_LONGEST = 40          # coordinates of the start that are listed


@dataclass(frozen=True)
class CheckedFile(Answer):
    """What was understood of a file: ``sections`` of names, values and notes, ``brief``: those that follow from it;
    ``warnings``: what is odd about it; the ``model`` of its mechanism; ``trouble``: what keeps a machine from weighing
    as its file says."""

    file: str
    model: Model
    sections: tuple[Section, ...]
    warnings: tuple[str, ...] = field()     # without a default, although the base has one
    end: str
    trouble: DescriptionError | None = None
    brief: tuple[Section, ...] = ()

    def summary(self) -> list[str]:
        """What holds."""
        return [f'{self.file}: {self.end}']

    def _values(self, full: bool) -> dict[str, Any]:
        return {'file': self.file, 'warnings': self.warnings, 'sections': {section.title: {
            row.name: [row.value, row.note] for row in section.rows} for section in self.sections}}

    def draw(self, path: str | Path) -> None:
        """Draw the start, .png. Raises OSError."""
        from ..report.linkage_drawing import write_linkage  # here, as they take their time to import
        from .results.mechanism_picture import Picture
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        write_linkage(Picture(self.model).at(self.model.start.q), Path(path))


@checked
def check(name: str | Path, *, coordinates: str | None = None, tuning: Tuning | None = None) -> CheckedFile:
    """Validate a machine or a mechanism and explain it: what was understood of its file and what follows from it, what
    is odd, and where settings (``tuning``, as of ``estimate``) contradict it.

    ``coordinates``: 'natural', 'reference_point' or 'relative' instead of the file's. The result: ``sections``,
    ``warnings``, ``summary()``, ``to_json()``, ``draw(path)``. Raises DescriptionError (file, key, value, what was
    expected), SettingError, PositionProblemError.

    >>> check('four_bar').warnings
    ()
    """
    description, settings = describe(str(name)), words(tuning or {})
    machine = Machine(description) if description.is_machine else None
    model = machine.model if machine is not None and coordinates in (None, description.coordinate_type) else (
        load_model(description, coordinates))
    check_start(model)
    check_determined(model)
    sections = [*explain(description), equation_section(model), start_section(model)]
    odd, end, trouble = [*odd_bodies(description), *model_warnings(model)], 'all loops close at the start', None
    if machine is None:
        if settings:
            try_filter(model, settings)
        return CheckedFile(description.file, model, tuple(sections), tuple(odd), end, brief=tuple(sections))
    odd += contradictions(machine, settings) if settings else ()
    odd += [*bore_warnings(machine), *odd_sensors(description), *odd_valves(description), *form_warnings(machine)]
    reach = reach_of(machine)
    odd += reach_warnings(machine, reach)
    follows = [machine_section(machine), channel_section(machine), *source_sections(machine),
               *([reach_section(machine, reach)] if reach else ()), weighing_section(machine)]
    odd += payload_warnings(machine)
    try:
        if machine.measured_pushes and machine.description.payload is not None:
            check_weighs(machine)
            try:
                check_counts(machine)
            except DescriptionError as error:
                odd.append(f'loads are not counted: {error}')
    except DescriptionError as error:
        trouble = error
    unweighed = why_unweighed(machine)
    end += ', the cylinders reach over their strokes' * bool(machine.cylinders)
    end += f'; no mass: {unweighed}' if unweighed else ''
    return CheckedFile(description.file, model, (*sections, *follows), tuple(odd), end, trouble, tuple(follows))


def contradictions(machine: Machine, words: Sequence[str]) -> Iterable[str]:
    """Settings of a machine that its file contradicts; raises SettingError for those that nothing has."""
    from ..graph.machines.machine_graph import MachineGraphSettings  # here, as all below: few checks need them
    from ..offline.bag import TUNING, parse_tuning
    from ..payload.gates import too_slow
    from ..scale.scale_file import ScaleSettings
    tuning = parse_tuning(words, {**TUNING, 'graph': MachineGraphSettings, 'scale': ScaleSettings})
    if machine.description.payload is None or not machine.weighing:
        return
    for room in ('payload', 'graph'):
        yield from filter(None, [too_slow(machine, f'{room}.min_speed', tuning[room].min_speed)])
        margin = tuning[room].stroke_margin
        short = [name for name, (low, high) in zip(machine.cylinders, machine.stroke) if 2.0 * margin >= high - low]
        if short:
            yield (f'{room}.stroke_margin: {margin:g} m at each end leaves nothing of the stroke of {", ".join(short)} '
                   f'({machine.description.file}): it never weighs')
    largest, least = machine.payload_data.limits[1], tuning['scale'].least_load
    if least >= largest:
        yield (f'scale.least_load: {least:g} kg is not below {largest:g} kg ({machine.description.file}: '
               'payload.limits): no load counts')


def try_filter(model: Model, words: Sequence[str]) -> None:
    """Raises SettingError where no filter of a mechanism works with these settings."""
    from ..offline.filtered_motion import linkage_settings  # here: few checks need filters
    from ..streams.linkage import LinkageStage
    LinkageStage(model, linkage_settings(words), backend='vm')


def machine_section(machine: Machine) -> Section:
    """Independent coordinates with their ranges, and what moves them."""
    rows = []
    for k, (name, (low, high)) in enumerate(zip(machine.coordinates, machine.range)):
        unit = unit_of(machine.description, name)
        what = 'cylinder' if machine.cylinders or not machine.description.drives else 'drive'
        moved = f'moved by {what}s' if k in machine.actuated else f'moved by no {what}'
        rows.append(TableRow(name, f'{show(low, unit, 4)} to {show(high, unit, 4)}', moved))
    return Section('coordinates of the state', tuple(rows))


def channel_section(machine: Machine) -> Section:
    """Channels of the sensors, as bags and topics have them, and the commands that the observer needs."""
    return Section('channels and commands', (
        *(TableRow(channel.name, f'sensor {channel.sensor.name}', _noise(machine, channel))
          for channel in machine.all_channels),
        *(TableRow(name, 'command, V') for name in machine.commands),
        *(TableRow(f'command/{name}', 'not needed', 'kind unknown: its flows are estimated')
          for name in machine.unknown_valves)))


def source_sections(machine: Machine) -> list[Section]:
    """Where the channels come from, where the file says so; raises DescriptionError for a section that cannot be
    used."""
    section = section_of(machine)
    found = [] if section is None else for_machine(section, machine).sources
    rows = [TableRow(source.channel, f'{path_text(source.path)} of {source.topic}', f'stamp: {source.stamp}')
            for source in found]
    return [Section('sources', tuple(rows))] if rows else []


def reach_section(machine: Machine, reach: Iterable[Reach]) -> Section:
    """What each cylinder moves over its stroke."""
    strokes = dict(zip(machine.cylinders, machine.stroke))
    return Section('reach, one cylinder at a time', tuple(
        TableRow(item.cylinder, f'{show(strokes[item.cylinder][0], "m")} to {show(strokes[item.cylinder][1], "m")}',
                 ', '.join(_moved(machine, item.moved)) or 'moves no coordinate of a joint') for item in reach))


def bore_warnings(machine: Machine) -> Iterable[str]:
    """Bores that no builder of cylinders makes for the stroke and the rod: another unit."""
    for name, cylinder in machine.description.cylinders.items():
        bore, stroke, rod = cylinder.bore.value, cylinder.stroke.value, cylinder.rod.value
        if bore > stroke or rod < THIN * bore:
            yield (f'cylinders.{name}.bore: {show(bore, "m")}, with a stroke of {show(stroke, "m")} and a rod of '
                   f'{show(rod, "m")}, expected less than the stroke, and a rod of {THIN:g} of the bore or more: are '
                   'the units right?')


def form_warnings(machine: Machine) -> Iterable[str]:
    """Forces beside a piston that drive it, or act about a place where it never is; delays that may be none."""
    for name, cylinder in machine.description.cylinders.items():
        beside, friction, key = cylinder.parallel, cylinder.friction, f'cylinders.{name}.parallel'
        if beside is None:
            continue
        viscous = friction.viscous.value * friction.scale.value
        if beside.damping.value < -viscous:
            yield (f'{key}.damping: {show(beside.damping.value, "N*s/m")}, expected no less than '
                   f'{show(-viscous, "N*s/m")}, by which friction.viscous brakes: together they drive the piston')
        if not 0.0 <= beside.about.value <= cylinder.stroke.value:
            yield (f'{key}.about: {show(beside.about.value, "m")}, expected a place of the stroke, 0 m to '
                   f'{show(cylinder.stroke.value, "m")}')
    for name, sensor in machine.description.sensors.items():
        late = sensor.delay
        if late is not None and late.value > 0.0 and (late.stddev or 0.0) > DOUBTED * late.value:
            yield (f'sensors.{name}.delay: {show(late, "s")}, expected a deviation of {DOUBTED:g} times the delay or '
                   'less: are the units right?')


def reach_warnings(machine: Machine, reach: Iterable[Reach]) -> Iterable[str]:
    """Joints that the cylinders move beyond their limits, or there and back; raises DescriptionError for one that is
    beyond over half of its way: the loop is closed on its other branch, or zero or sense of the joint are others."""
    for item in misfits(machine, reach):
        unit = unit_of(machine.description, item.joint)
        way = f'{show(float(item.way[0]), unit)} to {show(float(item.way[-1]), unit)}'
        if item.back > BEYOND:
            far = max(item.way, key=lambda value: abs(value - item.way[0]) + abs(value - item.way[-1]))
            way += f' by {show(float(far), unit)}'
        limits = f'within {show(item.limits[0], unit)} to {show(item.limits[1], unit)}, the limits of the joint'
        advice = (f'from the closed to the extended cylinder {item.cylinder}, {limits}: the loop is closed on its '
                  'other branch (a `start` of a joint of the loop chooses it), or zero, sense or limits of the joint, '
                  'or the stroke, are others')
        if item.inside < 0.5:
            raise DescriptionError(machine.description.file, f'joints.{item.joint}', way, advice)
        yield f'joints.{item.joint}: {way}, expected a way ' + advice


def payload_warnings(machine: Machine) -> Iterable[str]:
    """Of several payloads those that will hardly be weighed: their intervals are wider than their limits."""
    if why_unweighed(machine) or not machine.description.payloads:
        return
    for name, kg in payloads_accuracy(machine).items():
        low, high = machine.description.payloads[name].limits
        if not 2.0 * kg <= high - low:
            found = f'only to +- {kg:.3g} kg' if np.isfinite(kg) else 'not at all'
            yield (f'payloads.{name}: in a usual pose the cylinders distinguish its mass {found}, expected an interval '
                   f'within its limits, {low:g} to {high:g} kg: it is NOT_OBSERVABLE there. Another point, fewer '
                   'payloads, or pressures of more cylinders distinguish it')


def weighing_section(machine: Machine) -> Section:
    """Which equations of the force balance weigh a load, and to how many kg; what the others lack."""
    unweighed = why_unweighed(machine)
    if unweighed:
        return Section('weighing', (TableRow('nothing weighs', unweighed),))
    if machine.description.payloads:
        return Section('weighing, each payload with the others unknown', tuple(
            TableRow(name, f'+- {kg:.3g} kg' if np.isfinite(kg) else 'not distinguished',
                     '95 %, in a usual pose, with observer.weighing=apart')
            for name, kg in payloads_accuracy(machine).items()))
    found = mass_accuracy(machine)
    rows = [TableRow(name, f'+- {kg:.3g} kg',
                     '95 %, in a usual pose, by the errors that the file states or this package '
                     'assumes') for name, kg in found.each.items()]
    rows += [TableRow('all together', f'+- {found.all:.3g} kg')] * (len(rows) > 1)
    if drifting(description := machine.description):
        new = mass_accuracy(Machine(as_calibrated(description))).all
        rows.append(TableRow('without the age of the zeros', f'+- {new:.3g} kg',
                             f'as calibrated; the above: today, {age_text(description)}'))
    rows += [TableRow(name, 'does not weigh', f'not measured: {", ".join(pushes)}')
             for name, pushes in missing_pushes(machine).items()]
    return Section('weighing, by the equation of each actuator', tuple(rows))


def _noise(machine: Machine, channel: Channel) -> str:
    sensor = channel.sensor
    return f'1 sigma {show(sensor.noise, measured_unit(machine.description, sensor.name), 3)}'


def _moved(machine: Machine, moved: dict[str, tuple[float, float]]) -> Iterable[str]:
    for name, (low, high) in moved.items():
        unit = unit_of(machine.description, name)
        yield f'{name} {show(low, unit, 4)} to {show(high, unit, 4)}'


def equation_section(model: Model) -> Section:
    """Counts of coordinates and constraints, and what was chosen."""
    count, g = len(model.names), model.degrees_of_freedom
    kind = model.coordinate_type.replace('_', '-') + ' coordinates'
    rows = [TableRow('coordinates', str(count), kind),
            TableRow('constraints', str(len(model.rows)),
                     f'{len(model.moving)} that count' if model.redundant else 'none redundant'),
            TableRow('degrees of freedom', str(g), 'moved by drivers alone' if g == 0 and model.system.driven else ''),
            TableRow('independent coordinates', ', '.join(model.independent) or 'none',
                     f'condition {_condition(model):.3g} at the start (1 is best)' if g else '')]
    rows += [TableRow('independent velocities', str(count - len(model.moving)))] if model.system.rate_rows else []
    rows += [TableRow(section, ', '.join(names), 'simulated in all coordinates, no filters')
             for section, names in model.unreduced.items()]
    rows += [TableRow('inputs', ', '.join(model.inputs))] if model.inputs else []
    rows += [TableRow('redundant constraint', item.name, f'implied by {", ".join(item.depends_on)}' if item.depends_on
                      else 'always true') for item in _redundant(model)]
    return Section('equations of motion', tuple(rows))


def start_section(model: Model) -> Section:
    """The assembled start: named coordinates first."""
    start, d = model.start, model.description
    named = [name for name in model.names if name in d.coordinates]
    others = [name for name in model.names if name not in d.coordinates]
    listed = (named + others)[:_LONGEST]
    rows = [_value(model, name, start.q, start.qd) for name in listed]
    if len(listed) < len(model.names):
        rows.append(TableRow('...', f'{len(model.names) - len(listed)} more'))
    energy = model.energy(start.q, start.qd)
    rows.append(TableRow('energy', f'{energy.total:.7g} J', f'kinetic {energy.kinetic:.7g} J, potential '
                                                       f'{energy.potential:.7g} J'))
    return Section('assembled start', tuple(rows))


def _value(model: Model, name: str, q: np.ndarray, qd: np.ndarray) -> TableRow:
    i, unit = model.names.index(name), unit_of(model.description, name)
    moving = abs(qd[i]) > 1e-12
    return TableRow(name, shown(q[i], unit), f'moving at {qd[i]:.7g} {unit or 1}/s' if moving else '')


def model_warnings(model: Model) -> Iterable[str]:
    """What is odd about a model that can be built."""
    if not model.degrees_of_freedom and not model.system.driven:
        yield 'nothing can move: no degree of freedom is left, and there is no driver'
    for item in _redundant(model) if not model.description.is_machine else ():     # a machine's table has them
        yield (f'constraint {item}: the motion is determined, the reactions in the joints concerned are not')
    yield from _dead_point(model)
    yield from _guess(model)
    yield from _beyond(model)


def _dead_point(model: Model) -> Iterable[str]:
    """Independent coordinates that hardly determine the motion, and those that would do better."""
    if not model.degrees_of_freedom:
        return
    J = model.residual(model.start.q)[1][model.active]
    worst = _condition(model)
    if worst < BADLY:
        return
    best = choose_independent(J)
    better = [choice for choice in alternatives(J, model.z) if condition(J, choice) < worst / 2] or [best]
    texts = [f'{", ".join(model.names[i] for i in choice)} (condition {condition(J, choice):.3g})'
             for choice in better]
    yield (f'the start is near a dead point: the motion is hardly determined by {", ".join(model.independent)} '
           f'(condition {worst:.3g}); better here: {"; or ".join(texts)}')


def _guess(model: Model) -> Iterable[str]:
    """Coordinates that the assembly moved far, though none that the file gives asked for it."""
    moved = np.abs(model.start.q - model.system.start)
    given = model.description.initial.position
    far = [(size, name) for size, name in zip(moved, model.names) if size > FAR]
    if far and not any(name in given for _, name in far):
        size, name = max(far)
        yield (f'the guess of the start was moved to close the loops: {len(far)} of {len(model.names)} coordinates by '
               f'more than {FAR:g}, most {name} by {shown(size, unit_of(model.description, name))}; look at the '
               'drawing (mbse check --draw) whether it is the branch you mean')


def _beyond(model: Model) -> Iterable[str]:
    """Joints that start outside their limits."""
    start = dict(zip(model.names, model.start.q))
    for name, joint in model.description.joints.items():
        if joint.limits is not None and name in start and not (
                joint.limits[0] - FAR <= start[name] <= joint.limits[1] + FAR):
            unit = 'rad' if joint.type == 'revolute' else 'm'
            yield (f'joints.{name}: starts at {show(float(start[name]), unit)}, outside its limits, '
                   f'{show(joint.limits[0], unit)} to {show(joint.limits[1], unit)}')


def _condition(model: Model) -> float:
    return condition(model.residual(model.start.q)[1][model.active], model.z)


def _redundant(model: Model) -> list[RedundantRow]:
    if not model.redundant:
        return []
    samples = np.array([model.residual(q)[1] for q in neighbours(model.residual, model.start.q)])
    return redundant_rows(samples, model.rows)
