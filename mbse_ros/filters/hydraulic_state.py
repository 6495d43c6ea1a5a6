# SPDX-License-Identifier: Apache-2.0
"""Entries of the hydraulic observer's state: their names ``kind/owner``, units, and places by kind; what it gives for a
segment."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import casadi as ca
import numpy as np

from ..machine import Machine

MPA = 1e6
LITRE = 1e-3
UNITS = {'pressure': MPA, 'flow': LITRE, 'supply': MPA}
MASS = 'payload/mass'


def state_names(machine: Machine, weighs: bool = False) -> tuple[tuple[str, ...], np.ndarray]:
    """Names of the state's entries and the factors that take them to SI; ``weighs``: with those of the payload, moments
    about its centre in the file, at the largest mass one deviation away from it, and the mass, the last."""
    names = [f'{kind}/{c}' for kind in ('position', 'velocity', 'acceleration') for c in machine.coordinates]
    names += [f'pressure/{v}' for v in machine.volumes] + [f'spool/{v}' for v in machine.modelled_valves]
    names += [f'flow/{v}.{port}' for v in machine.unknown_valves for port in 'ab']
    names += [f'supply/{s}' for s in machine.measured_supplies] + [f'inclination/{a}' for a in machine.inclinations]
    names += [f'{kind}/{axis}' for kind in ('swing', 'swing_rate') for axis in machine.swings if weighs]
    scale = [UNITS.get(name.partition('/')[0], 1.0) for name in names]
    if weighs:
        center, (low, high) = machine.parameters.center, machine.payload_data.limits
        names += [*(f'moment/{axis}' for axis in center), MASS]
        scale += [*(machine.parameters.stddev[place] * (high - low) for place in center.values()), high - low]
    return tuple(names), np.array(scale)


def state_parts(names: tuple[str, ...], X: ca.SX) -> dict[str, ca.SX]:
    """Entries of the state by kind."""
    kinds = ('position', 'velocity', 'acceleration', 'pressure', 'spool', 'flow', 'supply', 'inclination', 'swing',
             'swing_rate')
    return {kind: X[[i for i, name in enumerate(names) if name.startswith(kind + '/')]] for kind in kinds}


class SegmentResult(NamedTuple):
    """Observer over a segment, SI: ``mean`` (n, nx), ``covariance`` (nx, nx) at the last step:
    of the motion as the sensors measure it, without the errors of their zeros and gains.

    Between two samples ``mean`` is a line from the state at the one to the state at the other.
    ``innovation`` (ny,) and ``innovation_variance`` (ny,): the last samples against what was predicted for them one
    sample (or part of one) earlier; each channel after the ones before it. NaN: no sample in the segment.
    ``rejected`` (ny,): those beyond the gate, which were left out; ``finite`` is false when anything left the finite
    numbers. ``weighing`` (n, 3 + k), or (0, 3) of an observer of the motion alone: what each step measures of the
    mass, see StateEstimate. ``outside``: whether a force acts that the balance does not know. ``rare``: channels whose
    samples are too rare for this motion, the worst first, and by how many of their standard deviations the lines
    between may be off."""

    mean: np.ndarray
    covariance: np.ndarray
    innovation: np.ndarray
    innovation_variance: np.ndarray
    rejected: np.ndarray
    finite: bool
    weighing: np.ndarray
    outside: bool = False
    rare: tuple[tuple[int, float], ...] = ()


def last_samples(innovations: np.ndarray, variances: np.ndarray, there: np.ndarray,
                 refused: Mapping[tuple[int, int], tuple[float, float]]
                 ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Innovation, variance and rejection (ny,) of the last sample of each channel in steps with ``innovations`` and
    their ``variances`` (n, ny); ``there`` (n, ny): whether there is a sample; ``refused``: those by step and channel
    that were left out, with both numbers."""
    m = innovations.shape[1]
    innovation, variance, rejected = np.full(m, np.nan), variances[-1].copy(), np.zeros(m, dtype=bool)
    for k, row in enumerate((len(there) - 1 - np.argmax(there[::-1], axis=0)).tolist()):
        if (row, k) in refused:
            (innovation[k], variance[k]), rejected[k] = refused[row, k], True
        elif there[row, k]:
            innovation[k], variance[k] = innovations[row, k], variances[row, k]
    return innovation, variance, rejected
