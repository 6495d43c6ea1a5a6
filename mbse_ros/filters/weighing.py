# SPDX-License-Identifier: Apache-2.0
"""The force balance as a measurement of motion, mass and, where the load's centre is uncertain, of its moments.

An inverse dynamics that takes the observer's acceleration as it is has the same error in both factors of the mass's
lever, and comes out too low (errors in variables). Here accelerations, pressures and mass give way to each other as far
as their covariance says, and the motion gains as much as the mass: forces over inertia give an acceleration
that the derivatives of positions hardly show.

Friction near standstill is anything between two bounds, and the same for a while: its error is followed like that of
an uncertain number (Schmidt's consider parameter), which is forgotten in ``HELD``. As white noise it would be trusted
too much or make the motion blind. It gives no information on the mass, unless that is known worse still: then the mass
takes the equation once, with the friction as its error. An uncertain number has a constant error: mass and moments
take less from an equation that depends much on such (a bucket's friction, where its inertia is small). At an end of a
stroke the stop carries what it likes: there the equations of that cylinder carry no information.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import casadi as ca
import numpy as np

from ..compiled.lanes import WIDTH
from ..machine import Machine
from ..transition.noise import symmetric
from .force_balance import ForceBalance, force_balance
from .hydraulic_model import HydraulicModel

HELD = 0.1          # s for which the friction near standstill stays the same
KNOWN = 0.99        # square of the friction's mean sign from which the mass uses it
STILL_KNOWN = 0.8   # ... and down to which it continues to
MARGIN = 0.02       # of a coordinate's range, beyond which the balance is not linearised
LASTING = 300.0     # s for which the centre of a load that is known stays the same
UNKNOWN = 0.1       # s, of one that is not
FAR = 3.0           # of the file's standard deviations of the centre, from which it is another load's
WIDE = 1.2          # the same of its uncertainty
LEAST = 0.02        # of the range of the payload's limits, from which a load has a centre
PAUSES = 0.1        # s of a pause of all sensors, after which 1/e of what is known of a load counts: it may change
CONSTANT = 0.5      # s for which the mass takes the errors of uncertain numbers to be the same
END = 0.005         # m from an end of the stroke, where the stop may carry the piston, if its damper is not longer
NOTHING = 1e12      # factor on variances of an equation without information


def frictions(machine: Machine, model: HydraulicModel) -> int:
    """How many frictions near standstill the observer follows besides: where it weighs, that of each actuator."""
    return len(machine.actuators) if model.weighs else 0


def mass_numbers(machine: Machine, model: HydraulicModel) -> int:
    """How many numbers tell an observer whether the load changes: see ``activity`` and ``trend`` of MassInformation."""
    return 2 + len(model.consider(machine)) if model.weighs else 0


def held_columns(machine: Machine, model: HydraulicModel) -> slice:
    """Columns of the derivatives that belong to these frictions: the last, after those of the uncertain numbers."""
    first = len(model.consider(machine))
    return slice(first, first + frictions(machine, model))


def consider_jacobian(machine: Machine, model: HydraulicModel, expression: ca.SX, z: ca.SX | None = None,
                jacobian: Callable[[ca.SX, ca.SX], ca.SX] = ca.jacobian) -> ca.SX:
    """Derivatives of an expression (m,) by what is uncertain (m, k), for one standard deviation of each: numbers, then
    frictions near standstill, which are in the force balance alone.

    What depends on them along the loops counts: through the mechanism's q, or, at a position ``z`` (g,), through the
    dependent coordinates of the model.
    """
    places, held = model.consider(machine), ca.SX(expression.numel(), frictions(machine, model))
    if not places:
        return held
    system, numbers = machine.system, machine.parameters.symbol[places]
    moved, q = -machine.reduced.S @ ca.jacobian(system.Phi, numbers), system.q      # of q, the independent ones held
    if z is not None:
        q = model.dependent
        moved = ca.substitute(moved[system.dependent, :], system.q, machine.joined(q, z)) if q.numel() else moved[:0, :]
    slopes = jacobian(expression, numbers) + jacobian(expression, q) @ moved
    return ca.horzcat(slopes @ ca.sparsify(ca.DM(machine.parameters.factor(places))), held)


def forgotten(machine: Machine, model: HydraulicModel, P: ca.SX, T: ca.SX, dt: ca.SX) -> tuple[ca.SX, ca.SX]:
    """Covariance (nx, nx) and derivatives (nx, k) after ``dt``, s, in which the frictions near standstill change.

    What the part of a friction that is gone has done to the state is an error like any other from then on.
    """
    count = frictions(machine, model)
    if not count:
        return P, T
    kept, held = ca.exp(-dt / HELD), T[:, -count:]
    return P + (1 - kept ** 2) * symmetric(held @ held.T), ca.horzcat(T[:, :-count], kept * held)


def relaxed(machine: Machine, model: HydraulicModel, X: ca.SX, P: ca.SX, T: ca.SX, dt: ca.SX
            ) -> tuple[ca.SX, ca.SX, ca.SX]:
    """State, covariance and derivatives after ``dt``, s, in which the moments about the centre of the file go back
    towards 0, with the deviation that the file gives the centre, as an Ornstein-Uhlenbeck process: soon where the mass
    is not known, or where they are those of no load of this mass, else slowly.

    Moments, and not the centre, are in the state, since forces are linear in them: a load that is dropped would
    else be taken for one that has moved.
    """
    moments = list(range(X.numel() - model.unknowns, X.numel() - 1))
    if not moments:
        return X, P, T
    low, high = machine.payload_data.limits
    mass = ca.fmin(ca.fmax(X[-1], LEAST), high / (high - low))
    far = [ca.logic_or(ca.fabs(X[k]) > FAR * mass, P[k, k] > (WIDE * mass) ** 2) for k in moments]
    lost = ca.fmax(ca.fmin((P[-1, -1] / mass ** 2) ** 2, 1), ca.mmax(ca.vertcat(*far)))
    kept = ca.exp(-(1 / LASTING + lost / UNKNOWN) * dt)
    D = ca.SX.ones(X.numel())
    D[moments] = kept
    P = P * (D @ D.T)
    for k in moments:
        P[k, k] = P[k, k] + (1 - kept ** 2) * mass ** 2
    return X * D, P, T * ca.repmat(D, 1, T.shape[1])


@dataclass(frozen=True)
class LinearBalance:
    """The force balance of a step as a measurement, linearised at ``start`` (nx,), in the model's units.

    Residuals ``g`` (a,), their derivatives ``H`` (a, nx), their variances ``R`` (a,), ``sure`` (a,), the least square
    of a mean sign of friction in each, ``grip`` (a,), squares of the largest friction, ``slopes`` (a, k) by what is
    uncertain.
    """

    start: ca.SX
    g: ca.SX
    H: ca.SX
    R: ca.SX
    sure: ca.SX
    grip: ca.SX
    slopes: ca.SX

    @property
    def column(self) -> ca.SX:
        """All its numbers."""
        return ca.vertcat(*(ca.vec(part.T).nz[:] for part in self._parts()))

    def at(self, column: ca.SX) -> LinearBalance:
        """The same of numbers from elsewhere."""
        found, first = [], 0
        for part in self._parts():
            pattern = part.T.sparsity()
            found.append(ca.SX(pattern, column[first:first + pattern.nnz()]).T)
            first += pattern.nnz()
        return LinearBalance(*found)

    def _parts(self) -> tuple[ca.SX, ...]:
        return self.start, self.g, self.H, self.R, self.sure, self.grip, self.slopes


def _start(machine: Machine, model: HydraulicModel, X: ca.SX) -> ca.SX:
    """Where the force balance is linearised: within the machine's range, and at a mass within the payload's limits, as
    at a negative one its inertia could turn negative."""
    lowest, highest = (limit / model.scale[-1] for limit in machine.payload_data.limits)
    count = len(machine.coordinates)
    return ca.vertcat(within(machine, X[:count]), X[count:-1], ca.fmin(ca.fmax(X[-1], lowest), highest))


def directions(machine: Machine) -> np.ndarray:
    """Unit directions (a, w) among the equations of the force balance, with zeros so that there are as many as C has
    lanes."""
    count = len(machine.weighing)
    return np.eye(count, max(count, WIDTH))


def steep(machine: Machine, model: HydraulicModel, X: ca.SX, P: ca.SX, near: ca.SX, along: ca.SX
          ) -> tuple[ca.SX, ca.SX]:
    """Residuals (a,) of the force balance at a state as in ``balanced``, SI, and their derivatives (w, n + nx + k) by
    the mechanism's q, the state and the uncertain numbers ``along`` (a, w) directions.

    For directions that are not known yet all rows are the same sums of the same products, so that compiled C takes
    them in lanes, in half the work of each equation for itself; with the same bits.
    """
    scale = ca.SX(model.scale)
    return _steep(machine, model, _start(machine, model, X) * scale, P * (scale @ scale.T), near, along)


def balanced(machine: Machine, model: HydraulicModel, X: ca.SX, P: ca.SX, near: ca.SX, force_psd: ca.SX, dt: ca.SX,
             found: tuple[ca.SX, ca.SX]) -> LinearBalance:
    """The force balance of a step ``dt``, s, at a state (nx,) with its covariance, in the model's units.

    ``near``: dependent coordinates there; ``force_psd`` (a,) or (1,), MPa^2 s, density of the balance's error;
    ``found``: of ``steep`` there.
    """
    scale, start = ca.SX(model.scale), _start(machine, model, X)
    g, H, R, sure, grip, slopes = _terms(machine, model, start * scale, P * (scale @ scale.T), near, force_psd, dt,
                                         found)
    return LinearBalance(start, g, ca.sparsify(H @ ca.diag(scale)),
                         *(ca.densify(part) for part in (R, sure, grip, slopes)))


def weighed(machine: Machine, model: HydraulicModel, X: ca.SX, P: ca.SX, T: ca.SX, balance: LinearBalance, moved: ca.SX,
            dt: ca.SX, slow: ca.SX | float = 0.0) -> tuple[ca.SX, ca.SX, ca.SX, ca.SX, ca.SX, ca.SX, ca.SX]:
    """State (nx,), covariance and derivatives (nx, k) by what is uncertain, in the model's units, after the force
    balance of a step ``dt``, s; its residuals (a,) over their standard deviations, and how far from 0 what is uncertain
    makes these; whether any equation says something of the mass; in which (a,) the pistons move.

    ``moved`` (a,): in which the pistons moved a step before; ``slow`` (a,): by what the mass takes the variances of the
    balance more than once, see ``force_error``. Of the covariance the lower triangle is exact, the upper
    one the same except for rounding.
    """
    start, g, H, R, sure, grip, slopes = balance._parts()
    slower = ca.SX.ones(g.numel()) * slow
    ratios, biased, says = [], [], []
    # a base that is not level is as wrong in every equation: to take less of them all would only take longer
    names = [machine.parameters.names[place] for place in model.consider(machine)]
    held = held_columns(machine, model)
    differ = [k for k, name in enumerate(names) if not name.startswith('base.')]
    known, c = ca.logic_or(sure > KNOWN, ca.logic_and(moved > 0.5, sure > STILL_KNOWN)), model.unknowns
    for i in range(g.numel()):
        column = P @ H[i, :].T
        variance, error = H[i, :] @ column + R[i], -(g[i] + H[i, :] @ (X - start))
        # at rest friction hides a mass that is known no better
        hidden = ca.logic_and(ca.logic_not(known[i]), H[i, -1] ** 2 * P[-1, -1] >= grip[i])
        counts = ca.logic_not(hidden)
        rough = ca.vertcat(ca.SX.zeros(c - 1), hidden * column[-1] / (variance + grip[i]))    # of the mass alone, once
        seen = H[i, :] @ T + slopes[i, :]
        doubt = ca.sumsqr((seen - H[i, -c:] @ T[-c:, :])[differ]) * CONSTANT / dt + slower[i] * R[i]
        gain, share = counts * column / variance, known[i] * variance / (variance + doubt)
        load = P[-c:, -c:] - share * (2 - share) * gain[-c:] @ column[-c:].T - rough @ column[-c:].T
        whole = ca.vertcat(gain[:-c], gain[-c:] + rough)
        P, gain[-c:] = P - whole @ column.T, share * gain[-c:] + rough
        P[-c:, -c:], P[:-c, -c:] = ca.tril2symm(ca.tril(load)), P[-c:, :-c].T     # its last rows are the payload's
        X, T = X + gain * error, T - gain @ seen
        T[-c:, held] = T[-c:, held] + rough @ seen[held]    # that friction is in its variance
        ratios.append(counts * error / ca.sqrt(variance))
        biased.append(counts * ca.sqrt(ca.sumsqr(seen[0, :held.start]) / variance))
        says.append(ca.logic_or(known[i], hidden))
    return X, P, T, ca.vertcat(*ratios), ca.vertcat(*biased), ca.mmax(ca.vertcat(*says)), known


def free_of_stops(machine: Machine, balance: ForceBalance) -> ca.SX:
    """1 for each equation (a,) whose pistons are all off the ends of their strokes, else 0."""
    edge = ca.DM([max(END, length) for length in machine.actuators.ends])
    inside = ca.logic_and(balance.pistons > machine.stroke[:, 0] + edge, balance.pistons < machine.stroke[:, 1] - edge)
    return ca.vertcat(*(ca.mmin(inside[own.nonzero()[0].tolist()]) for own in balance.concerns))


def within(machine: Machine, z: ca.SX) -> ca.SX:
    """The position (g,) that is nearest to ``z`` and in the machine's range or little outside."""
    low, high = (ca.SX(limit) for limit in machine.range.T)
    return ca.fmin(ca.fmax(z, low - MARGIN * (high - low)), high + MARGIN * (high - low))


def _residuals(machine: Machine, model: HydraulicModel) -> tuple[ForceBalance, ca.SX, ca.SX]:
    """The force balance, its residuals (a,) with the moments about the load's centre, and what they depend on."""
    balance, parameters = force_balance(machine, model.names, True, True), machine.parameters.symbol
    center = list(machine.parameters.center.values())
    moments = ca.jacobian(ca.jacobian(balance.g, machine.payload), parameters[center])      # by those
    g = ca.substitute(balance.g, machine.payload, balance.X[-1]) + moments @ balance.X[-model.unknowns:-1]
    return balance, g, ca.vertcat(machine.system.q, balance.X, parameters[model.consider(machine)])


def _steep(machine: Machine, model: HydraulicModel, X: ca.SX, P: ca.SX, near: ca.SX, along: ca.SX
           ) -> tuple[ca.SX, ca.SX]:
    """The same at a state in SI."""
    balance, g, by = _residuals(machine, model)
    directed = ca.SX.sym('directions', *along.shape)
    slopes = ca.Function('slopes', [*_at(machine, balance), balance.deviation, directed],
                         [g, ca.jtimes(g, by, directed, True).T], {'cse': True})
    return slopes(*_here(machine, X, near), _deviation(machine, balance, X, P, near), along)


def _at(machine: Machine, balance: ForceBalance) -> list[ca.SX]:
    return [machine.system.q, balance.X, machine.parameters.symbol]


def _here(machine: Machine, X: ca.SX, near: ca.SX) -> list[ca.SX]:
    return [machine.joined(near, X[:len(machine.coordinates)]), X, machine.parameters.symbol]


def _deviation(machine: Machine, balance: ForceBalance, X: ca.SX, P: ca.SX, near: ca.SX) -> ca.SX:
    """Standard deviations (actuators,) of the pistons' speeds."""
    rates = ca.Function('rates', _at(machine, balance), [ca.densify(balance.rates)], {'cse': True})(
        *_here(machine, X, near))
    return ca.sqrt(ca.sum2((rates @ P) * rates))


def _terms(machine: Machine, model: HydraulicModel, X: ca.SX, P: ca.SX, near: ca.SX, force_psd: ca.SX, dt: ca.SX,
           found: tuple[ca.SX, ca.SX]) -> tuple[ca.SX, ca.SX, ca.SX, ca.SX, ca.SX, ca.SX]:
    """Residuals (a,), their derivatives (a, nx), their variances (a,), the least square of a mean sign of
    friction in each, squares of the largest friction in them (a,), and their derivatives (a, k) by what is
    uncertain; SI; ``found``: of ``_steep`` there."""
    (balance, g, by), count = _residuals(machine, model), len(machine.coordinates)
    steepness = ca.SX.sym('steepness', by.numel(), g.numel())
    ends = np.cumsum([0, machine.system.q.numel(), balance.X.numel(), len(model.consider(machine))]).tolist()
    by_q, H, by_numbers = (ca.project(part.T, ca.jacobian_sparsity(g, of)) for part, of in zip(
        ca.vertsplit(steepness, ends), ca.vertsplit(by, ends)))
    H[:, :count] = H[:, :count] + by_q @ machine.reduced.R
    noise = ca.SX.sym('force_psd', *force_psd.shape), ca.SX.sym('dt')
    R = ca.sum2((balance.levers @ ca.diag(machine.actuators.units)) ** 2) * noise[0] / noise[1]
    sure = ca.vertcat(*(ca.mmin(balance.signs[own.nonzero()[0].tolist()] ** 2) for own in balance.concerns))
    slopes = ca.densify(consider_jacobian(machine, model, g, None, lambda _, of: (
        by_q if of is machine.system.q else by_numbers)))
    grip = ca.sum2(balance.levers ** 2 @ balance.bounds ** 2)
    free = free_of_stops(machine, balance)
    held = ca.if_else(free, 1, NOTHING)
    R, grip, sure = R * held, grip * held, sure * free
    slopes[:, -frictions(machine, model):] = balance.levers @ ca.diag(balance.bounds * ca.sqrt(1 - balance.signs ** 2))
    terms = ca.Function('terms', [*_at(machine, balance), balance.deviation, *noise, steepness],
                        [ca.densify(H), R, sure, grip, slopes], {'cse': True})
    return found[0], *terms(*_here(machine, X, near), _deviation(machine, balance, X, P, near), force_psd, dt,
                            found[1][:g.numel(), :].T)
