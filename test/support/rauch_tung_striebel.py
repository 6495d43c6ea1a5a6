# SPDX-License-Identifier: Apache-2.0
"""Rauch-Tung-Striebel smoothing of a log, for the filters whose covariance follows ``F P F' + Sigma``."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mbse_ros.compiled import Kernel
from mbse_ros.errors import SettingError
from mbse_ros.filters.parts.step import Filter


@dataclass(frozen=True)
class SmoothedStates:
    """Smoothed states over a log of k samples: ``mean`` (k, l) and ``covariance`` (k, l, l)."""

    mean: np.ndarray
    covariance: np.ndarray


def rts_step(mean: np.ndarray, P: np.ndarray, predicted: np.ndarray, P_predicted: np.ndarray, F: np.ndarray,
             later: np.ndarray, P_later: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Smoothed mean (l,) and covariance (l, l) of a filtered state, given those one step later.

    ``C = P F' (P-)^-1``; the covariance in the form ``(I - C F) P (I - C F)' + C (P_later + Sigma) C'``, which stays
    positive (Joseph's).
    """
    from scipy.linalg import cho_factor, cho_solve  # here: slow to import
    C = cho_solve(cho_factor(P_predicted), F @ P).T
    rest = np.eye(len(mean)) - C @ F
    Sigma = P_predicted - F @ P @ F.T
    smoothed = rest @ P @ rest.T + C @ (P_later + Sigma) @ C.T
    return mean + C @ (later - predicted), (smoothed + smoothed.T) / 2


def smooth(filter_: Filter, start: np.ndarray, us: np.ndarray, tuning: np.ndarray,
           backend: str = 'auto') -> SmoothedStates:
    """Smoothed states of a log: filter forwards, keep what is needed, go back.

    ``start`` flat state before the first sample, ``us`` (k, given) the samples, ``tuning`` flat. Raises SettingError
    for a filter without a transition, or whose mean is an error that is put into the model and forgotten.
    """
    if filter_.transition is None:
        raise SettingError('estimator', filter_.name, 'a filter whose covariance follows a transition matrix, such as '
                           'DEKF, ADEKF, errorEKF, errorEKF_EJ')
    predict, correct, transition = (Kernel(function, backend) for function in (
        filter_.predict, filter_.correct, filter_.transition))
    size, kept, flat = filter_.state.parts['x'][0], [], np.asarray(start, dtype=float)
    for u in us:
        F, = transition(flat, u, tuning)
        predicted, = predict(flat, u, tuning)
        before, flat = flat, correct(predicted, u, tuning)[0]
        kept.append((*_moments(filter_, before), *_moments(filter_, predicted), F.reshape(size, size)))
    mean, P = _moments(filter_, flat)
    found = [(mean, P)]
    for mean, P, predicted, P_predicted, F in reversed(kept[1:]):
        found.append(rts_step(mean, P, predicted, P_predicted, F, *found[-1]))
    return SmoothedStates(np.array([item[0] for item in found[::-1]]), np.array([item[1] for item in found[::-1]]))


def _moments(filter_: Filter, flat: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    parts = filter_.state.arrays(flat)
    return parts['x'], parts['P']
