# SPDX-License-Identifier: Apache-2.0
"""Where the load is, from its mass and moments in the state of an observer."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..filters.weighing import LEAST
from ..machine import Machine


def center_of(machine: Machine, names: Sequence[str], mean: np.ndarray, covariance: np.ndarray
              ) -> dict[str, tuple[float, float]]:
    """Place of the load in the frame of its body and its standard deviation, m, by the axis, from the entries
    ``names`` of a state ``mean`` (nx,), SI, and its ``covariance`` (nx, nx).

    The observer's where the file gives the centre a deviation and there is a load, else that of the file.
    """
    payload = machine.payload_data
    found = {axis: (item.value, item.stddev) for axis, item in zip('xyz', payload.center)}
    mass, least = float(mean[-1]), LEAST * (payload.limits[1] - payload.limits[0])
    for i, name in enumerate(names):
        kind, axis = name.split('/')
        if kind == 'moment' and mass > least:
            slope = np.array([1.0, -mean[i] / mass]) / mass
            P = covariance[np.ix_([i, -1], [i, -1])]
            found[axis] = float(found[axis][0] + mean[i] / mass), float(np.sqrt(slope @ P @ slope))
    return found
