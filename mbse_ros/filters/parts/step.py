# SPDX-License-Identifier: Apache-2.0
"""A filter as two functions, predict and correct, over one flat state; at work with a compiled step and tuning."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Generic, TypeVar

import casadi as ca
import numpy as np

from ...compiled import Scan
from .layout import SYMMETRIC, Layout
from .parameter_space import ParameterSpace
from .problem import Problem

Parts = dict[str, ca.SX]
FORCE = ('ADEKF',)      # whose third block is the force itself
# or the acceleration; else its error
ACCELERATION = ('direct_FE', 'UKF_acceleration', 'SSUKF_acceleration', 'kinematic')
F = TypeVar('F', bound='DiscreteFilter')


@dataclass(frozen=True)
class DiscreteFilter(ABC):
    """A filter as one step over flat vectors, whose parts have names: of its ``state``, of what is ``given``, of its
    ``tuning`` and of its ``outputs``. SI.

    Each has the step's two halves, too: ``predict (state, given, tuning) -> predicted`` and ``correct (predicted,
    given, tuning) -> (state, outputs)``, CasADi functions of flat vectors.
    """

    name: str
    state: Layout
    given: Layout
    tuning: Layout
    outputs: Layout

    @property
    def predicted(self) -> Layout:
        """Of what ``predict`` gives: the state, in most filters."""
        return self.state

    @abstractmethod
    def function(self) -> ca.Function:
        """The step ``(x, u, p) -> (x, y)``: state, given, tuning -> state, outputs."""

    def step(self, keep: Sequence[str] = ()) -> ca.Function:
        """The same; parts of the state to ``keep``, one after the other in it, follow the outputs."""
        function = self.function()
        if not keep:
            return function
        kind = ca.SX if function.is_a('SXFunction') else ca.MX
        x, u, p = (kind.sym(label, layout.size) for label, layout in (
            ('x', self.state), ('u', self.given), ('p', self.tuning)))
        after, y = function(x, u, p)
        return ca.Function(function.name(), [x, u, p], [after, ca.vertcat(y, after[self.state.span(keep)])],
                           {'cse': True})


@dataclass(frozen=True)
class Filter(DiscreteFilter):
    """One filter of a mechanism on one problem.

    ``state``: the mean ``x``, its covariance ``P``, coordinates ``q`` and what else it remembers. ``given``: the
    measurements ``o`` (s,), NaN where missing, the inputs ``u`` and the time ``t``, s. ``tuning``: ``dt``, ``gate`` (of
    one normalised innovation squared), its noises, the sensors' ``variance`` (s,) and the model's parameters ``p``.
    ``transition``: the matrix F (l, l) of the prediction that starts from a state, where there is one.
    ``memory``: what further parts of the state start from, where not from zero. ``parameters``: of the filters that
    estimate some, the last entries of ``x``; so are ``biases``, of the channels of these names. ``outputs``: ``x``,
    ``q``, ``qd``, ``qdd``, ``force`` along ``forces`` (independent coordinates, or the chosen actuators),
    ``innovation``, ``innovation_variance``, ``used`` (s,).
    """

    problem: Problem
    noises: tuple[str, ...]
    predict: ca.Function
    correct: ca.Function
    transition: ca.Function | None = None
    memory: dict[str, np.ndarray] = field(default_factory=dict)
    parameters: ParameterSpace | None = None
    forces: tuple[str, ...] = ()
    biases: tuple[str, ...] = ()

    @property
    def held(self) -> list[int]:
        """Places in q of the coordinates whose positions, then velocities, the mean begins with."""
        return self.problem.z

    def start(self, q: np.ndarray, qd: np.ndarray, stddev: float | np.ndarray) -> np.ndarray:
        """Flat state at coordinates (n,) and velocities (n,), with a standard deviation of the mean (l,)."""
        size, z = self.state.parts['x'][0], self.problem.z
        mean = np.concatenate([q[z], qd[z]])
        mean = np.concatenate([mean, np.zeros(size - len(mean))])
        variance = np.broadcast_to(np.asarray(stddev, dtype=float) ** 2, (size,))
        rest = {name: np.zeros(shape) for name, shape in self.state.parts.items() if name not in ('x', 'P', 'q')}
        return self.state.flat(x=mean, P=np.diag(variance), q=q, **{**rest, **self.memory})

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names (l,) of the mean: ``position/theta1``, ``velocity/theta1``, ``acceleration_error/theta1``, ...,
        ``parameter/<name>`` and ``bias/<channel>`` of the filters that estimate some."""
        of, space = self.problem, self.parameters
        estimated = () if space is None else tuple(f'parameter/{name}' for name in space.names)
        estimated += tuple(f'bias/{channel}' for channel in self.biases)
        size = self.state.parts['x'][0] - len(estimated)
        coordinates = [of.system.names[i] for i in self.held]
        if 'base' in self.state.parts and size == of.g:
            return (*(f'acceleration/{of.system.names[i]}' for i in of.z), *estimated)
        names = [f'{kind}/{name}' for kind in ('position', 'velocity') for name in coordinates]
        if self.name in FORCE:
            names += [f'force/{name}' for name in self.forces]
        third = 'acceleration' if self.name in ACCELERATION else 'acceleration_error'
        names = [*names, *(f'{third}/{name}' for name in coordinates)][:size]
        return (*names, *(f'other/{i}' for i in range(size - len(names))), *estimated)

    @cached_property
    def force_places(self) -> tuple[int | None, ...]:
        """Place in the mean of each force, None where it is not in it."""
        return tuple(self.names.index(f'force/{name}') if f'force/{name}' in self.names else None
                     for name in self.forces)

    def function(self) -> ca.Function:
        """Prediction and correction as one function."""
        kind = ca.SX if self.predict.is_a('SXFunction') else ca.MX
        x, u, p = (kind.sym(name, layout.size) for name, layout in (
            ('x', self.state), ('u', self.given), ('p', self.tuning)))
        after = self.correct(self.predict(x, u, p), u, p)
        return ca.Function(f'mbse_{self.name}', [x, u, p], after, {'cse': True})


def build_filter(name: str, problem: Problem, size: int, noises: dict[str, int],
                 predict: Callable[[Parts, Parts, Parts], Parts], correct: Callable[[Parts, Parts, Parts], Parts],
                 memory: dict[str, tuple[int, int]] | None = None, scalar: bool | None = None,
                 forces: tuple[str, ...] | None = None, made: type[Filter] = Filter) -> Filter:
    """Filter from expressions of its prediction and correction.

    ``size`` of the mean; ``noises`` name -> length; ``memory``: further parts of the state. ``predict (state, given,
    tuning)`` gives the parts of the state, ``correct`` those of the state and of the outputs. ``scalar``: written out
    in scalar operations, default as the problem; else calls of functions are kept, which compile once. ``forces``: what
    the reported force is along, default the independent coordinates; ``made``: the kind of filter.
    """
    forces = tuple(problem.system.names[i] for i in problem.z) if forces is None else forces
    s, k, n = len(problem.channels), problem.system.u.numel() - problem.g, problem.n
    state = Layout({'x': (size, 1), 'P': (size, SYMMETRIC), 'q': (n, 1), **(memory or {})})
    given = Layout({'o': (s, 1), 'u': (k, 1), 't': (1, 1)})
    tuning = Layout({'dt': (1, 1), 'gate': (1, 1), **{noise: (length, 1) for noise, length in noises.items()},
                     'variance': (s, 1), 'p': (problem.system.values.symbol.numel(), 1)})
    outputs = Layout({'x': (size, 1), 'q': (n, 1), 'qd': (n, 1), 'qdd': (n, 1), 'force': (len(forces), 1),
                      'innovation': (s, 1), 'innovation_variance': (s, 1), 'used': (s, 1)})
    kind = ca.SX if problem.scalar and scalar in (None, True) else ca.MX
    flat = [kind.sym(label, layout.size) for label, layout in (('x', state), ('u', given), ('p', tuning))]
    parts = [layout.unpack(symbol) for layout, symbol in zip((state, given, tuning), flat)]
    predicted = predict(*parts)
    F = predicted.pop('F', None)
    corrected = correct(*parts)
    out = [state.pack(**{key: corrected[key] for key in state.parts}),
           outputs.pack(**{key: corrected[key] for key in outputs.parts})]
    return made(name, state, given, tuning, outputs, problem, tuple(noises),
                ca.Function(f'{name}_predict', flat, [state.pack(**predicted)], {'cse': True}),
                ca.Function(f'{name}_correct', flat, out, {'cse': True}),
                None if F is None else ca.Function(f'{name}_transition', flat, [ca.densify(F)], {'cse': True}),
                forces=forces)


class RunningFilter(Generic[F]):
    """A filter with its compiled step, flat ``state`` and flat ``tuning``, as the filter's layouts have them.

    ``keep``: parts of the state, one after the other in it, that each step gives besides its outputs, as ``kept`` has
    them; ``backend`` as of ``compiled.Kernel``. The state is (0,) before a start.
    """

    def __init__(self, filter_: F, backend: str = 'auto', keep: Sequence[str] = ()) -> None:
        self.filter, self.backend, self.kept = filter_, backend, Layout({name: filter_.state.parts[name]
                                                                         for name in keep})
        self.state, self.tuning = np.zeros(0), np.zeros(filter_.tuning.size)
        self._scan, self._size = Scan(filter_.step(keep), backend), filter_.outputs.size
        self._covariance = filter_.state.indices['P']

    @property
    def started(self) -> bool:
        """Whether there is a state to continue from."""
        return self.state.size > 0

    def outputs(self, y: np.ndarray) -> dict[str, np.ndarray]:
        """Parts of the outputs (y,) of one step, as views of them."""
        return self.filter.outputs.views(y)

    def covariance(self, state: np.ndarray) -> np.ndarray:
        """Covariance (l, l) of a flat state."""
        return state[self._covariance]

    def steps(self, state: np.ndarray, rows: np.ndarray, tuning: np.ndarray
              ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """From any state (x,) with rows (k, u) of what is given: the state after the last of them, outputs (k, y) and
        kept parts (k, z) after each. The filter's own state and tuning stay. Raises DivergenceError."""
        after, y = self._scan(state, rows, tuning)
        return after, y[:, :self._size], y[:, self._size:]

    def advance(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """On with rows (k, u): outputs (k, y) and kept parts (k, z) after each. Raises DivergenceError."""
        self.state, outputs, kept = self.steps(self.state, rows, self.tuning)
        return outputs, kept
