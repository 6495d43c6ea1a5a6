# SPDX-License-Identifier: Apache-2.0
"""Process noises and starting uncertainties that a filter takes by default.

They are those of Naya et al., review, section 12, and of its authors' toolbox, found by trial on a four-bar and a
five-bar linkage with steps of 5 ms, gravity in error by 1 m/s2 and the start by pi/16; as densities, so that they serve
any step (a variance per step over 5 ms; only ``colored`` is one per step). For another mechanism those of the four-bar
linkage are where a tuning by ``tuning.tune`` begins.
"""

from __future__ import annotations

import numpy as np

from .filters import check_filter
from .parts.step import Filter

Value = float | tuple[float, ...]
STEP = 5e-3                         # s, to which the papers' variances per step belong
START = float(np.radians(5.0))      # standard deviation of every state, SI
KNOWN = ('four_bar', 'five_bar')
CHOOSY = ('kinematic', 'joint', 'dual')     # filters that need certain sensors, or numbers to estimate

# Density of the acceleration, rad2/s3, four-bar and five-bar.
_WHITE = (0.0916298, 0.549779)
# Density of the random walk of the acceleration's error, rad2/s5.
_WALK = (2.29074e-3 / STEP, 0.109956 / STEP)
_ADAPTED = (0.0916298 / STEP, 0.549779 / STEP)      # where AerrorEKF_FE starts
# Variance per step of what drives the coloured error, rad2/s4: a tenth of that of errorEKF_FE, with which it does in
# both cases of the paper's Fig. 5 what this shows. The paper prints that of errorEKF_FE, with which W stays 0; the
# toolbox has 1/1000 of it, and 1/150 and 1/500 in the five-bar: the filter is then too sure of itself.
_COLORED = (2.3428e-4, 0.0109956)

_TABLE: dict[str, dict[str, tuple[Value, Value]]] = {
    **{name: {'acceleration': _WHITE} for name in (
        'CEKF', 'CEKF_penalty', 'UKF', 'SSUKF', 'UKF_acceleration', 'SSUKF_acceleration', 'DEKF', 'DIEKFpm', 'errorEKF',
        'errorEKF_EJ', 'direct_EJ')},
    'CEKF_published': {'acceleration': (0.733038, 0.0916298)},
    'SCKF': {'acceleration': (0.0916298, 15.2716)},
    # By maximum likelihood with encoders: N2 m2/s; the paper gives none.
    'ADEKF': {'acceleration': (0.00916298, 0.0549779), 'force_walk': (300.0, 10.0)},
    'errorEKF_FE': {'acceleration': _WALK},
    'direct_FE': {'acceleration': _WALK},
    'AerrorEKF_FE': {'acceleration': _ADAPTED},
    'errorEKF_FE_SH': {'acceleration': (0.0, 0.0), 'colored': _COLORED},
    'kinematic': {'acceleration': (1e-3, 1e-3), 'force_walk': (300.0, 10.0)},
    # With the noise of the model small, so that the parameters and not the forces take up what is wrong.
    'joint': {'acceleration': (1e-3, 1e-3), 'parameter_walk': (0.0, 0.0)},
    'dual': {'acceleration': (1e-3, 1e-3), 'parameter_walk': (1e-6, 1e-6)},
}


def default_noises(estimator: str, mechanism: str) -> dict[str, Value]:
    """Noises of a filter by name, each a number or one per independent coordinate; ``mechanism``: its name.

    Raises SettingError unless it is a filter of mechanisms.
    """
    check_filter(estimator)
    column = KNOWN.index(mechanism) if mechanism in KNOWN else 0
    return {name: values[column] for name, values in _TABLE[estimator].items()}


def noises_of(filter_: Filter) -> dict[str, Value]:
    """The same of each noise of a filter on its mechanism; 0 for one that the table does not have."""
    known = default_noises(filter_.name, filter_.problem.model.description.name)
    return {name: known.get(name, 0.0) for name in filter_.noises}


def default_stddev(filter_: Filter, mechanism: str) -> np.ndarray:
    """Standard deviations (l,) of a filter's mean at the start: 5 degrees, degrees/s and so on, with the exceptions
    of the toolbox."""
    size, g = filter_.state.parts['x'][0], filter_.problem.g
    stddev = np.full(size, START)
    if filter_.name == 'CEKF_published' and mechanism == 'five_bar':
        stddev = np.sqrt(np.repeat([1.3e-5, 1.3e-3], g))
    elif filter_.name == 'errorEKF_FE_SH':
        stddev[3 * g:] = np.sqrt(1e-3)
    return stddev
