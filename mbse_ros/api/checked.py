# SPDX-License-Identifier: Apache-2.0
"""Arguments of the public functions against their annotations: another type is refused by the argument's name."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import wraps
from inspect import signature
from numbers import Integral, Real
from os import PathLike
from sys import float_info
from typing import Any, TypeVar, cast

import numpy as np

from ..dynamics.model import Model
from ..errors import SettingError, check_names
from ..machine import Machine
from .samples import Samples

F = TypeVar('F', bound=Callable[..., Any])


def _is_finite(value: Any) -> bool:
    return bool(abs(value) <= float_info.max)       # of whole numbers of any size, too


def _is_path(value: object) -> bool:
    return isinstance(value, PathLike) or isinstance(value, str) and bool(value.strip())


def _is_names(value: object) -> bool:
    return (isinstance(value, Collection) and not isinstance(value, Mapping)
            and all(isinstance(name, str) for name in value))


def _is_array(value: object) -> bool:
    try:
        return np.asarray(value, dtype=float).ndim > 0
    except (TypeError, ValueError):
        return False


KINDS: Mapping[str, tuple[Callable[[Any], bool], str]] = {      # by what stands between | in an annotation
    'None': (lambda value: value is None, ''),
    'str': (lambda value: isinstance(value, str), 'a text'),
    'path': (_is_path, 'a name or a path'),
    'bool': (lambda value: isinstance(value, (bool, np.bool_)), 'True or False'),
    'int': (lambda value: isinstance(value, Integral) and not isinstance(value, bool), 'a whole number'),
    'float': (lambda value: isinstance(value, Real) and not isinstance(value, bool) and _is_finite(value),
              'a finite number'),
    'Sequence[float]': (_is_array, 'numbers'),
    'np.ndarray': (_is_array, 'an array of numbers'),
    'names': (_is_names, 'a list of names'),
    'paths': (lambda value: isinstance(value, Collection) and all(map(_is_path, value)), 'a list of names or paths'),
    'payloads': (lambda value: isinstance(value, Mapping) or not isinstance(value, str) and _is_names(value),
                 'the loads of the bags by their names, {bag: kg}, or words bag=kg'),
    'SourceMap': (lambda value: hasattr(value, 'channels') and hasattr(value, 'sources'), 'a map'),
    'survey': (callable, 'what gives a Survey'),
    'mapping': (lambda value: isinstance(value, Mapping), 'a mapping'),
    'Loadable': (lambda value: _is_path(value) or isinstance(value, (Model, Machine)),
                 'a name, a path, or what mbse_ros.load gives'),
    'Estimator': (lambda value: isinstance(value, str) or callable(value), 'a name, or what makes a filter'),
    'Inputs': (callable, 'a function of time, positions and velocities'),
    'Tuning': (lambda value: isinstance(value, (str, Mapping)) or _is_names(value), "settings, {'name': value} or "
               "['name=value']"),
    'Observer': (lambda value: hasattr(value, 'estimator') and hasattr(value, 'core'), 'an Observer'),
    'Log': (lambda value: _is_path(value) or isinstance(value, Samples) or isinstance(value, Mapping) and bool(value),
            'the path of a bag, Samples (a '
            'simulation has them as its `samples`), or a mapping from channels to (t, values)'),
}
LONGER = {      # in this order
    'Mapping[str, float | str] | Sequence[str]': 'payloads', 'Sequence[str | Path]': 'paths', 'str | Path': 'path',
    'Sequence[str]': 'names', 'Collection[str]': 'names', 'Callable[[], Survey]': 'survey',
    'Mapping[str, float | Sequence[float] | np.ndarray]': 'mapping', 'Mapping[str, Any]': 'mapping',
    'Mapping[str, float]': 'mapping', 'dict[str, Any]': 'mapping'}


def checked(function: F) -> F:
    """The function, which raises SettingError for an argument that is not what its annotation says, if ``KINDS`` has
    all of it; numbers are finite, a truth value is none, and a path has a name."""
    parts = {name: _parts(text) for name, text in function.__annotations__.items() if name != 'return'}
    kinds = {name: found for name, found in parts.items() if set(found) <= KINDS.keys()}
    parameters = signature(function)

    @wraps(function)
    def call(*arguments: Any, **options: Any) -> Any:
        try:
            given = parameters.bind_partial(*arguments, **options).arguments
        except TypeError:
            given = {}      # Python says it
        for name, value in given.items():
            if name in kinds:
                _check(name, value, kinds[name])
        return function(*arguments, **options)
    return cast(F, call)


def _parts(text: str) -> list[str]:
    for long, short in LONGER.items():
        text = text.replace(long, short)
    return text.split(' | ')


def _check(name: str, value: object, kinds: Collection[str]) -> None:
    if 'names' in kinds and 'str' not in kinds:
        check_names(**{name: value})
    if not any(KINDS[kind][0](value) for kind in kinds):
        raise SettingError(name, value, ' or '.join(KINDS[kind][1] for kind in kinds if kind != 'None'))
