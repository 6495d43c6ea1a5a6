# SPDX-License-Identifier: Apache-2.0
"""What a calibration found: its numbers, tables, JSON, plots of what the forces lack, the file."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from ...calibration.balance_error import FoundError
from ...calibration.fit import CalibrationFit, CalibrationProblem, KnownLoad, left_out, rms, weighed
from ...calibration.free import FAR, unit_of
from ...calibration.friction import FrictionFit, friction_fits
from ...calibration.grade import LIMITS, Grade, graded
from ...calibration.held_out import HeldOut, held_out
from ...calibration.identifiability import UNKNOWN, advice, taken_for_loads
from ...calibration.residual_form import SHAPES, MissingNumber, Residue
from ...description.age import as_calibrated
from ...description.edit import for_folder
from ...description.load import parse_mechanism
from ...errors import SettingError
from ...filters.observability.machine import mass_accuracy
from ...filters.observability.mass_map import MassMap, mass_map
from ...machine import Machine
from ...report.data import Table
from ...report.result import Answer
from ...report.text import number
from ...resources import write_whole
from .calibrated_file import Parameter
from .calibration_words import blocks_table, force_words, grade_line, map_line, map_values

EXPLAINED = 0.7     # of the missing forces: a fit that leaves more has explained less than half of their squares
NOISE = 3.0         # times what the noise of the samples makes, up to which it need not


@dataclass(frozen=True)
class Residuals:
    """Of one bag: forces at windows that count, RMS of what is missing in them before and after, N at the pistons."""

    bag: str
    count: int
    before: float
    after: float


@dataclass(frozen=True)
class LeftOut:
    """A bag by the numbers that all others give: RMS before and after, N; the ``mass`` that it then asks for, kg, that
    which it has, or NaN."""

    bag: str
    before: float
    after: float
    mass: float
    true: float


@dataclass(frozen=True)
class Calibration(Answer):
    """What bags say of a machine.

    ``parameters`` in the order of ``machine.parameters``, ``covariance`` (k, k) of them, SI; RMS of the force that is
    missing, N, of which the noise of the samples makes ``noise_rms``; ``cannot_tell``: what the bags do not tell, in
    words; ``text``: the calibrated file, '' where it cannot be written, with the ``trouble``; ``problem``: residuals of
    all bags, at ``fit.u``; ``start``: errors of the loads with the numbers as before; ``crossed``: each bag by the
    numbers of the others, where it was asked for; ``unnamed``: bags of which no load was told, taken as empty;
    ``errors`` of the force balance that are left, of each equation that moved enough; ``limits`` of the grade, per cent
    of full scale; ``word``: by which a number is freed, of the command line its option.
    """

    machine: Machine
    parameters: tuple[Parameter, ...]
    covariance: np.ndarray
    residual_rms_before: float
    residual_rms_after: float
    bags: tuple[Residuals, ...]
    cannot_tell: tuple[str, ...]
    fit: CalibrationFit
    problem: CalibrationProblem
    start: np.ndarray
    text: str
    warnings: tuple[str, ...]
    noise_rms: float = math.nan
    trouble: str = ''
    crossed: tuple[LeftOut, ...] = ()
    unnamed: tuple[str, ...] = ()
    errors: tuple[FoundError, ...] = ()
    limits: tuple[float, float] = LIMITS
    word: str = 'free'

    @property
    def unexplained(self) -> str:
        """Why the numbers should not be used: they explain less than half of the forces that were missing, and more
        than noise is; a cylinder misses far more than noise and what no model knows, or what another number would take
        away; they are where they cannot be by what was known before; or they would take the error of a load. '' where
        nothing is so."""
        before, after = self.residual_rms_before, self.residual_rms_after
        little = after > max(EXPLAINED * before, NOISE * self.noise_rms)
        if not little and not self._above:
            return self._far or self._taken
        unit, place, _ = force_words(self.machine)
        return (f'{after:.4g} {unit} of {before:.4g} {unit} are still missing at the {place}, and the noise of the '
                f'samples makes {self.noise_rms:.3g} {unit}: these numbers do not explain the bags; another number or '
                'the load is wrong, or the machine has something that its file does not have'
                + ''.join(f'; {line}' for line in (*self._above, *self._forms, *self._empty)))

    @property
    def good(self) -> bool:
        """Whether the numbers explain the bags and can be written."""
        return not self.unexplained and not self.trouble

    @property
    def full_scale(self) -> float:
        """Range of the masses, kg; NaN without a payload."""
        if self.machine.description.payload is None:
            return math.nan
        low, high = self.machine.payload_data.limits
        return high - low

    @cached_property
    def held_out(self) -> tuple[HeldOut, ...]:
        """Each block of poses by the numbers of all other motion."""
        return held_out(self.problem, self.fit)

    @cached_property
    def mass_map(self) -> MassMap | None:
        """How well the machine of the new file weighs over its work area; None without a file or a payload, and of one
        with drives, whose work area has too many dimensions for a map."""
        return None if self._new is None or self._new.description.drives else mass_map(self._new)

    @cached_property
    def _new(self) -> Machine | None:
        """The machine of the new file, as it is on its day; None without one, or without a payload."""
        if self.machine.description.payload is None or not self.text:
            return None
        return Machine(as_calibrated(parse_mechanism(self.text, self.machine.description.file)))

    @cached_property
    def grade(self) -> Grade:
        """Of the calibration as a colour, and why."""
        trouble = 'its numbers do not explain the bags' if self.unexplained else self.trouble
        return graded(trouble, self.held_out, self._middle, self.full_scale, self.limits)

    @property
    def _middle(self) -> float:
        """Half-width, kg, of the 95 % interval of a mass in the middle of the work area; NaN without a file or a
        payload."""
        if self.mass_map is not None:
            return self.mass_map.middle
        return math.nan if self._new is None else mass_accuracy(self._new).all

    @cached_property
    def residue(self) -> Residue:
        """What is left of the missing forces, and its shape."""
        return Residue(self.problem, self.fit.u)

    @cached_property
    def missing_numbers(self) -> tuple[MissingNumber, ...]:
        """Numbers that are not free and would take most of what is left away, where it is more than noise."""
        return self.residue.candidates if any(item.rms > NOISE * item.noise for item in self.residue.forms) else ()

    @property
    def _above(self) -> list[str]:
        """Equations that miss far more than is expected, or more than noise where a number is missing."""
        unit, *_ = force_words(self.machine)
        return [f'{item.equation}: {number(item.rms)} {unit} are left, {number(item.expected)} {unit} are expected of '
                'noise and model'
                for item in self.residue.forms
                if item.rms > NOISE * (item.noise if self.missing_numbers else item.expected)]

    @property
    def _forms(self) -> list[str]:
        if not self.missing_numbers:
            return []
        free = ', '.join(item.free for item in self.missing_numbers)
        values = ', '.join(f'{item.value:.3g}' for item in self.missing_numbers)
        left, (unit, *_) = number(self.missing_numbers[-1].left), force_words(self.machine)
        return [f'free {free} would leave about {left} {unit}, at {values}']

    @property
    def _taken(self) -> str:
        """Which numbers would take a wrong load, '' for none."""
        if not self.taken_for_loads:
            return ''
        return (f'the loads of these bags and {", ".join(self.taken_for_loads)} cannot be distinguished: a load that '
                'is not as told would be found as such a number: add a bag of another load, best an empty one, or do '
                'not free it' + ''.join(f'; {line}' for line in self._empty))

    @cached_property
    def taken_for_loads(self) -> tuple[str, ...]:
        """Numbers that these bags do not distinguish from a load."""
        return taken_for_loads(self.problem, self.fit.u)

    @property
    def _asked(self) -> tuple[str, float]:
        """The loads that the bags ask for where nothing is known of them, in words, and RMS, N, that these leave."""
        if self.machine.description.payload is None:
            return '', math.inf
        low, high = self.machine.payload_data.limits
        logs = [replace(log, load=KnownLoad(log.name, log.load.mass, high - low)) for log in self.fit.logs]
        own = CalibrationProblem(self.problem.balance, logs)
        own.noise = self.problem.noise
        u = own.solve()
        return ', '.join(f'{log.name}={own.mass(log, u):.3g} kg' for log in own.logs), rms(own, u)

    @property
    def _verdict(self) -> str:
        """In one line, with what to do."""
        if self.good:
            return 'good'
        todo = 'check the loads that were told'
        if self.missing_numbers:
            found = ', '.join(f'{item.value:.3g} {unit_of(item.key)}'.removesuffix(' 1').replace('*', ' ')
                              for item in self.missing_numbers)
            left, before = self.missing_numbers[-1].left, self.residual_rms_after
            unit, *_ = force_words(self.machine)
            todo = (f'add {" ".join(f"{self.word} {item.free}" for item in self.missing_numbers)}: would be found as '
                    f'about {found}, and leave {left:,.4g} {unit} of {before:,.4g} {unit}')
            masses, other = self._asked
            if other < EXPLAINED ** 2 * before:
                todo = (f'check the loads that were told: {masses} would leave {other:,.4g} {unit} of {before:,.4g} '
                        f'{unit}; '
                        f'if they are right, {todo}')
        elif self.unexplained == self._taken:
            todo = (f'{", ".join(self.taken_for_loads)} cannot be distinguished from the load: add a bag of another '
                    'load, best an empty one')
        return f'not good: {todo if self.unexplained else self.trouble}'

    @property
    def _empty(self) -> list[str]:
        return [f'{name}: taken as empty; if it was not, give the payload {name}=KG' for name in self.unnamed]

    @property
    def _far(self) -> str:
        """Numbers and loads that are off by more than FAR of their deviations, '' for none."""
        moved = {item.key: abs(item.after - item.before) / item.stddev_before for item in self.parameters
                 if item.stddev_before > 0.0}
        moved |= {f'load {name}': abs(float(self.fit.u[len(self.parameters) + k]))
                  for k, name in enumerate(self.fit.loads) if not name.startswith(UNKNOWN)}
        worst = sorted((name for name, share in moved.items() if share > FAR), key=lambda name: -moved[name])
        if not worst:
            return ''
        listed = ', '.join(f'{name} by {moved[name]:.2g}' for name in worst[:4])
        return (f'the bags ask for numbers that are off by more than {FAR:g} of their deviations ({listed}): a load is '
                'not what was told, or another number is wrong; if they may be so far off, say so: '
                'free KEY=DEVIATION, payload BAG=KG+-DEVIATION' + ''.join(f'; {line}' for line in self._empty))

    @cached_property
    def advice(self) -> tuple[str, ...]:
        """The motions that would help most."""
        return tuple(advice(self.problem.balance, self.fit))

    @cached_property
    def singular_values(self) -> np.ndarray:
        """Of the derivatives of all residuals by the numbers, in their deviations before (k,): below 1 the file says
        more of a direction than the bags."""
        size = len(self.parameters)
        return np.sqrt(np.maximum(np.linalg.eigvalsh(self.fit.information[:size, :size])[::-1], 0.0))

    @property
    def loads(self) -> dict[str, tuple[float, float]]:
        """Mass and standard deviation, kg, of each load that is not exact."""
        size, found = len(self.parameters), {}
        for log in self.fit.logs:
            if log.load.stddev > 0.0:
                k = size + self.fit.loads.index(log.load.name)
                found[log.load.name] = (log.load.mass + log.load.stddev * float(self.fit.u[k]),
                                        log.load.stddev * math.sqrt(self.fit.covariance[k, k]))
        return found

    @cached_property
    def friction(self) -> dict[str, FrictionFit]:
        """Force of friction over speed by cylinder: from the bags, and the model with its 95 % band."""
        return friction_fits(self.problem, self.fit.u, self.covariance)

    def cross_validation(self) -> tuple[LeftOut, ...]:
        """Each bag by the numbers that the others give; raises SettingError for fewer than two bags."""
        if len(self.fit.logs) < 2:
            raise SettingError('bags', len(self.fit.logs), 'two bags or more')
        found = []
        for place, log in enumerate(self.fit.logs):
            own, u = left_out(self.problem.balance, self.fit, place)
            mass = weighed(own, u)[0] if self.machine.description.payload is not None else math.nan
            true = math.nan if log.load.name.startswith(UNKNOWN) else log.load.mass
            found.append(LeftOut(log.name, rms(own, np.zeros(own.size)), rms(own, u), mass, true))
        return tuple(found)

    def tables(self) -> list[Table]:
        """Numbers, residuals, each bag by the others."""
        unit, place, one = force_words(self.machine)
        rows = [[item.key, spread(item.before, item.stddev_before), spread(item.after, item.stddev_after),
                 '' if item.learnt else 'hardly determined']
                for item in self.parameters]
        tables = [Table(f'{self.machine.name}: numbers, 1 sigma, SI', ['number', 'before', 'after', ''], rows)]
        rows = [[item.bag, str(item.count), number(item.before), number(item.after)] for item in self.bags]
        rows.append(['all', str(sum(item.count for item in self.bags)), number(self.residual_rms_before),
                     number(self.residual_rms_after)])
        tables.append(Table(f'forces that are missing at the {place}, RMS, {unit}', [
            'bag', 'windows', 'before', 'after'], rows))
        rows = [[item.equation, str(item.count), number(item.rms), number(item.noise), number(item.expected),
                 *('' if math.isnan(share) else f'{share:.0%}' for share in item.shares.values())]
                for item in self.residue.forms]
        tables.append(Table(f'what is left by {one}, RMS, {unit}, and the share of it that each shape explains', [
            one, 'windows', 'left', 'noise', 'expected', *(name.replace('_', ' ') for name in SHAPES)], rows))
        rows = [[item.bag, number(item.before), number(item.after), number(item.mass),
                 number(item.true) if math.isfinite(item.true) else 'unknown'] for item in self.crossed]
        tables += [blocks_table(self.held_out, unit)] if self.held_out else []
        return [*tables, *([Table('each bag by the numbers of all others', [
            'bag', f'before, {unit}', f'after, {unit}', 'weighed, kg', 'load, kg'], rows)] if rows else [])]

    def summary(self) -> list[str]:
        """Loads, what the bags do not tell, what would help."""
        lines = [f'load {name}: {number(mass)} +- {number(stddev)} kg' for name, (mass, stddev) in self.loads.items()]
        lines += [f'verdict: {self._verdict}', f'grade: {grade_line(self.grade, len(self.held_out))}',
                  *([] if self.mass_map is None else [map_line(self.machine, self.mass_map)]), *self._empty]
        lines += [f'{item.line}; the new file says so' for item in self.errors if item.stddev > 0.0]
        if (tool := self.machine.description.attachment) is not None:
            lines.append(f'{tool.line}: numbers of {self.machine.payload_data.body} are those of both together, and '
                         'the new file has its old ones')
        for title, items in (('what these bags cannot determine', self.cannot_tell),
                             ('what would help most', self.advice)):
            lines += [f'{title}:', *(f'  - {item}' for item in items)] if items else []
        return lines

    def _values(self, full: bool) -> dict[str, Any]:
        """SI, forces at the pistons or joints."""
        result = {
            'machine': self.machine.name,
            'parameters': [{**asdict(item), 'correlated_with': list(item.correlated_with), 'learnt': item.learnt}
                           for item in self.parameters],
            'residual_rms_before': self.residual_rms_before, 'residual_rms_after': self.residual_rms_after,
            'noise_rms': self.noise_rms, 'good': self.good, 'unexplained': self.unexplained,
            'force_errors': [asdict(item) for item in self.errors],
            'trouble': self.trouble, 'left': [asdict(item) for item in self.residue.forms],
            'missing_numbers': [asdict(item) for item in self.missing_numbers],
            'taken_as_empty': list(self.unnamed), 'taken_for_loads': list(self.taken_for_loads),
            'cannot_tell': list(self.cannot_tell), 'advice': list(self.advice),
            'bags': [asdict(item) for item in self.bags], 'singular_values': self.singular_values,
            'loads': [{'name': name, 'mass': mass, 'stddev': stddev} for name, (mass, stddev) in self.loads.items()]}
        result['grade'] = {**asdict(self.grade), 'limits': list(self.limits)}
        result['held_out'] = [asdict(item) for item in self.held_out]
        result['mass_map'] = None if self.mass_map is None else map_values(self.machine, self.mass_map)
        if self.crossed:
            result['cross_validation'] = [asdict(item) for item in self.crossed]
        return result

    def report(self, folder: str | Path) -> Path:
        """Write ``accuracy.png`` (``mass_map``), ``held_out.png``, ``residuals_by_pose.png``, ``..._speed.png`` and
        ``..._pressure.png``, of drives ``..._effort.png``, one panel for each equation that counts, and
        ``friction.png``, one for each cylinder or drive of ``friction``, into a folder; gives it. Raises OSError."""
        from .calibration_pictures import Drawn, write_pictures  # here, as it takes its time to import
        return write_pictures(Drawn(self.problem, self.start, self.fit.u, self.friction, self.held_out, self.mass_map,
                                    self.full_scale, self.limits), Path(folder))

    def write(self, path: str | Path, force: bool = False) -> bool:
        """Write the calibrated file; False, and nothing, of one that is none (``trouble``), or without ``force`` whose
        numbers do not explain the bags. Raises OSError."""
        if self.trouble or self.unexplained and not force:
            return False
        write_whole(Path(path), for_folder(self.text, self.machine.description.file, Path(path)))
        return True


def spread(value: float, stddev: float) -> str:
    """Both to two digits of the standard deviation."""
    digits = 1 - math.floor(math.log10(stddev)) if stddev > 0.0 else 6
    if not 0 <= digits <= 8:
        return f'{value:.6g} +- {stddev:.2g}'
    return f'{round(value, digits) + 0.0:.{digits}f} +- {stddev:.{digits}f}'
