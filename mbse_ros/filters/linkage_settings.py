# SPDX-License-Identifier: Apache-2.0
"""Tuning of the linkage stage, all of it changeable while it runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite

import numpy as np

from ..errors import SettingError, check_choice
from ..settings import GATE, Settings, setting
from .filters import NEEDS, OF_MECHANISMS, SEVERAL


@dataclass(frozen=True)
class LinkageSettings(Settings):
    """What estimates, how it is tuned, and when it is not to be trusted."""

    estimator: str = setting('errorEKF_FE', 'Filter, by its name in Naya et al., review; a change keeps the state',
                             choices=OF_MECHANISMS, needs=NEEDS)
    options: str = setting('', "Of the filter, as name=word or name=word,word, separated by blanks, e.g. "
                               "'transition=exact'")
    noises: str = setting('', 'Process noises, as name=value or name=value,value (one per independent coordinate), '
                              'separated by blanks')
    stddev: str = setting('', "of samples, as sensor=value separated by blanks, SI; the others have the file's")
    gate: float = setting(GATE, 'probability beyond which an innovation is rejected; 1: none is', '', 0.5, 1.0)
    delay_window: float = setting(0.5, 'a sample that comes this late is still used, by going back', 's', 0.0, 5.0)
    settle_time: float = setting(0.1, 'the status is STARTING for so long after a start', 's', 0.0, 60.0)
    coast_after: float = setting(0.1, 'without a used sample for longer the status is COASTING', 's', 0.001, 60.0)
    lost_after: float = setting(0.5, 'A coordinate starts again, with LOST, if most samples of its only sensor are '
                                     'rejected for so long', 's', 0.01, 600.0)
    restart_after: float = setting(60.0, 'The state starts again after a longer silence, or one of 20000 steps', 's',
                                   0.1, 3600.0)
    lost_stddev: float = setting(0.5, 'LOST if a position is known no better, rad or m', '', 0.0, 1e6)
    constant_after: float = setting(1.0, 'A sensor with noise whose value stays exactly the same for so long, or '
                                         'while others see it move, is not used until it changes', 's', 0.01, 600.0)
    start_at: str = setting('sensors', 'Start: at the encoders of independent coordinates, the rest by the file; or '
                                       'wholly by the file', choices=('sensors', 'file'))
    start_position: float = setting(0.1, 'standard deviation of independent positions at a start, rad or m', '', 0.0,
                                    1e6)
    start_velocity: float = setting(10.0, 'Of independent velocities that sensors show, rad/s or m/s', '', 0.0,
                                    1e6)
    start_unseen: float = setting(0.1, 'of the other independent velocities, rad/s or m/s', '', 0.0, 1e6)
    start_parameter: float = setting(0.1, "of parameters that a filter estimates, as a share of the model's value", '',
                                     0.0, 1e6)
    start_bias: float = setting(0.05, "of sensors' biases, in the sensor's unit, SI", '', 0.0, 1e6)
    start_other: float = setting(1.0, "of all else that a filter's state holds (forces, acceleration errors), SI", '',
                                 0.0, 1e12)


def words(name: str, text: str) -> dict[str, str]:
    """Pairs of ``key=value``, separated by blanks; raises SettingError."""
    pairs = {}
    for item in text.split():
        key, sign, value = item.partition('=')
        if not (key and sign and value) or key in pairs or '=' in value:
            raise SettingError(name, text, 'name=value, each name once, separated by blanks; several values with '
                               'commas and no blanks')
        pairs[key] = value
    return pairs


def numbers(name: str, text: str, known: Sequence[str]) -> dict[str, np.ndarray]:
    """Pairs of ``key=number`` or ``key=number,number``, from 0 up, of known names; raises SettingError."""
    found = {}
    for key, value in words(name, text).items():
        check_choice(name, key, known)
        try:
            found[key] = np.array([float(part) for part in value.split(',')])
        except ValueError:
            raise SettingError(f'{name}: {key}', value, 'a number, or several with commas') from None
        if not all(isfinite(part) and part >= 0 for part in found[key]):
            raise SettingError(f'{name}: {key}', value, 'finite numbers from 0 up')
    return found


def option_values(text: str) -> dict[str, object]:
    """Options of a filter: numbers, true or false, words; several with commas, and names always, as a tuple."""
    return {key: tuple(map(_value, value.split(','))) if ',' in value or key in SEVERAL else _value(value)
            for key, value in words('options', text).items()}


def _value(word: str) -> object:
    constants: Mapping[str, bool] = {'true': True, 'false': False}
    if word.lower() in constants:
        return constants[word.lower()]
    for kind in (int, float):
        try:
            return kind(word)
        except ValueError:
            continue
    return word
