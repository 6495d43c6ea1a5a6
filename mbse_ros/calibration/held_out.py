# SPDX-License-Identifier: Apache-2.0
"""Cross-validation of a calibration: each block of poses by the numbers that all other motion gives.

A block is left out by one Gauss-Newton step from the fit of all: where the fit is, the derivatives are exact, and the
balance of forces is nearly linear in the numbers over their deviations. ``CalibrationProblem.solve`` without the block
gives the same to within a small share of a deviation, at some hundred times the cost.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ..compiled.of_scipy import exceeded
from .balance import Moments
from .fit import HUBER, LEAST, CalibrationFit, CalibrationProblem
from .friction import NORMAL

BLOCKS = 5          # of a log, as far as each has LEAST windows


@dataclass(frozen=True)
class HeldOut:
    """A block of ``log`` from ``begin`` to ``end``, s of its stamps, by all other motion: of ``count`` forces the RMS
    that is ``missing`` and the one that is ``stated``, N at the pistons, the latter by noise and covariance of the
    numbers; share ``inside`` of their 95 % intervals; ``mass_error``, kg, by which the mass that the block asks for is
    more than its load, and its ``mass_stddev``; NaN of a machine without a payload."""

    log: str
    begin: float
    end: float
    count: int
    missing: float
    stated: float
    inside: float
    mass_error: float
    mass_stddev: float


def held_out(problem: CalibrationProblem, fit: CalibrationFit) -> tuple[HeldOut, ...]:
    """Every block of all logs; () where all motion is one block."""
    blocks = [(log, rows) for log in problem.logs for rows in _blocks(log.moments)]
    if len(blocks) < 2:
        return ()
    whole, found = np.eye(problem.size) + fit.information, []
    weighs = problem.balance.machine.description.payload is not None
    for log, rows in blocks:
        part = log.moments.part(rows)
        own = part.counts
        sigma = (np.sqrt(part.variance) * problem.noise)[own]
        g, J = (item[rows][own] for item in problem.missing(log, fit.u))
        _, _, by_mass = problem.balance.terms(part, problem.numbers(fit.u),
                                              np.full(len(part.X), problem.mass(log, fit.u)))
        r, A, s = g / sigma, J / sigma[:, None], by_mass[own] / sigma
        weight = np.minimum(1.0, HUBER / np.maximum(np.abs(r), 1e-12))
        P = np.linalg.inv(whole - (A * weight[:, None]).T @ A)
        left = r + A @ (P @ (A.T @ (weight * r)))
        spread = np.sqrt(1.0 + np.einsum('ri,ij,rj->r', A, P, A))
        at_piston = sigma / np.maximum(part.levers[own], 1e-12)
        error, stddev = _mass(left, A, s, P) if weighs else (np.nan, np.nan)
        found.append(HeldOut(log.name, float(part.t[0]), float(part.t[-1]), len(r), _rms(left * at_piston),
                             _rms(spread * at_piston), float(np.mean(np.abs(left) <= NORMAL * spread)), error, stddev))
    return tuple(found)


def _mass(left: np.ndarray, A: np.ndarray, s: np.ndarray, P: np.ndarray) -> tuple[float, float]:
    """By how much, kg, the mass that residuals (r,) ask for is more than the load, and its deviation; A (r, k), s (r,):
    derivatives by errors of covariance P, and by the mass."""
    total = float(s @ s)
    if not total > 0.0:
        return float('nan'), float('nan')
    row = s @ A / total
    return -float(s @ left) / total, float(np.sqrt(1.0 / total + row @ P @ row))


def _rms(values: np.ndarray) -> float:
    return float(np.sqrt(np.mean(values ** 2)))


def _blocks(moments: Moments) -> Iterator[np.ndarray]:
    """Rows of instants that count, one block of time after the other."""
    rows = np.flatnonzero(moments.counts.any(axis=1))
    if len(rows):
        yield from np.array_split(rows, max(1, min(BLOCKS, len(rows) // LEAST)))


def widening(blocks: Sequence[HeldOut]) -> float:
    """By what errors of masses that were left out are larger than their deviations, 1 where they need not be: the root
    mean square of their ratio, where it is above the 95 % point of chi-square."""
    z = np.array([item.mass_error / item.mass_stddev for item in blocks if item.mass_stddev > 0.0])
    if not len(z):
        return 1.0
    size = float(np.sqrt(np.mean(z ** 2)))
    return size if size > float(np.sqrt(exceeded(len(z), 0.05) / len(z))) else 1.0
