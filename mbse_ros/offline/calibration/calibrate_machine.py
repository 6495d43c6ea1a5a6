# SPDX-License-Identifier: Apache-2.0
"""Bags to a calibrated machine: its numbers before and after, what the bags do not tell, the file with all of it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from ...calibration.balance import WINDOW, CalibrationBalance, windows_of
from ...calibration.fit import CalibrationLog, CalibrationProblem, KnownLoad, fit
from ...calibration.identifiability import CORRELATED, cannot_tell
from ...errors import DescriptionError, SettingError
from ...machine import Machine
from ...sources.map import SourceMap
from .calibrated_file import Parameter, calibrated_text, check_written, prior_machine
from .calibration_bags import By, Recording, parse_payloads, recorded
from .calibration_result import Calibration, Residuals, rms


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
    unnamed = tuple(name for name in names if name not in loads) if machine.description.payload else ()
    new, trouble = '', ''
    try:
        new = calibrated_text(machine, text, parameters, correlation, date, names)
    except DescriptionError as error:       # the numbers are not lost with the file
        trouble = str(error)
    return Calibration(machine, parameters, covariance, rms(problem, start), rms(problem, found.u), bags,
                       tuple(cannot_tell(balance, found, p.stddev, after, correlation)), found, problem, start, new,
                       tuple(line for item in recordings for line in item.warnings), noise_rms(problem), trouble,
                       unnamed=unnamed)


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


def noise_rms(problem: CalibrationProblem) -> float:
    """What of it the noise of the samples makes, N."""
    together = np.concatenate([(np.sqrt(log.moments.variance) / np.maximum(log.moments.levers, 1e-12))[
        log.moments.counts] for log in problem.logs])
    return float(np.sqrt(np.mean(together ** 2))) if len(together) else math.nan
