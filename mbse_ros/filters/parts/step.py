# SPDX-License-Identifier: Apache-2.0
"""A filter as two functions, predict and correct, over one flat state."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import casadi as ca
import numpy as np

from .layout import SYMMETRIC, Layout
from .parameter_space import ParameterSpace
from .problem import Problem

Parts = dict[str, ca.SX]
FORCE = ('ADEKF',)      # whose third block is the force itself
ACCELERATION = ('direct_FE', 'UKF_acceleration', 'SSUKF_acceleration')      # or the acceleration; else its error


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
