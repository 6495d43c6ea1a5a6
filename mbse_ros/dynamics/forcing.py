# SPDX-License-Identifier: Apache-2.0
"""Inputs of many runs over time, the same or each its own, and random forces."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from zlib import crc32

import numpy as np

from ..errors import SettingError, check_choice

Function = Callable[[np.ndarray], np.ndarray]       # times (k,), s -> values (k,)


@dataclass(frozen=True)
class InputTable:
    """An input at ``times`` (m,), s, ascending, with straight lines between; ``values`` (1 or runs, m)."""

    times: np.ndarray
    values: np.ndarray

    def at(self, run: int, t: np.ndarray) -> np.ndarray:
        """Values (k,) of a run at times (k,)."""
        return np.interp(t, self.times, self.values[run if len(self.values) > 1 else 0])


@dataclass(frozen=True)
class InputCurve:
    """An input as a function of time, the same in all runs."""

    name: str
    function: Function

    def at(self, run: int, t: np.ndarray) -> np.ndarray:
        """Values (k,) at times (k,); raises SettingError."""
        try:
            values = np.broadcast_to(np.asarray(self.function(t), dtype=float), t.shape)
        except (TypeError, ValueError) as error:
            raise SettingError('inputs', self.name, f'a function of times (k,) to values (k,) ({error})') from None
        if not np.isfinite(values).all():
            raise SettingError('inputs', self.name, 'a function whose values are finite')
        return values


@dataclass(frozen=True)
class Forcing:
    """What acts on the inputs ``names`` (k,) of a model: ``series`` by name (none: zero), and white noise.

    ``intensities`` by name: the square root of the two-sided power spectral density, N s^0.5 or N m s^0.5. In each step
    the random force is constant, normal with the deviation ``intensity / sqrt(dt)``, so that its integral over a time T
    has the deviation ``intensity * sqrt(T)`` with any dt. It depends on the seed, the name and the number of the run.
    """

    names: tuple[str, ...]
    series: Mapping[str, InputTable | InputCurve]
    intensities: Mapping[str, float]
    seed: int = 1

    def at(self, run: int, t: np.ndarray) -> np.ndarray:
        """Inputs (k, i) of a run at times (k,), without noise."""
        found = np.zeros((len(t), len(self.names)))
        for name, series in self.series.items():
            found[:, self.names.index(name)] = series.at(run, t)
        return found

    def random(self, run: int, steps: int, dt: float) -> np.ndarray:
        """Random forces (steps + 1, i) of a run, each during the step that ends at its row; the first row is zero."""
        found = np.zeros((steps + 1, len(self.names)))
        for name, intensity in self.intensities.items():
            draw = np.random.default_rng([self.seed, run, crc32(name.encode())])
            found[1:, self.names.index(name)] = intensity / np.sqrt(dt) * draw.standard_normal(steps)
        return found


class RunForcing:
    """The inputs of one run at its ``times`` (k,), with the random force of each step."""

    def __init__(self, forcing: Forcing, run: int, times: np.ndarray, dt: float) -> None:
        self._forcing, self._run, self._times = forcing, run, times
        self._random = forcing.random(run, len(times) - 1, dt) if forcing.intensities else None

    def rows(self, share: float) -> np.ndarray:
        """Inputs (k, 2i) of each step: at so large a share of the step before its end, and at its end."""
        back = share * np.diff(self._times, prepend=self._times[0])
        there, end = self._forcing.at(self._run, self._times - back), self._forcing.at(self._run, self._times)
        return np.hstack([there, end] if self._random is None else [there + self._random, end + self._random])

    def during(self, step: int, t: float) -> np.ndarray:
        """Inputs (i,) at a time within a step."""
        u = self._forcing.at(self._run, np.array([t]))[0]
        return u if self._random is None else u + self._random[step]


def series_of(inputs: Mapping[str, object], times: object, span: tuple[float, float], runs: int | None
              ) -> dict[str, InputTable | InputCurve]:
    """Inputs by name: numbers, functions of time, or arrays (m,) or (runs, m) at ``times`` (m,), which hold the span.

    Raises SettingError.
    """
    at = _times(times, span)
    return {name: InputCurve(name, values) if callable(values) else _table(name, values, at, span, runs)
            for name, values in inputs.items()}


def _times(times: object, span: tuple[float, float]) -> np.ndarray | None:
    if times is None:
        return None
    expected = f'finite times (m,), s, ascending, from {span[0]:g} or before to {span[1]:g} or after'
    try:
        at = np.asarray(times, dtype=float)
    except (TypeError, ValueError):
        raise SettingError('input_times', times, expected) from None
    if at.ndim != 1 or not len(at) or not np.isfinite(at).all() or (np.diff(at) <= 0).any():
        raise SettingError('input_times', at.shape, expected)
    slack = 1e-9 * max(1.0, abs(span[1]))
    if at[0] > span[0] + slack or at[-1] < span[1] - slack:
        raise SettingError('input_times', (float(at[0]), float(at[-1])), expected)
    return at


def _table(name: str, values: object, at: np.ndarray | None, span: tuple[float, float], runs: int | None) -> InputTable:
    size = 'm' if at is None else str(len(at))
    expected = f'a number, a function of time, or an array ({size},) or ({runs or "runs"}, {size}) of finite numbers'
    try:
        array = np.asarray(values, dtype=float)
    except (TypeError, ValueError):
        raise SettingError(f'inputs[{name!r}]', values, expected) from None
    if not np.isfinite(array).all():
        raise SettingError(f'inputs[{name!r}]', 'not finite', expected)
    if array.ndim == 0:
        return InputTable(np.array([span[0]]), array.reshape(1, 1))
    if at is None:
        raise SettingError('input_times', None, f'the times (m,), s, of inputs[{name!r}] {array.shape}')
    if array.ndim > 2 or array.shape[-1] != len(at) or array.ndim == 2 and len(array) not in (1, runs or len(array)):
        raise SettingError(f'inputs[{name!r}]', array.shape, expected)
    return InputTable(at, np.ascontiguousarray(array.reshape(-1, len(at))))


def check_intensities(intensities: Mapping[str, float], known: Sequence[str]) -> None:
    """Raise SettingError for an unknown name, or what is not a number of 0 or more."""
    for name, value in intensities.items():
        check_choice('noise', name, known)
        if isinstance(value, bool) or not isinstance(value, (int, float, np.integer, np.floating)) \
                or not 0 <= value < np.inf:
            raise SettingError(f'noise[{name!r}]', value, 'an intensity of 0 or more, N s^0.5 or N m s^0.5')
