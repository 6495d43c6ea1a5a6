# SPDX-License-Identifier: Apache-2.0
"""The filters by their names in Naya et al., review."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from inspect import signature

from ..errors import MbseError, SettingError, check_choice
from .adaptive import adaptive_error_ekf_fe
from .cekf import cekf, cekf_published
from .cekf_penalty import cekf_penalty
from .constrained import diekfpm, sckf
from .dekf import adekf, dekf
from .direct import direct_ej, direct_fe
from .dual import dual
from .ekf import error_ekf, error_ekf_ej, error_ekf_fe
from .joint import joint
from .kinematic import kinematic
from .parts.problem import Problem
from .parts.step import Filter
from .shaping import error_ekf_fe_sh
from .ukf import ssukf, ssukf_acceleration, ukf, ukf_acceleration

FILTERS: dict[str, Callable[..., Filter]] = {
    'DEKF': dekf, 'ADEKF': adekf, 'errorEKF': error_ekf, 'errorEKF_EJ': error_ekf_ej, 'errorEKF_FE': error_ekf_fe,
    'AerrorEKF_FE': adaptive_error_ekf_fe, 'errorEKF_FE_SH': error_ekf_fe_sh, 'SCKF': sckf, 'DIEKFpm': diekfpm,
    'direct_EJ': direct_ej, 'direct_FE': direct_fe, 'kinematic': kinematic, 'CEKF': cekf,
    'CEKF_published': cekf_published, 'CEKF_penalty': cekf_penalty, 'UKF': ukf, 'SSUKF': ssukf,
    'UKF_acceleration': ukf_acceleration, 'SSUKF_acceleration': ssukf_acceleration, 'joint': joint, 'dual': dual}


def check_options(name: str, options: Iterable[str]) -> None:
    """Raise SettingError for options that the filter of a name does not have."""
    check_choice('estimator', name, FILTERS)
    known = list(signature(FILTERS[name]).parameters)[1:]
    for option in options:
        if option not in known:
            raise SettingError('options', option, f'options of {name}: ' + ', '.join(known))


def make_filter(name: str, problem: Problem, **options: object) -> Filter:
    """Filter of a name on a problem, with the filter's own options; raises SettingError."""
    check_choice('estimator', name, FILTERS)
    if not problem.g:
        raise SettingError('mechanism', problem.model.description.name,
                           'one that can move: this has no degree of freedom, and nothing to estimate')
    try:
        return FILTERS[name](problem, **options)
    except (TypeError, ValueError, KeyError) as error:
        if isinstance(error, MbseError):
            raise
        given = ' '.join(f'{key}={",".join(map(str, value)) if isinstance(value, (tuple, list)) else value}'
                         for key, value in options.items())
        raise SettingError('options', given, f'options of {name}: {error}') from error
