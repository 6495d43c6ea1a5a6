# SPDX-License-Identifier: Apache-2.0
"""The filters by their names: of mechanisms as in Naya et al., review, and the one of machines with hydraulics."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from inspect import signature
from typing import overload

from ..errors import MbseError, SettingError, check_choice
from ..machine import Machine
from .adaptive import adaptive_error_ekf_fe
from .cekf import cekf, cekf_published
from .cekf_penalty import cekf_penalty
from .constrained import diekfpm, sckf
from .dekf import adekf, dekf
from .direct import direct_ej, direct_fe
from .dual import dual
from .ekf import error_ekf, error_ekf_ej, error_ekf_fe
from .hydraulic_dekf import HydraulicFilter, hydraulic_dekf
from .joint import joint
from .kinematic import kinematic
from .parts.problem import Problem
from .parts.step import DiscreteFilter, Filter
from .shaping import error_ekf_fe_sh
from .ukf import ssukf, ssukf_acceleration, ukf, ukf_acceleration

OF_MACHINES: dict[str, Callable[..., HydraulicFilter]] = {'hydraulic': hydraulic_dekf}       # with hydraulics
OF_MECHANISMS: dict[str, Callable[..., Filter]] = {
    'DEKF': dekf, 'ADEKF': adekf, 'errorEKF': error_ekf, 'errorEKF_EJ': error_ekf_ej, 'errorEKF_FE': error_ekf_fe,
    'AerrorEKF_FE': adaptive_error_ekf_fe, 'errorEKF_FE_SH': error_ekf_fe_sh, 'SCKF': sckf, 'DIEKFpm': diekfpm,
    'direct_EJ': direct_ej, 'direct_FE': direct_fe, 'kinematic': kinematic, 'CEKF': cekf,
    'CEKF_published': cekf_published, 'CEKF_penalty': cekf_penalty, 'UKF': ukf, 'SSUKF': ssukf,
    'UKF_acceleration': ukf_acceleration, 'SSUKF_acceleration': ssukf_acceleration, 'joint': joint, 'dual': dual}
FILTERS: dict[str, Callable[..., DiscreteFilter]] = {**OF_MECHANISMS, **OF_MACHINES}
NEEDS = {**dict.fromkeys(OF_MECHANISMS, 'a mechanism'), **dict.fromkeys(OF_MACHINES, 'a machine with hydraulics')}


def check_filter(name: str, hydraulics: bool = False) -> None:
    """Raise SettingError unless a filter of this name is for machines with ``hydraulics``, or else for mechanisms."""
    check_choice('estimator', name, OF_MACHINES if hydraulics else OF_MECHANISMS, NEEDS)


def check_options(name: str, options: Iterable[str], hydraulics: bool = False) -> None:
    """Raise SettingError for options that the filter of a name does not have, and as ``check_filter``."""
    check_filter(name, hydraulics)
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
    try:
        return FILTERS[name](of, **options)
    except (TypeError, ValueError, KeyError) as error:
        if isinstance(error, MbseError):
            raise
        given = ' '.join(f'{key}={",".join(map(str, value)) if isinstance(value, (tuple, list)) else value}'
                         for key, value in options.items())
        raise SettingError('options', given, f'options of {name}: {error}') from error
