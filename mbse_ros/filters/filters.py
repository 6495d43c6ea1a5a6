# SPDX-License-Identifier: Apache-2.0
"""The filters by their names: of mechanisms as in Naya et al., review, and the one of machines with hydraulics;
process noises and starting uncertainties that a filter of mechanisms takes by default.

These are those of Naya et al., review, section 12, and of its authors' toolbox, found by trial on a four-bar and a
five-bar linkage with steps of 5 ms, gravity in error by 1 m/s2 and the start by pi/16; as densities, so that they serve
any step (a variance per step over 5 ms). For another mechanism those of the four-bar linkage are where a tuning by
``tuning.tune`` begins.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from inspect import signature
from typing import overload

import numpy as np

from ..errors import MbseError, SettingError, check_choice, check_names
from ..machine import Machine
from ..progress import lengthy
from .cekf import cekf, cekf_published
from .cekf_penalty import cekf_penalty
from .constrained import diekfpm, sckf
from .direct import direct_ej, direct_fe
from .ekf import adekf, dekf, error_ekf, error_ekf_ej, error_ekf_fe
from .hydraulic_dekf import ERROR, HydraulicFilter, hydraulic_dekf, hydraulic_error_ekf_fe
from .kinematic import kinematic
from .noise_models import adaptive_error_ekf_fe, error_ekf_fe_sh
from .parameters import dual, joint
from .parts.problem import Problem
from .parts.step import DiscreteFilter, Filter
from .ukf import ssukf, ssukf_acceleration, ukf, ukf_acceleration

SEVERAL = ('parameters', 'actuators', 'biases', 'inputs')     # options that are names, also where there is one
OF_MACHINES: dict[str, Callable[..., HydraulicFilter]] = {       # with hydraulics
    'hydraulic': hydraulic_dekf, ERROR: hydraulic_error_ekf_fe}
OF_MECHANISMS: dict[str, Callable[..., Filter]] = {
    'DEKF': dekf, 'ADEKF': adekf, 'errorEKF': error_ekf, 'errorEKF_EJ': error_ekf_ej, 'errorEKF_FE': error_ekf_fe,
    'AerrorEKF_FE': adaptive_error_ekf_fe, 'errorEKF_FE_SH': error_ekf_fe_sh, 'SCKF': sckf, 'DIEKFpm': diekfpm,
    'direct_EJ': direct_ej, 'direct_FE': direct_fe, 'kinematic': kinematic, 'CEKF': cekf,
    'CEKF_published': cekf_published, 'CEKF_penalty': cekf_penalty, 'UKF': ukf, 'SSUKF': ssukf,
    'UKF_acceleration': ukf_acceleration, 'SSUKF_acceleration': ssukf_acceleration, 'joint': joint, 'dual': dual}
FILTERS: dict[str, Callable[..., DiscreteFilter]] = {**OF_MECHANISMS, **OF_MACHINES}
NEEDS = {**dict.fromkeys(OF_MECHANISMS, 'a mechanism'), **dict.fromkeys(OF_MACHINES, 'a machine with hydraulics')}
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
# Density of what drives the coloured error, rad2/s5: a tenth of that of errorEKF_FE, with which it does in
# both cases of the paper's Fig. 5 what this shows. The paper prints that of errorEKF_FE, with which W stays 0; the
# toolbox has 1/1000 of it, and 1/150 and 1/500 in the five-bar: the filter is then too sure of itself.
_COLORED = (2.3428e-4 / STEP, 0.0109956 / STEP)

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
    'errorEKF_FE_SH': {'acceleration': (0.0, 0.0), 'color_walk': _COLORED},
    'kinematic': {'acceleration': (1e-3, 1e-3), 'force_walk': (300.0, 10.0)},
    # With the noise of the model small, so that the parameters and not the forces take up what is wrong.
    'joint': {'acceleration': (1e-3, 1e-3), 'parameter_walk': (0.0, 0.0)},
    'dual': {'acceleration': (1e-3, 1e-3), 'parameter_walk': (1e-6, 1e-6)},
}

# Of options: density of the jerk of `kinematic` with accelerations in its state, rad2/s5.
FURTHER: dict[str, Value] = {'jerk': 20.0}


def check_filter(name: str, hydraulics: bool = False) -> None:
    """Raise SettingError unless a filter of this name is for machines with ``hydraulics``, or else for mechanisms."""
    check_choice('estimator', name, OF_MACHINES if hydraulics else OF_MECHANISMS, NEEDS)


def check_options(name: str, options: Iterable[str]) -> None:
    """Raise SettingError for options that the filter of mechanisms of a name does not have."""
    check_filter(name)
    known = list(signature(FILTERS[name]).parameters)[1:]
    for option in options:
        if option not in known:
            raise SettingError('options', option, f'options of {name}: ' + ', '.join(known))


@overload
def make_filter(name: str, of: Problem, **options: object) -> Filter: ...


@overload
def make_filter(name: str, of: Machine, **options: object) -> HydraulicFilter: ...


def make_filter(name: str, of: Problem | Machine, **options: object) -> DiscreteFilter:
    """Filter of a name on a problem of a mechanism or on a machine, with the filter's own options; raises
    SettingError."""
    check_filter(name, isinstance(of, Machine))
    if isinstance(of, Problem) and not of.g:
        raise SettingError('mechanism', of.model.description.name,
                           'one that can move: this has no degree of freedom, and nothing to estimate')
    check_names(**{option: options.get(option) for option in SEVERAL})
    item = of if isinstance(of, Machine) else of.model
    try:
        with lengthy(f'making the filter {name} of {item.description.name}'):
            return FILTERS[name](of, **options)
    except (TypeError, ValueError, KeyError) as error:
        if isinstance(error, MbseError):
            raise
        given = ' '.join(f'{key}={",".join(map(str, value)) if isinstance(value, (tuple, list)) else value}'
                         for key, value in options.items())
        raise SettingError('options', given, f'options of {name}: {error}') from error


def default_noises(estimator: str, mechanism: str) -> dict[str, Value]:
    """Noises of a filter by name, each a number or one per independent coordinate; ``mechanism``: its name.

    Raises SettingError unless it is a filter of mechanisms.
    """
    check_filter(estimator)
    column = KNOWN.index(mechanism) if mechanism in KNOWN else 0
    return {name: values[column] for name, values in _TABLE[estimator].items()}


def noises_of(filter_: Filter) -> dict[str, Value]:
    """The same of each noise of a filter on its mechanism, also of its options; 0 for one that no table has."""
    known = default_noises(filter_.name, filter_.problem.model.description.name)
    return {name: known.get(name, FURTHER.get(name, 0.0)) for name in filter_.noises}


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
