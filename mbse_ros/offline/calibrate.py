# SPDX-License-Identifier: Apache-2.0
"""Bags to a calibrated machine: numbers, deviations, what they have in common, and the file with all of it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from functools import cached_property
from pathlib import Path

import numpy as np

from ..bags.bag import open_bag
from ..bags.topics import TopicMap
from ..calibration.balance import Balance
from ..calibration.fit import Fit, Load, Log, Problem, fit, left_out, weighed
from ..calibration.free import freed
from ..calibration.tells import LEARNT, TIED, advice, cannot_tell
from ..calibration.windows import WINDOW, Samples, windows_of
from ..description.edit import Number, in_file, with_numbers, with_section
from ..description.load import known_machines, parse_mechanism
from ..errors import BagError, DescriptionError, SettingError
from ..machine import Machine
from ..resources import regular
from ..sources.map import SourceMap
from ..sources.reader import sample_reader
from .bag import frame_of
from .channel_series import series_of

UNKNOWN = 'unknown'
KNOWN_TO = 0.005        # of a load, as standard deviation, where nothing else is said
FORMAT = 'BAG=KG, BAG=KG+-DEVIATION or BAG=unknown'
UNTOUCHED = 1e-6        # share of a deviation that has changed, below which the number stays as the file has it
SAME = 1e-6             # of a number, read back from the text
MOST = 1000             # windows before bags are too short to say anything is no question


@dataclass(frozen=True)
class Recording:
    """One bag: ``name`` (that of its folder), samples by channel, ``date``, ``seconds``."""

    name: str
    series: Mapping[str, Samples]
    date: str
    seconds: float


@dataclass(frozen=True)
class Parameter:
    """One number of the file, SI: before and after, with standard deviations, and the numbers with which its error is
    correlated by more than 0.9 in size."""

    key: str
    before: float
    stddev_before: float
    after: float
    stddev_after: float
    correlated_with: tuple[str, ...] = ()

    @property
    def learnt(self) -> bool:
        """Whether the bags say something of it."""
        return self.stddev_after <= LEARNT * self.stddev_before


@dataclass(frozen=True)
class Residuals:
    """Of one bag: windows that count, RMS of the force that is missing at the pistons before and after, N."""

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
class Calibration:
    """What bags say of a machine. ``text``: the calibrated file; ``problem``: residuals of all bags, at ``fit.u``."""

    machine: Machine
    parameters: tuple[Parameter, ...]
    correlation: np.ndarray
    residual_rms_before: float
    residual_rms_after: float
    bags: tuple[Residuals, ...]
    cannot_tell: tuple[str, ...]
    fit: Fit
    problem: Problem
    text: str

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

    def cross_validation(self) -> tuple[LeftOut, ...]:
        """Each bag by the numbers that the others give; raises SettingError for fewer than two bags."""
        if len(self.fit.logs) < 2:
            raise SettingError('--cross-validate', len(self.fit.logs), 'two bags or more')
        found = []
        for place, log in enumerate(self.fit.logs):
            own, u = left_out(self.problem.balance, self.fit, place)
            stated = log.load.stddev == 0.0 or not log.load.name.startswith(UNKNOWN)
            mass = weighed(own, u)[0] if self.machine.description.payload is not None else math.nan
            found.append(LeftOut(log.name, rms(own, np.zeros(own.size)), rms(own, u), mass,
                                 log.load.mass if stated else math.nan))
        return tuple(found)


def calibrate_bags(machine: str | Path, bags: Sequence[str | Path], payloads: Mapping[str, str] | Sequence[str] = (),
                   free: Sequence[str] = (), namespace: str | None = None, sources: SourceMap | None = None
                   ) -> Calibration:
    """Calibrate the machine of a file by bags; ``payloads``: words as ``parse_payloads`` has them.

    Raises SettingError (options), BagError (bags that say nothing, or of another machine), DescriptionError.
    """
    path = file_of(machine)
    text, prior = prior_machine(path, free)
    if not bags:
        raise SettingError('bags', [], 'one bag or more')
    recordings = recorded(bags, prior, namespace, sources)
    loads = parse_payloads(payloads, recordings, prior)
    return calibrated(prior, text, recordings, loads)


def file_of(machine: str | Path) -> Path:
    """The YAML file of a machine's name or path; raises DescriptionError."""
    path = Path(machine)
    if path.suffix in ('.yaml', '.yml'):
        return path
    known = known_machines()
    if str(machine) not in known:
        raise DescriptionError(str(machine), 'machine', str(machine), 'a path to a .yaml file or one of: '
                               + ', '.join(known))
    return known[str(machine)]


def prior_machine(path: Path, free: Sequence[str] = ()) -> tuple[str, Machine]:
    """Text of a file with the deviations that count before, and its machine."""
    try:
        text = regular(path).read_text(encoding='utf-8')
    except (OSError, UnicodeDecodeError, ValueError) as error:
        raise DescriptionError(str(path), '', str(error), 'a readable text file in UTF-8') from error
    text = freed(text, str(path), free) if free else text
    return text, Machine(parse_mechanism(text, str(path)))


def recorded(bags: Sequence[str | Path], machine: Machine, namespace: str | None = None,
             sources: SourceMap | None = None) -> list[Recording]:
    """Samples of all bags; raises BagError for one of another machine, and for two of one name."""
    found: list[Recording] = []
    for bag in bags:
        source, name = open_bag(bag), Path(bag).name or Path(bag).resolve().name
        if name in [item.name for item in found]:
            raise BagError(str(bag), f'another bag is named {name}, too: its load could not be told; rename one')
        reader = sample_reader(source, machine, namespace, sources)
        samples = list(reader)
        frame = frame_of(source, reader, TopicMap(namespace=namespace))
        if frame and frame in known_machines() and frame != machine.name:
            raise BagError(str(bag), f'a bag of {frame}, expected one of {machine.name}')
        if not samples:
            raise BagError(str(bag), 'no sample of the machine is in it')
        first = min(sample.stamp_ns for sample in samples)
        last = max(sample.stamp_ns for sample in samples)
        date = datetime.fromtimestamp(first * 1e-9, tz=timezone.utc).date().isoformat()
        found.append(Recording(name, series_of(samples), date, (last - first) * 1e-9))
    return found


def parse_payloads(words: Mapping[str, str] | Sequence[str], recordings: Sequence[Recording], machine: Machine
                   ) -> dict[str, Load]:
    """Loads by the names of bags from words ``BAG=KG``, ``BAG=KG+-DEVIATION``, ``BAG=unknown``; raises SettingError."""
    pairs = list(words.items()) if isinstance(words, Mapping) else [_pair(word) for word in words]
    names, found = [item.name for item in recordings], {}
    for bag, text in pairs:
        name = Path(bag).name
        if name not in names:
            raise SettingError('--payload', f'{bag}={text}', 'the name of one of the bags: ' + ', '.join(names))
        if name in found:
            raise SettingError('--payload', f'{bag}={text}', 'each bag once')
        found[name] = _load(name, str(text).strip(), machine)
    return found


def _pair(word: str) -> tuple[str, str]:
    bag, sign, text = word.rpartition('=')
    if not sign or not bag:
        raise SettingError('--payload', word, FORMAT)
    return bag, text


def _load(name: str, text: str, machine: Machine) -> Load:
    described = machine.description.payload
    if described is None:
        raise SettingError('--payload', text, f'no load: {machine.name} has no section `payload`')
    low, high = described.limits
    if text == UNKNOWN:
        return Load(f'{UNKNOWN} {name}', 0.5 * (low + high), high - low)
    mass, sign, deviation = text.removesuffix('kg').strip().partition('+-')
    try:
        kg = float(mass.strip().removesuffix('kg'))
        stddev = float(deviation) if sign else KNOWN_TO * kg
    except ValueError:
        raise SettingError('--payload', f'{name}={text}', FORMAT) from None
    if not 0.0 <= kg <= high or not 0.0 <= stddev <= high:
        raise SettingError('--payload', f'{name}={text}', f'a mass from 0 to {high:g} kg, and its standard deviation')
    return Load(f'{kg:g}+-{stddev:g} kg' if stddev else '', kg, stddev)


def calibrated(machine: Machine, text: str, recordings: Sequence[Recording], loads: Mapping[str, Load]) -> Calibration:
    """Of recordings; ``text``: the file of the machine before."""
    balance, logs = Balance(machine), []
    for item in recordings:
        load = loads.get(item.name, Load())
        windows = windows_of(machine, item.series)
        logs.append(Log(item.name, balance.moments(windows, WINDOW / 2, load.mass), load))
    found = fit(balance, logs)
    problem = Problem(balance, logs)
    problem.noise = found.noise
    p, F, size = machine.parameters, problem.factor, len(problem.prior)
    covariance = F @ found.covariance[:size, :size] @ F.T
    after = np.sqrt(np.diag(covariance))
    correlation = covariance / np.outer(after, after) if size else covariance
    values = problem.numbers(found.u)
    parameters = tuple(Parameter(
        key, float(p.mean[k]), float(p.stddev[k]), float(values[k]), float(after[k]),
        tuple(p.names[j] for j in np.argsort(-np.abs(correlation[k])) if j != k and abs(correlation[k, j]) > TIED))
        for k, key in enumerate(p.names))
    start = np.zeros(problem.size)
    start[size:] = _loads_alone(problem, size)
    bags = tuple(Residuals(log.name, int(log.moments.counts.sum()), rms(one, _own(problem, one, start, size)),
                           rms(one, _own(problem, one, found.u, size)))
                 for log in logs for one in [Problem(balance, [log])])
    new = calibrated_text(machine, text, parameters, correlation, recordings)
    return Calibration(machine, parameters, correlation, rms(problem, start), rms(problem, found.u), bags,
                       tuple(cannot_tell(balance, found, p.stddev, after, correlation)), found, problem, new)


def _loads_alone(problem: Problem, size: int) -> np.ndarray:
    """Errors of the loads (l,) that fit best with the numbers as in the file."""
    r, J = problem.residuals(np.zeros(problem.size))
    J = J[:, size:]
    return -np.linalg.solve(np.eye(J.shape[1]) + J.T @ J, J.T @ r)


def _own(problem: Problem, one: Problem, u: np.ndarray, size: int) -> np.ndarray:
    """Of all numbers and loads those of a problem of one bag."""
    return np.concatenate([u[:size], [u[size + problem.loads.index(name)] for name in one.loads]])


def rms(problem: Problem, u: np.ndarray) -> float:
    """Root mean square of the force that is missing, N at the pistons; NaN where nothing counts."""
    parts = [forces(problem, log, u)[log.moments.counts] for log in problem.logs]
    together = np.concatenate(parts) if parts else np.zeros(0)
    return float(np.sqrt(np.mean(together ** 2))) if len(together) else math.nan


def forces(problem: Problem, log: Log, u: np.ndarray) -> np.ndarray:
    """What is missing (n, a) in a log, N at the pistons."""
    return problem.missing(log, u)[0] / np.maximum(log.moments.levers, 1e-12)


def calibrated_text(machine: Machine, text: str, parameters: Sequence[Parameter], correlation: np.ndarray,
                    recordings: Sequence[Recording]) -> str:
    """The file with the new numbers; what the bags say nothing of stays. The payload's place is not the machine's.

    Raises DescriptionError where the text does not give them back.
    """
    changed = [k for k, item in enumerate(parameters) if not item.key.startswith('payload.')
               and item.stddev_after < (1 - UNTOUCHED) * item.stddev_before]
    if not changed:
        return text
    date = max(item.date for item in recordings)
    source = f'calibrated {date}'
    keys = {k: in_file(machine.description, parameters[k].key) for k in changed}
    numbers = {keys[k]: Number(parameters[k].after, parameters[k].stddev_after, source) for k in changed}
    new = with_numbers(text, machine.description.file, numbers)
    if len(changed) > 1:
        rows = np.linalg.cholesky(correlation[np.ix_(changed, changed)])
        new = with_section(new, 'calibration', _section([keys[k] for k in changed], rows, date, recordings))
    _check(new, machine, {parameters[k].key: parameters[k] for k in changed})
    return new


def _section(keys: Sequence[str], rows: np.ndarray, date: str, recordings: Sequence[Recording]) -> str:
    lines = ['# By mbse calibrate: the error of a number is its stddev times the sum of its row times independent errors.',
             'calibration:', f'  date: "{date}"',
             '  bags: [' + ', '.join(f'"{item.name}"' for item in recordings) + ']', '  keys:']
    lines += [f'    - {key}' for key in keys] + ['  rows:']
    return '\n'.join(lines + [f'    - [{", ".join(f"{x:.9g}" for x in row[:k + 1])}]' for k, row in enumerate(rows)])


def _check(text: str, machine: Machine, wanted: Mapping[str, Parameter]) -> None:
    """The text must give the numbers back."""
    found = Machine(parse_mechanism(text, machine.description.file)).parameters
    for k, key in enumerate(found.names):
        item = wanted.get(key)
        if item is not None and not (math.isclose(found.mean[k], item.after, rel_tol=SAME, abs_tol=SAME * item.stddev_after)
                                     and math.isclose(found.stddev[k], item.stddev_after, rel_tol=SAME)):
            raise DescriptionError(machine.description.file, key, found.mean[k], f'{item.after}, written into this file')
    lost = set(wanted) - set(found.names)
    if lost:
        raise DescriptionError(machine.description.file, sorted(lost)[0], None, 'a number in the calibrated file')
