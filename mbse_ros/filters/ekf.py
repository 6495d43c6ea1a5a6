# SPDX-License-Identifier: Apache-2.0
"""Extended Kalman filters in independent coordinates: one shape, of which the papers' filters are choices. DEKF with
any transition, ADEKF with unknown input forces as random walks in its state (Naya et al., review, section 5, Pyrhönen
et al., state transition, section 4), and the error-state filters errorEKF, errorEKF_EJ, errorEKF_FE (sections 7.1-7.3).

Of an error-state filter the model runs by itself and the filter corrects it; as the error is zero before each
correction, the mean that is kept is the model's own state. ``biases``: channels or sensors whose bias is estimated too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import casadi as ca
import numpy as np

from ..errors import SettingError, check_choice
from .parts.all_coordinates import with_formulation
from .parts.model_step import ModelRates, advance, dropped, linearised, rates, stood_still
from .parts.problem import Problem
from .parts.step import Filter, Parts, build_filter
from .parts.update import block_matrix, constant_noise, correction, measured, propagation, widening

Jacobian = Callable[[ModelRates, ca.SX, ca.SX], ca.SX]       # (rates before the step, exact F of the motion, dt) -> F
HELD = ('force', 'acceleration')


@dataclass(frozen=True)
class EkfVariant:
    """What distinguishes one filter.

    ``motion``: transition of the mean (``model_step.TRANSITIONS``); ``jacobian``: transition of the covariance;
    ``force``: the acceleration error is a third block of the state and becomes a force on the model (Naya et al.,
    review, section 7.3); ``accelerations``: the sensors' derivative takes in that of the model's accelerations;
    ``actuators``: places of the inputs that the force acts along, else it acts along the independent coordinates;
    ``biases``: places of the channels whose bias is estimated too; ``held``: what of the force's model stays over a
    step ('force', or 'acceleration' as in Naya et al., review); ``correction`` of the dependent coordinates: by the
    position problem ('exact'), or by ``R dz`` ('linearised', its Eq. 76).
    """

    motion: str
    jacobian: Jacobian
    force: bool = False
    accelerations: bool = True
    actuators: tuple[int, ...] = ()
    biases: tuple[int, ...] = ()
    held: str = 'force'
    correction: str = 'exact'

    def __post_init__(self) -> None:
        check_choice('correction', self.correction, ('exact', 'linearised'))


def ekf(name: str, problem: Problem, choice: EkfVariant) -> Filter:
    """Filter of a choice. The mean is ``[z, zd]`` or ``[z, zd, dzdd]`` with the acceleration error ``dzdd`` that the
    force along z corrects; noise ``acceleration`` (g,): density of the acceleration, m2/s3 or rad2/s3, or of the random
    walk of its error, m2/s5 or rad2/s5. Biases (r,) of channels follow in the mean, with the noise ``bias_walk`` (r,),
    density of their random walk, in the channel's unit squared a second."""
    g, blocks, r = problem.g, 3 if choice.force else 2, len(choice.biases)
    own, size = g * blocks, g * blocks + r
    noise, update = constant_noise(g, blocks), correction(size, problem.angular, g)
    spread_out = propagation(size)

    def predict(state: Parts, given: Parts, tuning: Parts) -> Parts:
        ahead, F = run_model(problem, choice, state, given, tuning)
        Sigma, x = along(ahead, noise(tuning['acceleration'], tuning['dt'])), error_mean(problem, ahead, blocks)
        if r:
            F, x = ca.diagcat(F, type(F).eye(r)), ca.vertcat(x, state['x'][own:])
            Sigma = ca.diagcat(Sigma, ca.diag(tuning['bias_walk']) * tuning['dt'])
        P = spread_out(ca.densify(F), state['P'], ca.densify(Sigma))
        step = {} if choice.force else {'F': F}      # an error that becomes a force does not stay in the mean
        return {**state, **ahead, **step, 'x': x, 'P': P}

    def correct(state: Parts, given: Parts, tuning: Parts) -> Parts:
        h, H = observe(problem, choice, state, given, tuning)
        if r:
            h, H = h + shown @ state['x'][own:], ca.horzcat(H, shown)
        x, P, *innovations = update(state['x'], state['P'], given['o'], h, H, tuning['variance'], tuning['gate'])
        return {**feed_back(problem, choice, state, x, given, tuning),
                **trusted(state, given, tuning, P, *innovations)}

    shown = ca.DM(np.eye(len(problem.channels))[:, list(choice.biases)])
    noises = {'acceleration': g} | ({'bias_walk': r} if r else {})
    forces = force_names(problem, choice)
    built = build_filter(name, problem, size, noises, predict, correct,
                         {'force': (len(forces), 1), 'doubt': (len(problem.channels), 1)}, forces=forces)
    return replace(built, biases=tuple(problem.channels[k] for k in choice.biases))


def run_model(problem: Problem, choice: EkfVariant, state: Parts, given: Parts, tuning: Parts) -> tuple[Parts, ca.SX]:
    """Coordinates ``q``, independent velocities ``zd`` and ``force`` one step later, ``lost`` (g,) and ``added`` of
    ``standstill``, and the transition ``F`` of P."""
    g, dt, p = problem.g, tuning['dt'], tuning['p']
    q, zd, (u, force) = state['q'], state['x'][g:2 * g], driven(problem, choice, given['u'], state['force'])
    before = rates(problem, q, zd, u, force, given['t'] - dt, p)
    ahead, zd, F = advance(problem, choice.motion, q, zd, u, force, given['t'], dt, p)
    F = choice.jacobian(before, F, dt)
    P = state['P'][:F.size1(), :F.size1()]
    lost, ahead, zd, F, added = stood_still(problem, P, q, ahead, zd, F, given['t'], dt, p)
    ahead = {'q': ahead, 'zd': zd, 'force': state['force'], 'lost': lost, 'added': added}
    if not choice.force:
        return ahead, F
    after = rates(problem, ahead['q'], zd, u, force, given['t'], p)
    if not choice.actuators:
        F = kept_force(F, before, after) if choice.held == 'force' else F
        return _without_old_force(ahead, lost, after.B[g:, -g:]), F
    function, chosen, eye = on_actuators(g, len(choice.actuators)), list(choice.actuators), type(F).eye(2 * g)
    G, onto = function(before.B[g:, -g:], before.B[g:, chosen])
    kept = ca.horzcat(type(F)(g, 2 * g), after.B[g:, chosen] @ G)
    F = ca.densify(ca.vertcat(F[:2 * g, :] @ ca.diagcat(eye, onto), kept))
    gone = ca.repmat(ca.fmin(ca.sum1(lost), 1.0), len(chosen))
    ahead = _without_old_force(ahead, gone, after.B[g:, chosen])
    return {**ahead, 'onto': ca.diagcat(eye, function(after.B[g:, -g:], after.B[g:, chosen])[1])}, F


def _without_old_force(ahead: Parts, gone: ca.SX, B: ca.SX) -> Parts:
    """The prediction without the forces that are ``gone``, whose accelerations are by B."""
    force, added = dropped(*B.shape, 3 * B.size1(), 2 * B.size1())(gone, ahead['force'], B)
    return {**ahead, 'force': force, 'added': ahead['added'] + added}


def kept_force(F: ca.SX, before: ModelRates, after: ModelRates) -> ca.SX:
    """Transition ``F`` (3g, 3g) with ``Mbar+^-1 Mbar`` as its last block: over a step the force stays and not the
    acceleration that it makes, as the identity of Naya et al., review (the covariance is then 15 % too small on a
    four-bar linkage with an encoder)."""
    g = before.zd.numel()
    kept = carried(g)(before.B[g:, -g:], after.B[g:, -g:])
    return ca.densify(ca.vertcat(F[:2 * g, :], ca.horzcat(F[2 * g:, :2 * g], kept)))


def carried(g: int) -> ca.Function:
    """``(Mbar^-1 before, after) -> Mbar^-1 after Mbar before``."""
    before, after = ca.SX.sym('before', g, g), ca.SX.sym('after', g, g)
    kept = ca.solve(before.T, after.T).T if g > 1 else after / before
    return ca.Function('carried', [before, after], [ca.densify(kept)])


def driven(problem: Problem, choice: EkfVariant, u: ca.SX, force: ca.SX) -> tuple[ca.SX, ca.SX]:
    """Inputs and force (g,) along the independent coordinates, of which one contains the filter's force."""
    if not choice.actuators:
        return u, force
    places = ca.DM(np.eye(u.numel())[:, list(choice.actuators)])
    return u + places @ force, problem.zeros(problem.g)


def along(ahead: Parts, Sigma: ca.SX) -> ca.SX:
    """Plant noise whose acceleration error keeps to what the actuators can do, and that of coordinates held still."""
    return (ahead['onto'] @ Sigma @ ahead['onto'].T if 'onto' in ahead else Sigma) + ahead['added']


def force_names(problem: Problem, choice: EkfVariant) -> tuple[str, ...]:
    """What the filter's force is along: inputs, or independent coordinates."""
    return tuple([problem.model.inputs[i] for i in choice.actuators] or [problem.system.names[i] for i in problem.z])


def actuator_places(problem: Problem, actuators: Sequence[str]) -> tuple[int, ...]:
    """Places of inputs among the model's; raises SettingError."""
    inputs = list(problem.model.inputs)
    for name in actuators:
        if name not in inputs or len(set(actuators)) < len(actuators) or len(actuators) > problem.g:
            raise SettingError('actuators', list(actuators), f'up to {problem.g} different inputs of '
                               + (', '.join(inputs) or 'a mechanism that has some'))
    return tuple(inputs.index(name) for name in actuators)


def bias_places(problem: Problem, biases: Sequence[str]) -> tuple[int, ...]:
    """Places of channels, by their names or those of their sensors, each once; raises SettingError."""
    found = []
    for name in biases:
        places = [k for k, channel in enumerate(problem.channels) if name in (channel, channel.partition('.')[0])]
        if not places:
            raise SettingError('biases', name, 'channels or sensors among ' + ', '.join(problem.channels))
        found += places
    return tuple(dict.fromkeys(found))


def error_mean(problem: Problem, ahead: Parts, blocks: int) -> ca.SX:
    """The model's own state as the mean; the acceleration error is zero, for its estimate is in the force already."""
    rest = [problem.zeros(problem.g)] * (blocks - 2)
    return ca.vertcat(problem.independent(ahead['q']), ahead['zd'], *rest)


def observe(problem: Problem, choice: EkfVariant, state: Parts, given: Parts, tuning: Parts) -> tuple[ca.SX, ca.SX]:
    """Sensors (s,) of the predicted state and their derivative (s, 2g or 3g)."""
    g, q, t, p = problem.g, state['q'], given['t'], tuning['p']
    u, force = driven(problem, choice, given['u'], state['force'])
    zd = state['x'][g:2 * g]
    at = rates(problem, q, zd, u, force, t, p)
    h, H_z, H_zd, H_zdd = problem.sensors(q, zd, at.zdd, ca.vertcat(u, force), t, p)
    H = ca.horzcat(H_z, H_zd)
    if choice.accelerations:
        H = H + H_zdd @ ca.horzcat(at.a, at.b)
    return h, ca.horzcat(H, H_zdd) if choice.force else H


def feed_back(problem: Problem, choice: EkfVariant, state: Parts, x: ca.SX, given: Parts, tuning: Parts) -> Parts:
    """State and outputs after the correction of the mean: the model is moved, and given the force of its error
    ``Mbar dzdd`` (Naya et al., review, Eq. 80)."""
    g, force, t, p = problem.g, state['force'], given['t'], tuning['p']
    move, zd = problem.close if choice.correction == 'exact' else partial(linearised, problem), x[g:2 * g]
    q = move(state['q'], x[:g], t, p)
    if choice.force:
        force = force + force_change(problem, choice, q, zd, x[2 * g:3 * g], force, given, tuning)
    now = rates(problem, q, zd, *driven(problem, choice, given['u'], force), t, p)
    return {'x': x, 'q': q, 'force': force, 'qd': now.qd, 'qdd': now.qdd}


def force_change(problem: Problem, choice: EkfVariant, q: ca.SX, zd: ca.SX, error: ca.SX, force: ca.SX, given: Parts,
                 tuning: Parts) -> ca.SX:
    """Force that makes up for an acceleration error (g,), along the independent coordinates or the actuators."""
    g, u = problem.g, driven(problem, choice, given['u'], force)
    B = rates(problem, q, zd, *u, given['t'], tuning['p']).B[g:, :]
    if not choice.actuators:
        return force_of(g)(B[:, -g:], error)
    return on_actuators(g, len(choice.actuators))(B[:, -g:], B[:, list(choice.actuators)])[0] @ error


def on_actuators(g: int, number: int) -> ca.Function:
    """``(Mbar^-1, B) -> (G, B G)`` with ``B = Mbar^-1 D`` of actuators that act along D (g, number).

    ``G = (D' Mbar^-1 D)^-1 D'`` gives the actuators' forces whose accelerations are nearest to an error, in the metric
    of Mbar; ``B G`` is what of the error they explain.
    """
    inverse, B = ca.SX.sym('inverse', g, g), ca.SX.sym('B', g, number)
    D = ca.solve(inverse, B) if g > 1 else B / inverse
    G = ca.solve(D.T @ B, D.T) if number > 1 else D.T / (D.T @ B)
    return ca.Function('on_actuators', [inverse, B], [ca.densify(G), ca.densify(B @ G)])


def force_of(g: int) -> ca.Function:
    """``(Mbar^-1, dzdd) -> Mbar dzdd``."""
    inverse, error = ca.SX.sym('inverse', g, g), ca.SX.sym('error', g)
    return ca.Function('force_of', [inverse, error], [ca.solve(inverse, error) if g > 1 else error / inverse])


def trusted(state: Parts, given: Parts, tuning: Parts, P: ca.SX, *innovations: ca.SX) -> Parts:
    """``P``, wider where the samples contradict the estimate, for how long they do (``doubt``), and ``measured``."""
    doubt, factor = widening(given['o'].numel())(state['doubt'], given['o'], innovations[2], tuning['dt'])
    return {'P': P * factor, 'doubt': doubt, **measured(*innovations)}


def simple(before: ModelRates, _: ca.SX, dt: ca.SX) -> ca.SX:
    """``[[I, dt I], [0, I]]`` (Naya et al., review, Eq. 50)."""
    return block_matrix(type(before.A), [[1.0, dt], [0.0, 1.0]], before.zd.numel())


def exact_jacobian(a: ca.SX, b: ca.SX, dt: ca.SX) -> list[list[ca.SX]]:
    """Blocks ``[[I + a dt^2/2, I dt + b dt^2/2], [a dt, I + b dt]]`` (Naya et al., review, section 7.2)."""
    eye = type(a).eye(a.size1())
    return [[eye + a * (dt ** 2 / 2), eye * dt + b * (dt ** 2 / 2)], [a * dt, eye + b * dt]]


def error_ekf(problem: Problem, motion: str = 'trapezoid', biases: Sequence[str] = (), correction: str = 'exact',
              formulation: str = 'matrix_r', alpha: float | None = None) -> Filter:
    """errorEKF: simple transition of the covariance, no derivative of the accelerations. ``formulation`` of the model,
    with ``alpha`` of the penalty: see ``with_formulation``, also for the next two. Raises SettingError."""
    problem = with_formulation(problem, formulation, motion, alpha)
    return ekf('errorEKF', problem, EkfVariant(motion, simple, accelerations=False,
                                               biases=bias_places(problem, biases), correction=correction))


def error_ekf_ej(problem: Problem, motion: str = 'trapezoid', biases: Sequence[str] = (), correction: str = 'exact',
                 formulation: str = 'matrix_r', alpha: float | None = None) -> Filter:
    """errorEKF_EJ: with the exact Jacobian of the accelerations."""
    problem = with_formulation(problem, formulation, motion, alpha)
    return ekf('errorEKF_EJ', problem,
               EkfVariant(motion, with_jacobian, biases=bias_places(problem, biases), correction=correction))


def error_ekf_fe(problem: Problem, motion: str = 'trapezoid', actuators: Sequence[str] = (),
                 biases: Sequence[str] = (), held: str = 'force', correction: str = 'exact',
                 formulation: str = 'matrix_r', alpha: float | None = None) -> Filter:
    """errorEKF_FE: with the acceleration error as a state, kept as a force on the model.

    ``actuators``: inputs that alone may be in error; the force is one of each, N or N m, and so are the accelerations'
    error and its noise. ``held``: what stays over a step in the covariance: the 'force', as it does in the mean, or the
    'acceleration' that it makes, the identity of Naya et al., review. Raises SettingError.
    """
    if held not in HELD or held != 'force' and actuators:
        raise SettingError('held', held, 'force, or acceleration without actuators')
    problem = with_formulation(problem, formulation, motion, alpha)
    return ekf('errorEKF_FE', problem,
               EkfVariant(motion, with_force, True, actuators=actuator_places(problem, actuators),
                          biases=bias_places(problem, biases), held=held, correction=correction))


def with_jacobian(before: ModelRates, _: ca.SX, dt: ca.SX) -> ca.SX:
    """``[[I + a dt^2/2, I dt + b dt^2/2], [a dt, I + b dt]]``."""
    return block_matrix(type(before.A), exact_jacobian(before.a, before.b, dt), before.zd.numel())


def with_force(before: ModelRates, _: ca.SX, dt: ca.SX) -> ca.SX:
    """``[[I + a dt^2/2, I dt + b dt^2/2, I dt^2/2], [a dt, I + b dt, I dt], [0, 0, I]]``."""
    (top, middle), eye = exact_jacobian(before.a, before.b, dt), type(before.A).eye(before.zd.numel())
    rows = [[*top, eye * (dt ** 2 / 2)], [*middle, eye * dt], [0.0, 0.0, 1.0]]
    return block_matrix(type(before.A), rows, before.zd.numel())


def dekf(problem: Problem, transition: str = 'forward_euler', biases: Sequence[str] = ()) -> Filter:
    """DEKF; with 'forward_euler' (Naya et al., review) and 'augmented_euler' the covariance follows ``[[I, dt I], [0,
    I]]``, with the exponential ones (Pyrhönen et al., state transition) the exact Jacobian, which sees what the simple
    one is blind to. ``biases``: channels or sensors whose bias is estimated too."""
    return ekf('DEKF', problem, EkfVariant(transition, _jacobian(transition), biases=bias_places(problem, biases)))


def _jacobian(transition: str) -> Jacobian:
    """Transition of the covariance: the simple one, or that of the motion."""
    return simple if transition in ('forward_euler', 'augmented_euler') else lambda _, F, dt: F


def adekf(problem: Problem, transition: str = 'forward_euler') -> Filter:
    """ADEKF with the state ``[z, zd, force]``, the force (g,) along the independent coordinates, N or N m.

    Noises: ``acceleration`` (g,), density of the acceleration; ``force_walk`` (g,), density of the force's random walk,
    N2/s or N2 m2/s. ``transition`` as in the DEKF; with 'forward_euler' the force moves positions only in the
    next step, mean and covariance alike; with the others it enters to second order in dt.
    """
    g = problem.g
    noise, walk = constant_noise(g, 2), constant_noise(g, 1)
    choice = EkfVariant(transition, _jacobian(transition))
    update, spread_out = correction(3 * g, problem.angular, g), propagation(3 * g)

    def predict(state: Parts, given: Parts, tuning: Parts) -> Parts:
        x, dt, p = state['x'], tuning['dt'], tuning['p']
        zd, force = x[g:2 * g], x[2 * g:]
        before = rates(problem, state['q'], zd, given['u'], force, given['t'] - dt, p)
        q, zd, F = advance(problem, transition, state['q'], zd, given['u'], force, given['t'], dt, p)
        F, lift = choice.jacobian(before, F, dt), before.B[g:, -g:]
        onto = 0.0 * lift if transition == 'forward_euler' else lift * (dt ** 2 / 2)
        F = block_matrix(type(lift), [[F[:g, :g], F[:g, g:], onto], [F[g:, :g], F[g:, g:], lift * dt], [0.0, 0.0, 1.0]],
                         g)
        lost, q, zd, F, added = stood_still(problem, state['P'], state['q'], q, zd, F, given['t'], dt, p)
        force, gone = dropped(g, g, 3 * g, 2 * g)(lost, force, type(lift).eye(g))
        Sigma = ca.diagcat(noise(tuning['acceleration'], dt), walk(tuning['force_walk'], dt)) + added + gone
        P = spread_out(F, state['P'], Sigma)
        return {'x': ca.vertcat(problem.independent(q), zd, force), 'P': P, 'q': q, 'force': force, 'F': F,
                'doubt': state['doubt']}

    def correct(state: Parts, given: Parts, tuning: Parts) -> Parts:
        h, H = observe(problem, choice, state, given, tuning)
        H = ca.horzcat(H, _by_force(problem, state, given, tuning))
        x, P, *innovations = update(state['x'], state['P'], given['o'], h, H, tuning['variance'], tuning['gate'])
        moved = feed_back(problem, choice, {**state, 'force': x[2 * g:]}, x, given, tuning)
        return {**moved, **trusted(state, given, tuning, P, *innovations)}

    return build_filter('ADEKF', problem, 3 * g, {'acceleration': g, 'force_walk': g}, predict, correct,
                        {'force': (g, 1), 'doubt': (len(problem.channels), 1)})


def _by_force(problem: Problem, state: Parts, given: Parts, tuning: Parts) -> ca.SX:
    """Derivative (s, g) of the sensors by the force, through the accelerations."""
    g, q, zd, force = problem.g, state['q'], state['x'][problem.g:2 * problem.g], state['force']
    at = rates(problem, q, zd, given['u'], force, given['t'], tuning['p'])
    return problem.sensors(q, zd, at.zdd, ca.vertcat(given['u'], force), given['t'], tuning['p'])[3] @ at.B[g:, -g:]
