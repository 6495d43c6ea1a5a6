# SPDX-License-Identifier: Apache-2.0
"""Bags to a calibrated machine: its numbers before and after, what the bags do not tell, the file with all of it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from ...calibration.balance import CalibrationBalance
from ...calibration.fit import CalibrationFit, CalibrationLog, CalibrationProblem, KnownLoad, fit, left_out, weighed
from ...calibration.identifiability import CORRELATED, UNKNOWN, advice, cannot_tell
from ...calibration.windows import WINDOW, windows_of
from ...errors import DescriptionError, SettingError
from ...machine import Machine
from ...sources.map import SourceMap
from .calibrated_file import Parameter, calibrated_text, check_written, prior_machine
from .calibration_bags import By, Recording, parse_payloads, recorded

EXPLAINED = 0.7     # of the missing forces: a fit that leaves more has explained less than half of their squares
FAR = 5.0           # standard deviations of what was known before, by which no number and no load is off
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
class Calibration:
    """What bags say of a machine.

    ``parameters`` in the order of ``machine.parameters``, ``covariance`` (k, k) of them, SI; RMS of the force that is
    missing, N, of which the noise of the samples makes ``noise_rms``; ``cannot_tell``: what the bags do not tell, in
    words; ``text``: the calibrated file, '' where it cannot be written, with the ``trouble``; ``problem``: residuals of
    all bags, at ``fit.u``; ``start``: errors of the loads with the numbers as before.
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

    @property
    def unexplained(self) -> str:
        """Why the numbers should not be used: they explain less than half of the forces that were missing, and more
        than noise is; or they are where they cannot be by what was known before. '' where neither is so."""
        before, after = self.residual_rms_before, self.residual_rms_after
        if not after > max(EXPLAINED * before, NOISE * self.noise_rms):
            return self._far
        return (f'{after:.4g} N of {before:.4g} N are still missing at the pistons, and the noise of the samples makes '
                f'{self.noise_rms:.2g} N: these numbers do not explain the bags; another number or the load is wrong, '
                'or the machine has something that its file does not have')

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
                '--free KEY=DEVIATION, --payload BAG=KG+-DEVIATION')

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

    def cross_validation(self) -> tuple[LeftOut, ...]:
        """Each bag by the numbers that the others give; raises SettingError for fewer than two bags."""
        if len(self.fit.logs) < 2:
            raise SettingError('--cross-validate', len(self.fit.logs), 'two bags or more')
        found = []
        for place, log in enumerate(self.fit.logs):
            own, u = left_out(self.problem.balance, self.fit, place)
            mass = weighed(own, u)[0] if self.machine.description.payload is not None else math.nan
            true = math.nan if log.load.name.startswith(UNKNOWN) else log.load.mass
            found.append(LeftOut(log.name, rms(own, np.zeros(own.size)), rms(own, u), mass, true))
        return tuple(found)


def calibrate_bags(machine: str | Path, bags: Sequence[str | Path], payloads: Mapping[str, str] | Sequence[str] = (),
                   free: Sequence[str] = (), namespace: str | None = None, sources: SourceMap | None = None,
                   by: By | None = None) -> Calibration:
    """Calibrate the machine of a file by bags; ``payloads`` as ``parse_payloads`` has them, ``free`` as ``freed``;
    ``by``: see ``recorded``.

    Raises SettingError (options), BagError (bags without information, or of another machine), DescriptionError.
    """
    text, prior = prior_machine(machine, free)
    if not bags:
        raise SettingError('bags', [], 'one bag or more')
    recordings = recorded(bags, prior, namespace, sources, by)
    return calibrated(prior, text, recordings, parse_payloads(payloads, recordings, prior))


def calibrated(machine: Machine, text: str, recordings: Sequence[Recording], loads: Mapping[str, KnownLoad],
               balance: CalibrationBalance | None = None) -> Calibration:
    """By recordings; ``text``: the file of the machine before; ``balance`` may be kept for the next call."""
    date, names = max(item.date for item in recordings), [item.name for item in recordings]
    check_written(machine, text, date, names)
    balance, logs = balance or CalibrationBalance(machine), []
    for item in recordings:
        load = loads.get(item.name, KnownLoad())
        logs.append(CalibrationLog(item.name, balance.moments(windows_of(machine, item.series), WINDOW / 2, load.mass),
                                   load))
    found, problem = fit(balance, logs), CalibrationProblem(balance, logs)
    problem.noise = found.noise
    p, F, size = machine.parameters, problem.factor, len(problem.prior)
    covariance = F @ found.covariance[:size, :size] @ F.T
    after = np.sqrt(np.diag(covariance))
    correlation, values = covariance / np.outer(after, after), problem.numbers(found.u)
    parameters = tuple(Parameter(key, float(p.mean[k]), float(p.stddev[k]), float(values[k]), float(after[k]),
                                 _tied(p.names, correlation, k)) for k, key in enumerate(p.names))
    start = np.zeros(problem.size)
    start[size:] = _loads_alone(problem, size)
    bags = tuple(Residuals(log.name, int(log.moments.counts.sum()), rms(one, _own(problem, one, start)),
                           rms(one, _own(problem, one,
                                         found.u))) for log in logs for one in [CalibrationProblem(balance, [log])])
    new, trouble = '', ''
    try:
        new = calibrated_text(machine, text, parameters, correlation, date, names)
    except DescriptionError as error:       # the numbers are not lost with the file
        trouble = str(error)
    return Calibration(machine, parameters, covariance, rms(problem, start), rms(problem, found.u), bags,
                       tuple(cannot_tell(balance, found, p.stddev, after, correlation)), found, problem, start, new,
                       tuple(line for item in recordings for line in item.warnings), noise_rms(problem), trouble)


def _tied(names: Sequence[str], correlation: np.ndarray, k: int) -> tuple[str, ...]:
    """Numbers whose errors go with that of number k, the closest first."""
    return tuple(names[j] for j in np.argsort(-np.abs(correlation[k]))
                 if j != k and abs(correlation[k, j]) > CORRELATED)


def _loads_alone(problem: CalibrationProblem, size: int) -> np.ndarray:
    """Errors of the loads (l,) that fit best with the numbers as in the file."""
    r, J = problem.residuals(np.zeros(problem.size))
    J = J[:, size:]
    return -np.linalg.solve(np.eye(J.shape[1]) + J.T @ J, J.T @ r)


def _own(problem: CalibrationProblem, one: CalibrationProblem, u: np.ndarray) -> np.ndarray:
    """Of all numbers and loads those of a problem of one bag."""
    size = len(problem.prior)
    return np.concatenate([u[:size], [u[size + problem.loads.index(name)] for name in one.loads]])


def rms(problem: CalibrationProblem, u: np.ndarray) -> float:
    """Root mean square of the force that is missing, N at the pistons; NaN where nothing counts."""
    together = np.concatenate([forces(problem, log, u)[log.moments.counts] for log in problem.logs])
    return float(np.sqrt(np.mean(together ** 2))) if len(together) else math.nan


def noise_rms(problem: CalibrationProblem) -> float:
    """What of it the noise of the samples makes, N."""
    together = np.concatenate([(np.sqrt(log.moments.variance) / np.maximum(log.moments.levers, 1e-12))[
        log.moments.counts] for log in problem.logs])
    return float(np.sqrt(np.mean(together ** 2))) if len(together) else math.nan


def forces(problem: CalibrationProblem, log: CalibrationLog, u: np.ndarray) -> np.ndarray:
    """What is missing (n, a) in a log, N at the pistons."""
    return problem.missing(log, u)[0] / np.maximum(log.moments.levers, 1e-12)
