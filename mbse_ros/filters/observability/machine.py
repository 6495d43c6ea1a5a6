# SPDX-License-Identifier: Apache-2.0
"""What sensors of a machine see of positions and velocities, and how well its equations can say the mass,
and whether they distinguish it from its centre.

Poses to look from: its start, one coordinate moved over its range, all of them. The mass is as well known as the
numbers of the file are: at a pose, in a slow motion, the pressures are those that balance; an error of a number is an
error of the mass by the implicit function theorem. Noise of the sensors counts with one second of samples, since a mass
takes longer than one; an error of the force balance that the file states stays the same for longer than that.

The centre: forces that a point mass takes are linear in ``pi = (m, m c)`` at rest, c (d,) leading from the file's
centre to its own, along the axes of its body; their regressor, divided by the noise of the forces that the pressures
give, has a singular value for each direction of pi. In motion, where m c c' comes in, it is the derivative at half the
largest mass and the file's centre. A load is taken as a rigid point. Numbers of the file, friction above all, are taken
as known: what is blind here stays blind.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

import casadi as ca
import numpy as np

from ...errors import DescriptionError, PositionProblemError, SettingError, SingularConfigurationError
from ...machine import Machine
from ...machine.equations import actuators_of, by_actuator, check_weighs, measured_equations, missing_words
from ..force_balance import force_balance
from ..hydraulic_state import measurements, state_names
from .information import InformationWindow, observability
from .mechanism import ACCELERATION, POSITION, SHOWN, VELOCITY, StateObservability, echelon, least_information

SHARES = np.linspace(0.05, 0.95, 9)     # of the range of a coordinate
COUNT = 40                              # poses of all coordinates
MOVING = 0.3, 0.5       # speed and acceleration of coordinates in motion, SI: 1 sigma
STEP = 0.01     # s between two samples of a sensor at a pose
NORMAL = 1.959964       # 95 % quantile, two sides
SAMPLES = 100           # of the sensors' noise
LARGEST_SHARE = 0.05    # of the full scale: half-width of a set of sensors whose loads count
LEAST_PRESSURE = 2e6    # Pa, in chambers before they balance
UNSEEN = 1e-10          # share of the largest information, up to which a sum of masses is not seen
APART = 1e-6    # share of a mass in sums that are not seen, up to which it is distinguished from the others
LEVER = 1.0     # m: how far the centre may be from the file's, for what is known before


@dataclass(frozen=True)
class Poses:
    """States to look from: coordinates ``q`` (k, n), velocities ``zd`` and accelerations ``zdd`` (k, g) of the
    independent ones, SI; ``dt``: s between them where they are a motion, 0 where each is for itself."""

    q: np.ndarray
    zd: np.ndarray
    zdd: np.ndarray
    dt: float = 0.0


def start_pose(machine: Machine) -> Poses:
    """The file's start, at rest."""
    return _at_rest(machine, [machine.model.start.q])


def sweep(machine: Machine, name: str) -> Poses:
    """One independent coordinate over its range, the others at the start; as far as the mechanism reaches."""
    k, (low, high) = machine.coordinates.index(name), machine.range[machine.coordinates.index(name)]
    z = np.tile(machine.model.start.q[machine.model.z], (len(SHARES), 1))
    z[:, k] = low + SHARES * (high - low)
    return _at_rest(machine, _reached(machine, z))


def all_poses(machine: Machine, count: int = COUNT) -> Poses:
    """All independent coordinates over their ranges, the same poses each time."""
    low, high = machine.range.T
    shares = np.random.default_rng(0).uniform(SHARES[0], SHARES[-1], (count, len(low)))
    return _at_rest(machine, _reached(machine, low + shares * (high - low)))


def in_motion(poses: Poses) -> Poses:
    """The same poses with velocities and accelerations, the same each time."""
    zd, zdd = np.random.default_rng(1).normal(size=(2, *poses.zd.shape))
    return Poses(poses.q, MOVING[0] * zd, MOVING[1] * zdd)


def motion_poses(machine: Machine, q: np.ndarray, qd: np.ndarray, dt: float) -> Poses:
    """A motion (k, n) with its velocities (k, n), every ``dt``, s; accelerations by differences."""
    zd = qd[:, machine.model.z]
    return Poses(q, zd, np.gradient(zd, dt, axis=0), dt)


def _reached(machine: Machine, rows: Iterable[np.ndarray]) -> list[np.ndarray]:
    found = []
    for z in rows:
        try:
            found.append(machine.position(z))
        except (PositionProblemError, SingularConfigurationError):
            continue
    return found or [machine.model.start.q]


def _at_rest(machine: Machine, q: list[np.ndarray]) -> Poses:
    still = np.zeros((len(q), len(machine.coordinates)))
    return Poses(np.array(q), still, still)


def machine_observability(machine: Machine, sensors: Sequence[str], poses: Poses, window: float) -> StateObservability:
    """Observability of positions, velocities and accelerations, the last as constant over ``window``, s: around each
    pose, or along a motion. Pressures see none of them."""
    g, dt = len(machine.coordinates), poses.dt or STEP
    length = max(2, int(round(window / dt)))
    H, stddev = sensor_slopes(machine, poses)
    if not poses.dt:
        H = np.repeat(H, length, axis=0)
    eye = np.eye(g)
    F = np.block([[eye, dt * eye, dt ** 2 / 2 * eye], [0 * eye, eye, dt * eye], [0 * eye, 0 * eye, eye]])
    prior = np.repeat([POSITION, VELOCITY, ACCELERATION], g)
    owners = [channel.sensor.name for channel in machine.all_channels]
    moves = {owner for owner, rows in zip(owners, np.moveaxis(H, 1, 0)) if rows.any()}

    def windows(names: Sequence[str]) -> list[InformationWindow]:
        rows = [i for i, owner in enumerate(owners) if owner in names]
        return observability(np.tile(F, (len(H), 1, 1)), H[:, rows], stddev[rows], prior, length)

    others = {name: least_information(windows([*sensors, name])) for name in sorted(moves - set(sensors))}
    names = tuple(f'{kind}{name}' for kind in ('', 'velocity of ', 'acceleration of ') for name in machine.coordinates)
    return StateObservability('motion', names, prior, windows(sensors),
                              dict(sorted(others.items(), key=lambda item: -item[1])))


def sensor_slopes(machine: Machine, poses: Poses) -> tuple[np.ndarray, np.ndarray]:
    """Derivatives (k, channels, 3g) of the channels by position, velocity and acceleration of the coordinates, along
    the loops, and their standard deviations (channels,), SI."""
    names, _ = state_names(machine)
    X, g = ca.SX.sym('X', len(names)), len(machine.coordinates)
    items, rows = measurements(machine, names, X), []
    for item in items:
        unit = ca.SX.zeros(1, len(names))
        if item.index is not None:
            unit[item.index] = item.gain
        rows.append((item.H if item.index is None else unit)[:, :3 * g])
    function = ca.Function('slopes', [machine.system.q, X, machine.parameters.symbol], [ca.densify(ca.vertcat(*rows))])
    states = np.zeros((len(poses.q), len(names)))
    states[:, g:2 * g], states[:, 2 * g:3 * g] = poses.zd, poses.zdd
    found = [function(q, state, machine.parameters.mean).full() for q, state in zip(poses.q, states)]
    return np.array(found), np.sqrt([item.variance for item in items])


@dataclass(frozen=True)
class MassAccuracy:
    """Half-widths of 95 % intervals, kg, in the middle (median) of poses: of ``each`` equation alone, by its cylinders,
    and of ``all`` together; infinite where the mass does not show."""

    each: dict[str, float]
    all: float


def mass_accuracy(machine: Machine, poses: Poses | None = None, factor: np.ndarray | None = None) -> MassAccuracy:
    """Of the sensors that the file has, at half of the largest mass; ``poses``: default, all coordinates over their
    ranges; ``factor`` (k, any): a root of the covariance of the numbers, default the file's. Raises DescriptionError
    without a payload."""
    middle = np.median(mass_half_widths(machine, poses, factor), axis=0)
    owners = actuators_of(machine)
    return MassAccuracy({' and '.join(owners[k]): float(value) for k, value in zip(machine.weighing, middle)},
                        float(middle[-1]))


def mass_half_widths(machine: Machine, poses: Poses | None = None, factor: np.ndarray | None = None) -> np.ndarray:
    """The same (k, a + 1) at each pose, kg: of each equation, and of all together."""
    _, found = machine.payload_data, []     # of one
    for G, C in _equations(machine, poses, factor):
        with np.errstate(divide='ignore'):
            alone = np.sqrt(np.diag(C)) / np.abs(G[:, 0])
            together = 1.0 / np.sqrt(G[:, 0] @ np.linalg.pinv(C, hermitian=True) @ G[:, 0])
        found.append([*alone, together])
    return NORMAL * np.array(found)


def payloads_accuracy(machine: Machine, poses: Poses | None = None) -> dict[str, float]:
    """Of several payloads, by their names: the same half-width, kg, by all equations, with the other masses unknown;
    infinite where they cannot be distinguished."""
    payloads, found = machine.description.payloads, []
    span = np.array([high - low for low, high in (item.limits for item in payloads.values())])
    for G, C in _equations(machine, poses):
        J = G * span
        values, V = np.linalg.eigh(J.T @ np.linalg.pinv(C, hermitian=True) @ J)
        seen = values > UNSEEN * values.max()
        apart = (V[:, ~seen] ** 2).sum(axis=1) < APART
        found.append(np.where(apart, span * np.sqrt(V[:, seen] ** 2 @ (1.0 / values[seen])), np.inf))
    return dict(zip(payloads, (NORMAL * np.median(found, axis=0)).tolist()))


def _equations(machine: Machine, poses: Poses | None, factor: np.ndarray | None = None
               ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Derivatives (a, k) of the equations by the masses and their covariance (a, a) at half of the largest masses, pose
    by pose; ``poses`` and ``factor``: as of ``mass_accuracy``."""
    function, limits = _terms(machine), [item.limits for item in machine.description.every_payload.values()]
    looked = in_motion(all_poses(machine)) if poses is None else poses
    names, g = state_names(machine)[0], len(machine.coordinates)
    pushes = [names.index(name) for name in machine.actuators.entries]
    least = [LEAST_PRESSURE] * len(machine.volumes) + [0.0] * len(machine.description.drives)
    noise = _noises(machine)
    spread = np.array([noise.get(name, 0.0) for name in machine.actuators.entries]) / np.sqrt(SAMPLES)
    factor = machine.parameters.factor() if factor is None else factor
    counts = [item.count for item in machine.description.cylinders.values()] + [1] * len(machine.description.drives)
    balance_error = np.array([0.0 if error is None else count * error.stddev
                              for count, (_, error, _) in zip(counts, machine.actuators.errors)])
    for q, zd in zip(looked.q, looked.zd):
        X = np.zeros(len(names))
        X[:g], X[g:2 * g], X[pushes] = q[machine.model.z], zd, least
        near = q[machine.system.dependent]
        for _ in range(3):          # friction depends on the pressures
            r, G, J, S, L = (item.full() for item in function(near, X, np.mean(limits, axis=1),
                                                              machine.parameters.mean))
            X[pushes] -= np.linalg.lstsq(S, r[:, 0], rcond=None)[0]
        yield G, J @ factor @ (J @ factor).T + (S * spread ** 2) @ S.T + (L * balance_error ** 2) @ L.T


def _noises(machine: Machine, sensors: Collection[str] | None = None) -> dict[str, float]:
    """Standard deviations, SI, of the pressures and efforts that sensors measure, or these ``sensors``."""
    return {c.name: float(c.sensor.noise) / abs(c.nominal[0]) for c in machine.all_channels
            if c.name in machine.measured_pushes and (sensors is None or c.sensor.name in sensors)}


def check_counts(machine: Machine) -> None:
    """Raise DescriptionError where loads of a machine cannot be counted: nothing weighs, or only cylinders that say too
    little of the mass, and rest while others take or lift the load."""
    check_weighs(machine)
    missing = missing_words(machine)
    if not missing:
        return
    low, high = machine.payload_data.limits
    largest, found = LARGEST_SHARE * (high - low), mass_accuracy(machine).all
    if not found <= largest:
        raise DescriptionError(machine.description.file, 'sensors', f'pressures that weigh to +- {found:.0f} kg',
                               f'{largest:.0f} kg or less to count loads ({LARGEST_SHARE:.0%} of payload.limits); '
                               f'missing: {missing}')


def _terms(machine: Machine) -> ca.Function:
    """``(near, X, mass, parameters)`` -> what the equations lack (a, 1), its derivatives by the mass (a, 1), by the
    parameters (a, k), by the pressures and efforts (a, pushes) and by forces of the actuators (a, c), SI."""
    names, _ = state_names(machine)
    balance = force_balance(machine, names)
    pushes = balance.X[[names.index(name) for name in machine.actuators.entries]]
    g, p = balance.g, machine.parameters.symbol
    slopes = [ca.densify(ca.jacobian(g, by)) for by in (machine.payload, p, pushes)]
    return ca.Function('mass_accuracy', [balance.near, balance.X, machine.payload, p],
                       [g, *slopes, ca.densify(balance.levers)], {'cse': True})


@dataclass(frozen=True)
class PayloadObservability:
    """What pressures say of ``pi`` over some poses: ``window.information`` (1 + d,) in units of what is known before,
    the largest mass and that by a lever of 1 m. ``stddev`` (1 + d,) of mass, kg, and centre, m, after one sample at
    each pose, NaN where they cannot be found; ``body``: in whose frame."""

    window: InformationWindow
    stddev: np.ndarray
    body: str

    @property
    def rank(self) -> int:
        """Directions of pi that are seen."""
        return self.window.rank

    @property
    def least(self) -> float:
        """Least information."""
        return float(self.window.information[0])

    @property
    def blind(self) -> list[str]:
        """Directions that no pressure sees, in words."""
        return [_words(column, self.body) for column in echelon(self.window.blind).T]


def payload_observability(machine: Machine, sensors: Sequence[str], poses: Poses) -> PayloadObservability:
    """Observability of the payload by these sensors over all poses together; positions are taken as known.

    An equation counts whose pressures are all measured. Raises SettingError where there is none, DescriptionError
    without a payload.
    """
    machine.payload     # noqa: B018 (raises where there is none)
    limit, size = machine.payload_data.limits[1], 1 + machine.system.gravity.numel()
    nominal = limit / 2 * np.eye(size)[0]
    rows = weighed_rows(machine, sensors, poses, nominal)
    prior, k = limit * np.array([1.0, *(size - 1) * [LEVER]]), len(rows)
    window, = observability(np.tile(np.eye(size), (k, 1, 1)), rows, np.ones(rows.shape[1]), prior, k)
    stddev = np.full(size, np.nan)
    if window.rank == size:
        root = prior[:, None] * window.directions / np.sqrt(window.information)
        stddev = np.linalg.norm(root, axis=1) / np.array([1.0, *(size - 1) * [nominal[0]]])
    return PayloadObservability(window, stddev, machine.payload_data.body)


def weighed_rows(machine: Machine, sensors: Sequence[str], poses: Poses, nominal: np.ndarray) -> np.ndarray:
    """Regressor (k, e, 1 + d) of the equations whose pressures are measured, in standard deviations of their forces."""
    stddev = _noises(machine, sensors)
    used, needs = measured_equations(machine, stddev), machine.push_needs
    if not used:
        raise SettingError('sensors', list(sensors), 'all pressures of a cylinder, to see the payload: '
                           + '; '.join(', '.join(sorted(needs[k])) for k in range(len(needs))))
    noise = np.array([stddev.get(name, 0.0) for name in machine.actuators.entries])
    function, found = payload_regressor(machine), []
    for q, zd, zdd in zip(poses.q, poses.zd, poses.zdd):
        W, S = (item.full()[used] for item in function(q, zd, zdd, nominal, machine.parameters.mean))
        found.append(W / np.sqrt(((S * noise) ** 2).sum(axis=1))[:, None])
    return np.array(found)


def _push_slopes(machine: Machine) -> ca.SX:
    """Derivatives (a, pushes) of the forces in the equations by the pressures, m2 or m3, and efforts."""
    p = ca.SX.sym('p', len(machine.actuators.entries))
    force = ca.sparsify(machine.piston_rates).T @ machine.actuators.forces(p)
    return ca.jacobian(by_actuator(machine, force[machine.actuated])[0], p)


def payload_regressor(machine: Machine) -> ca.Function:
    """``(q, zd, zdd, pi, parameters) -> W (a, 1 + d), S (a, pushes)``: derivatives of the forces in the equations
    of the force balance that the payload takes by ``pi = (m, m c)``, kg and kg m, and that pressures give by the
    pressures.

    Raises DescriptionError without a payload.
    """
    system, reduced, parameters = machine.system, machine.reduced, machine.parameters
    payload = machine.payload_data
    pi, zdd = ca.SX.sym('pi', 1 + system.gravity.numel()), ca.SX.sym('zdd', len(machine.coordinates))
    place = system.frames[payload.body].at(system.values.vector(payload.center) + pi[1:] / pi[0])
    velocity = ca.jtimes(place, system.q, system.qd)
    acceleration = (ca.jtimes(velocity, system.q, system.qd)
                    + ca.jtimes(place, system.q, reduced.R @ zdd + reduced.S @ reduced.c))
    force = reduced.R.T @ ca.jtimes(place, system.q, pi[0] * (acceleration - system.gravity), True)
    force, _ = by_actuator(machine, force[machine.actuated])
    W, = ca.substitute([ca.jacobian(force, pi)], [system.qd], [reduced.qd])
    every = [ca.densify(W), ca.densify(_push_slopes(machine))]
    level = [symbol for symbol in parameters.states.values()]       # the base as the file has it, level
    if level:
        every = ca.substitute(every, [ca.vertcat(*level)], [ca.SX.zeros(len(level))])
    return ca.Function('payload_regressor', [system.q, reduced.zd, zdd, pi, parameters.symbol], every)


def _words(direction: np.ndarray, body: str) -> str:
    """A direction (1 + d,) in units of the prior."""
    direction = np.where(np.abs(direction) < SHOWN * np.abs(direction).max(), 0.0, direction)
    mass, moment = direction[0], direction[1:]
    if not moment.any():
        return 'the mass'
    if mass == 0.0:
        return f'the centre along {_vector(moment / np.linalg.norm(moment))} of {body}'
    return (f'the mass against the centre: m c moved by {_vector(LEVER * moment / mass)} m of {body} for each kilogram '
            'more')


def _vector(values: np.ndarray) -> str:
    """A column (d,) along the axes: 'y' where it is one of them."""
    names = 'xyz' if len(values) == 3 else 'xy'
    if np.count_nonzero(values) == 1 and np.isclose(np.abs(values).max(), 1.0):
        return names[int(np.argmax(np.abs(values)))]
    return '(' + ', '.join(f'{value:.2f}'.replace('-0.00', '0.00') for value in values) + ')'
