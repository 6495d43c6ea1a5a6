# SPDX-License-Identifier: Apache-2.0
"""What every integrator is given, and where it writes what it finds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from ...errors import DivergenceError, MbseError, SettingError
from ..formulations.semi_recursive import semi_recursive_partition
from ..model import Model, State
from ..partitioned import Partitioned

Inputs = Callable[[float, np.ndarray, np.ndarray], np.ndarray]     # t, q (n,), qd (n,) -> u (k,)


@dataclass
class MotionRecord:
    """Motion at the times ``t`` (k,): ``q, qd, qdd`` (k, n), multipliers ``lam`` (k, m), inputs ``u`` (k, i).

    Rows up to ``last`` are filled. ``work`` (k,), J, is filled by schemes that integrate the power themselves
    (``has_work``). ``choices`` are the independent coordinates with the time of their choice, ``warnings`` and
    ``singular_times`` what happened on the way, ``evaluations`` counts the state equations.
    """

    t: np.ndarray
    q: np.ndarray
    qd: np.ndarray
    qdd: np.ndarray
    lam: np.ndarray
    u: np.ndarray
    work: np.ndarray
    last: int = -1
    has_work: bool = False
    choices: list[tuple[float, tuple[str, ...]]] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    singular_times: list[float] = field(default_factory=list)
    evaluations: int = 0

    @classmethod
    def of(cls, model: Model, times: np.ndarray) -> MotionRecord:
        """Empty record of a model at times (k,)."""
        k, n, m, i = len(times), len(model.names), len(model.rows), len(model.inputs)
        q, qd, qdd, lam, u = (np.zeros((k, size)) for size in (n, n, n, m, i))
        return cls(times, q, qd, qdd, lam, u, np.zeros(k))


@dataclass(frozen=True)
class MotionTask:
    """A motion to find: ``times`` (k,), s, from ``start`` in steps of ``dt``.

    ``inputs`` gives u (k,), None means zero; ``independent`` names coordinates, None the model's own, 'auto' chooses
    and re-chooses them; ``scheme`` is the name for messages. ``compiled``: compiled steps even of a motion that is too
    short to be worth the compiler. ``semi_recursive``: equations of this form instead of matrix-R.
    """

    model: Model
    start: State
    times: np.ndarray
    dt: float
    scheme: str
    inputs: Inputs | None = None
    independent: Sequence[str] | str | None = None
    compiled: bool = False
    semi_recursive: bool = False

    def partition(self, independent: Sequence[int]) -> Partitioned:
        """The equations of motion of the independent coordinates at these places of q."""
        if self.semi_recursive:
            return semi_recursive_partition(self.model, independent)
        return self.model.partition(independent)

    def u(self, t: float, q: np.ndarray, qd: np.ndarray) -> np.ndarray:
        """Inputs at a state; raises SettingError for a wrong number, ArithmeticError where they are not finite."""
        size = len(self.model.inputs)
        if self.inputs is None:
            return np.zeros(size)
        u = np.atleast_1d(np.asarray(self.inputs(t, q, qd), dtype=float))
        if u.shape != (size,):
            raise SettingError('inputs', u, f'{size} numbers: {", ".join(self.model.inputs)}')
        if not np.isfinite(u).all():
            raise ArithmeticError(f'inputs {u.tolist()}')
        return u

    def diverged(self, step: int, detail: str = '') -> DivergenceError:
        """The error of a step, to be raised."""
        at = f't = {self.times[step]:.9g} s'
        return DivergenceError(self.scheme, step, f'{at}; {detail}' if detail else at)


def at_time(error: MbseError, t: float) -> MbseError:
    """The same error with the time in its text."""
    error.args = (f't = {t:.9g} s: {error}',)
    return error
