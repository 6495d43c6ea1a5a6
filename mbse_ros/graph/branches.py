# SPDX-License-Identifier: Apache-2.0
"""The branch C of a mechanism as an unknown (Blanco-Claraco et al., factor graphs, Fig. 1b).

Where loops close in several ways at the same independent coordinates, C says in which. It is discrete: for each of its
values the graph is solved, and the samples' evidence for it is that of the Gaussian about the solution (Laplace), so
that ``p(C | samples)`` is the evidence times the prior of C over the sum of all.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass

import numpy as np

from ..dynamics.configurations import assemble
from ..dynamics.model import Model, State
from ..errors import DivergenceError, MbseError, PositionProblemError, SettingError, SingularConfigurationError
from ..filters.observer import LinkageObserver, check_even
from .estimate import EstimatedMotion, EstimationNoises
from .smoother import LinkageSmoother, Smoothed

TRIALS = 60             # guesses from which loops are closed
SAME = 1e-6             # rad or m, whole turns left out: less is no other branch
REGULAR = 1e-6          # smallest singular value: below it two branches meet


@dataclass(frozen=True)
class Branch:
    """One way to close the loops: ``q`` (n,) at the start, its ``probability`` given the samples, ``log_evidence`` of
    these, and the ``motion`` (None: no motion on this branch explains them, which is then impossible)."""

    q: np.ndarray
    probability: float
    log_evidence: float
    motion: Smoothed | None


def assemblies(model: Model, trials: int = TRIALS) -> list[np.ndarray]:
    """Coordinates (n,) of all ways found to close the loops at the independent coordinates of the start, that of the
    start first, from ``trials`` random guesses.

    >>> len(assemblies(load_model('four_bar')))
    2
    """
    start, random = model.start.q, np.random.default_rng(0)
    spread = 2.0 * max(1.0, float(np.ptp(start)))
    found = [start]
    for _ in range(trials):
        guess = start + spread * random.uniform(-1.0, 1.0, len(start))
        guess[model.z] = start[model.z]
        try:
            q = assemble(model.residual, guess, model.z)
        except (MbseError, np.linalg.LinAlgError):
            continue
        J = np.delete(model.residual(q)[1][model.active], model.z, axis=1)
        apart = all(np.abs((q - other + np.pi) % (2 * np.pi) - np.pi).max() > SAME for other in found)     # turns alike
        if apart and model.right_side(q) and np.linalg.svd(J, compute_uv=False)[-1] > REGULAR:
            found.append(q)
    return found


def on_branch(model: Model, q: np.ndarray) -> Model:
    """The same functions with a start at coordinates q (n,), and the speeds of the independent coordinates."""
    other = copy(model)
    qd = model.partition().velocity(q, model.start.qd[model.z], model.start.t)
    other.__dict__['start'] = State(q.copy(), qd, model.start.t)
    other._partitions, other._origin, other._assembled = {}, model._origin or model, q.copy()
    return other


def branches(model: Model, sensors: Sequence[str], t: np.ndarray, samples: np.ndarray,
             inputs: np.ndarray | None = None, noises: EstimationNoises | None = None,
             prior: Sequence[float] | None = None) -> list[Branch]:
    """Each branch with its probability, the most probable first, by all samples (k, s) at even times t (k,), s.

    ``inputs`` (k, u); ``noises``: as of ``LinkageSmoother``; ``prior`` of the branches in the order of ``assemblies``,
    default equal. Probabilities like the prior mean that the samples do not distinguish the branches. Raises
    SettingError; DivergenceError where no branch explains the samples.

    >>> log = simulate('four_bar', 1.0, sensors=['encoder', 'coupler_gyro']).samples
    >>> found = branches(load_model('four_bar'), ['encoder', 'coupler_gyro'], log.t, log.values)
    >>> len(found), round(found[0].probability, 3)
    (2, 1.0)
    """
    check_even(t)
    if len(t) < 2:
        raise SettingError('t', t.shape, 'two instants or more')
    starts = assemblies(model)
    weights = np.full(len(starts), 1.0) if prior is None else np.asarray(prior, dtype=float)
    if weights.shape != (len(starts),) or not (np.isfinite(weights).all() and (weights > 0).all()):
        raise SettingError('prior', prior, f'{len(starts)} positive numbers, one of each branch')
    solved = [_solved(on_branch(model, q), sensors, t, samples, inputs, noises) for q in starts]
    evidence = np.array([-np.inf if motion is None else motion.log_evidence for motion in solved])
    if not np.isfinite(evidence).any():
        raise DivergenceError('branches', 0, f'on none of {len(starts)} branches', False)
    score = evidence + np.log(weights)
    probability = np.exp(score - score.max())
    probability /= probability.sum()
    found = [Branch(*item) for item in zip(starts, probability.tolist(), evidence.tolist(), solved)]
    return sorted(found, key=lambda branch: -branch.probability)


def _solved(model: Model, sensors: Sequence[str], t: np.ndarray, samples: np.ndarray, inputs: np.ndarray | None,
            noises: EstimationNoises | None) -> Smoothed | None:
    """The smoothed motion on the branch of the model's start; None where there is none."""
    smoother = LinkageSmoother(model, sensors, float(t[1] - t[0]), noises)
    smoother.check(len(t), samples, inputs)
    observer = LinkageObserver(model, 'errorEKF_FE', sensors)
    observer.start()
    try:
        run = observer.run(t, samples, inputs)
        guess = EstimatedMotion(t, run.q, run.qd, run.qdd, run.force)
        return smoother.batch(samples, guess, inputs, model.start.q, model.start.qd)
    except (DivergenceError, PositionProblemError, SingularConfigurationError):
        return None
