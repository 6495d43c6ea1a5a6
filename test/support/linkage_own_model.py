# SPDX-License-Identifier: Apache-2.0
"""Truths drawn from a filter's own model, many at once, and how its estimates compare with its covariance.

The truth is moved by the filter's own prediction from a covariance of zero; what the covariance is then is the process
noise that the filter assumes, and is drawn. The start is drawn from the prior, the samples with the sensors' noise.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import casadi as ca
import numpy as np
from scipy.stats import chi2, norm

from mbse_ros.description.load import parse_mechanism
from mbse_ros.dynamics.model import Model, load_model
from mbse_ros.filters.filters import make_filter
from mbse_ros.filters.parts.model_step import rates
from mbse_ros.filters.parts.problem import problem
from mbse_ros.filters.parts.step import Filter

FORCED = ('errorEKF_FE', 'AerrorEKF_FE', 'errorEKF_FE_SH', 'direct_FE')     # the third block of x becomes a force
OF_ACCELERATIONS = ('UKF_acceleration', 'SSUKF_acceleration')            # the third block of x is zdd
# Filters whose covariance does not claim to be that of the whole error in their own model, and why.
NO_CLAIM = {
    'AerrorEKF_FE': 'its noise is found from 50 samples, not given',
    'errorEKF_FE_SH': 'its colour is found from the samples, not given',
    'CEKF_published': 'R is a variance in place of a density (Naya et al., review, as it is printed)',
    'kinematic': 'its transition is made of measurements',
    'dual': 'state and parameters are estimated as if they were independent'}
NOISES = {'acceleration': 0.0916, 'force_walk': 300.0, 'parameter_walk': 0.0, 'color_walk': 2e-4}
WALK = 0.458            # density of the acceleration error's random walk, rad2/s5
MASSES = '''
format: mbse/mechanism/1
name: free_masses
gravity: 0
points: {O: {fixed: [0, 0]}}
bodies:
  first: {points: {S: [0, 0]}, mass: 2 kg, center_of_mass: [0, 0], inertia: 1}
  second: {points: {T: [0, 0]}, mass: 1 kg, center_of_mass: [0, 0], inertia: 1}
joints:
  rail_1: {type: prismatic, parent: ground.O, child: first.S, axis: [1, 0], start: 1}
  rail_2: {type: prismatic, parent: first.S, child: second.T, axis: [0, 1], start: 2}
named: {x: {joint: rail_1}, y: {joint: rail_2}}
independent: [x, y]
initial: {position: {x: 1, y: 2}}
sensors:
  place: {kind: encoder, coordinate: x, stddev: 0.02}
  height: {kind: encoder, coordinate: y, stddev: 0.02}
'''


@dataclass(frozen=True)
class Consistency:
    """Mean NEES of each of N runs (N,), with ``states`` expected, of the last sample alone (N,); mean NIS (N,) of
    ``samples`` numbers each, with ``channels`` expected."""

    nees: np.ndarray
    last: np.ndarray
    states: int
    nis: np.ndarray
    channels: int
    steps: int

    @property
    def nees_score(self) -> float:
        """Standard errors of the mean NEES over time and runs from what is expected; the runs are independent."""
        return float((self.nees.mean() - self.states) / (self.nees.std(ddof=1) / np.sqrt(len(self.nees))))

    @property
    def nis_score(self) -> float:
        """As ``nees_score``, for the NIS, whose samples are all independent: chi-square with N steps s degrees."""
        return score(float(self.nis.sum()) * self.steps, len(self.nis) * self.steps * self.channels)

    @property
    def last_score(self) -> float:
        """Of the NEES of the last sample: chi-square with N l degrees of freedom."""
        return score(float(self.last.sum()), len(self.last) * self.states)


def score(total: float, degrees: int) -> float:
    """Normal deviate with the probability of a chi-square; 1.96 is the end of the 95 % bounds."""
    upper = norm.isf(chi2.sf(total, degrees))
    return float(upper if total > degrees else norm.ppf(chi2.cdf(total, degrees)))


class OwnModel:
    """A filter on N truths; ``noises`` and ``stddev`` (of the mean at the start) as for LinkageObserver.

    ``scale`` of all standard deviations: what a filter lacks because it linearises goes away with it, a fault stays.
    """

    def __init__(self, model: Model, estimator: str, sensors: Sequence[str], noises: Mapping[str, float],
                 stddev: float | np.ndarray, runs: int = 100, dt: float = 0.005, scale: float = 1.0,
                 **options: object) -> None:
        self.problem = problem(model, sensors)
        self.filter = make_filter(estimator, self.problem, **options)
        self.runs, self.dt, self.estimator = runs, dt, estimator
        parts = self.filter.tuning.parts
        full = {name: np.broadcast_to(np.asarray(value, dtype=float) * scale ** 2, parts[name][:1])
                for name, value in noises.items()}
        self.stddev = self.problem.stddev * scale
        p = np.asarray(model.parameters)
        self.tuning = self.filter.tuning.flat(dt=[dt], gate=[1e300], variance=self.stddev ** 2, p=p, **full)
        start = model.start
        self.start = self.filter.start(start.q, start.qd, np.asarray(stddev) * scale)
        settle, sense, error = settled(self.filter), sensed(self.filter), errors(self.filter)
        self.predict, self.step, self.settle, self.sense, self.error = (
            function.map(runs) for function in (self.filter.predict, self.filter.step(), settle, sense, error))

    def given(self, k: int) -> np.ndarray:
        """What step k is given: no samples yet, the time."""
        return np.append(np.zeros(self.filter.given.size - 1), k * self.dt)

    def run(self, steps: int, seed: int = 0) -> Consistency:
        """Figures over a number of steps."""
        rng, runs, layout = np.random.default_rng(seed), self.runs, self.filter.state
        given = np.zeros((self.filter.given.size, runs))
        tuning = ca.repmat(ca.DM(self.tuning), 1, runs)
        flat = np.tile(self.start[:, None], (1, runs))
        truth = self._drawn(flat, given, tuning, rng)
        s, nees, nis = len(self.problem.channels), [], np.zeros(runs)
        for k in range(1, steps + 1):
            given[-1] = k * self.dt
            truth = self._drawn(np.array(self.predict(truth, given, tuning)), given, tuning, rng)
            given[:s] = np.array(self.sense(truth, given, tuning)) + rng.normal(size=(s, runs)) * self.stddev[:, None]
            flat, y = (np.array(item) for item in self.step(flat, given, tuning))
            out = self.filter.outputs.arrays(y.T)
            nis += np.sum(out['innovation'] ** 2 / out['innovation_variance'], axis=1)
            e = np.array(self.error(truth, flat, given, tuning)).T
            nees.append(normalised(e, self._covariance(layout.arrays(flat.T)['P'])))
        return Consistency(np.mean(nees, axis=0), nees[-1], e.shape[1], nis / steps, s, steps)

    def _drawn(self, flat: np.ndarray, given: np.ndarray, tuning: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """States with a deviation drawn from their covariance, which is zero afterwards."""
        P = self._covariance(self.filter.state.arrays(flat.T)['P'])
        scale = np.sqrt(np.maximum(np.einsum('kii->ki', P), 1e-300))
        values, vectors = np.linalg.eigh(P / scale[:, :, None] / scale[:, None, :])
        deviates = rng.normal(size=P.shape[:2]) * np.sqrt(np.maximum(values, 0))
        flat = flat.copy()
        flat[self.filter.state.places['P']] = 0.0
        return np.array(self.settle(flat, (scale * np.einsum('kij,kj->ki', vectors, deviates)).T, given, tuning))

    def _covariance(self, P: np.ndarray) -> np.ndarray:
        """Of the independent coordinates and velocities, where the state holds all of them."""
        if not dependent(self.filter):
            return P
        places = [*self.problem.z, *(self.problem.n + i for i in self.problem.z)]
        return P[:, places][:, :, places]


def own_model(estimator: str, mechanism: str, sensors: Sequence[str], runs: int = 100, scale: float = 1.0) -> OwnModel:
    """A filter on a mechanism of the package or 'free_masses', with noises of the size of those of Naya et al., review;
    'joint' has the length of the crank."""
    source = parse_mechanism(MASSES) if mechanism == 'free_masses' else mechanism
    model = load_model(source, free=('crank',) if estimator == 'joint' else (), backend='vm')
    g, further = model.degrees_of_freedom, {'joint': [0.02], 'ADEKF': [20.0]}.get(estimator, [])
    walks = estimator in FORCED
    known = make_filter(estimator, problem(model, sensors)).noises
    noises = {**NOISES, 'acceleration': WALK if walks else NOISES['acceleration']}
    stddev = [0.02] * 2 * g + [0.5] * g * (estimator in (*FORCED, *OF_ACCELERATIONS))
    stddev += further * (1 if estimator == 'joint' else g) + [1e-3] * g * (estimator == 'errorEKF_FE_SH')
    start = 0.02 if size_of_all(estimator) else np.array(stddev)
    return OwnModel(model, estimator, sensors, {name: noises[name] for name in known}, start, runs, scale=scale)


def size_of_all(estimator: str) -> bool:
    """Whether a filter's state is of all coordinates."""
    return estimator in ('SCKF', 'DIEKFpm', 'CEKF_penalty')


def normalised(e: np.ndarray, P: np.ndarray) -> np.ndarray:
    """``e' P^-1 e`` (N,) of errors (N, l)."""
    scale = np.sqrt(np.einsum('kii->ki', P))
    correlation, e = P / scale[:, :, None] / scale[:, None, :], e / scale
    return np.einsum('ki,ki->k', e, np.linalg.solve(correlation, e[:, :, None])[:, :, 0])


def dependent(filter_: Filter) -> bool:
    """Whether the state is ``[q, qd]``."""
    return size_of_all(filter_.name)


def settled(filter_: Filter) -> ca.Function:
    """``(state, deviation, given, tuning) -> state`` moved by a deviation, its coordinates and force with it."""
    problem, g, n = filter_.problem, filter_.problem.g, filter_.problem.n
    state, given, tuning, symbols = _symbols(filter_)
    size = 2 * g if dependent(filter_) else filter_.state.parts['x'][0]
    dx = problem_kind(filter_).sym('dx', size)
    t, p, x, q = given['t'], parameters(filter_, state, tuning), state['x'], state['q']
    if dependent(filter_):
        z, zd = (ca.vertcat(*(x[start + i] for i in problem.z)) + dx[part] for start, part in (
            (0, slice(0, g)), (n, slice(g, 2 * g))))
        q = problem.close(q, z, t, p, 4)
        x = ca.vertcat(q, rates(problem, q, zd, given['u'], problem.zeros(g), t, p).qd)
    else:
        force = state.get('force', problem.zeros(g))
        at = rates(problem, q, x[g:2 * g], given['u'], force, t, p)
        moved = x + dx
        q = problem.close(q, moved[:g], t, parameters(filter_, {**state, 'x': moved}, tuning), 4)
        if filter_.name in FORCED:
            d = dx[2 * g:3 * g]
            if filter_.name == 'direct_FE':
                d = d - at.a @ dx[:g] - at.b @ dx[g:2 * g]
            new = rates(problem, q, moved[g:2 * g], given['u'], force, t, p)
            force = force + ca.solve(new.B[g:, -g:], d)
            after = rates(problem, q, moved[g:2 * g], given['u'], force, t, p)
            third = after.zdd if filter_.name == 'direct_FE' else problem.zeros(g)
            moved = ca.vertcat(moved[:2 * g], third, moved[3 * g:])
        if filter_.name == 'ADEKF':
            force = moved[2 * g:]
        x = moved
        state = {**state, **({'force': force} if 'force' in state else {})}
    return ca.Function('settled', [symbols[0], dx, *symbols[1:]], [filter_.state.pack(**{**state, 'x': x, 'q': q})])


def sensed(filter_: Filter) -> ca.Function:
    """``(state, given, tuning) -> h`` (s,), the sensors at a truth."""
    problem, g = filter_.problem, filter_.problem.g
    state, given, tuning, symbols = _symbols(filter_)
    p, force = parameters(filter_, state, tuning), state.get('force', problem.zeros(g))
    zd = velocities(filter_, state)
    zdd = rates(problem, state['q'], zd, given['u'], force, given['t'], p).zdd
    zdd = state['x'][2 * g:] if filter_.name in OF_ACCELERATIONS else zdd
    h = problem.sensors(state['q'], zd, zdd, ca.vertcat(given['u'], force), given['t'], p)[0]
    return ca.Function('sensed', symbols, [ca.densify(h)])


def errors(filter_: Filter) -> ca.Function:
    """``(truth, estimate, given, tuning) -> error`` in the coordinates of the covariance."""
    problem, g = filter_.problem, filter_.problem.g
    truth, given, tuning, symbols = _symbols(filter_)
    flat = problem_kind(filter_).sym('estimate', filter_.state.size)
    state = filter_.state.unpack(flat)
    e = truth['x'] - state['x']
    if dependent(filter_):
        e = ca.vertcat(*(e[i] for i in problem.z), *(e[problem.n + i] for i in problem.z))
    if filter_.name in FORCED:
        at = rates(problem, state['q'], state['x'][g:2 * g], given['u'], state['force'], given['t'], tuning['p'])
        third = at.B[g:, -g:] @ (truth['force'] - state['force'])
        if filter_.name == 'direct_FE':
            third = third + at.a @ e[:g] + at.b @ e[g:2 * g]
        e = ca.vertcat(e[:2 * g], third, e[3 * g:])
    return ca.Function('errors', [symbols[0], flat, *symbols[1:]], [e])


def velocities(filter_: Filter, state: Mapping[str, ca.SX]) -> ca.SX:
    """Independent velocities (g,) of a state."""
    problem, g = filter_.problem, filter_.problem.g
    if dependent(filter_):
        return ca.vertcat(*(state['x'][problem.n + i] for i in problem.z))
    return state['x'][g:2 * g]


def parameters(filter_: Filter, state: Mapping[str, ca.SX], tuning: Mapping[str, ca.SX]) -> ca.SX:
    """The model's parameters, with those that the state holds."""
    if filter_.parameters is None:
        return tuning['p']
    theta = state['x'][-len(filter_.parameters.names):]
    return filter_.parameters.function(theta, tuning['p'])[0]


def problem_kind(filter_: Filter) -> type:
    """SX or MX, as the filter's functions are."""
    return ca.SX if filter_.problem.scalar else ca.MX


def _symbols(filter_: Filter) -> tuple[dict, dict, dict, list]:
    layouts = (('state', filter_.state), ('given', filter_.given), ('tuning', filter_.tuning))
    symbols = [problem_kind(filter_).sym(name, layout.size) for name, layout in layouts]
    return *(layout.unpack(symbol) for (_, layout), symbol in zip(layouts, symbols)), symbols
