# SPDX-License-Identifier: Apache-2.0
"""The force on the tool: what the cylinders carry besides the machine and its load.

With a mass that is known, the force balance of all weighed cylinders (Pyrhönen et al., mass estimation, Eq. 55) leaves
``g = A F``, F being the force at ``payload.contact``: as many equations as cylinders, solved by weighted least squares
for the components that they show.

A contact contradicts the observer's own force balance and so spoils its speeds and accelerations. They are not used. A
polynomial through the positions measured in the last ``payload.force_window`` gives the motion, one through each
pressure what the cylinders push. The balance is a mean over the window with weights ``(1 - t^2)^2``: so weighed, the
acceleration of such a polynomial is the true one, whatever the motion. What is not linear in it (levers, centrifugal
forces, a friction that turns) is a mean, too. Before a contact is noticed it pulls at the mass, too: the mass is that
of half a second before, if it has counted since. Its weight is in the pressures while it changes: then there is no
force, and what was known of the mass does not count any more.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from math import isfinite, nan

import casadi as ca
import numpy as np
from numpy.polynomial.polynomial import polyder, polyval

from ..compiled import Kernel
from ..compiled.cache import built
from ..errors import MbseError
from ..filters.force_balance import force_balance, without_sensor_errors
from ..filters.hydraulic_state import direct, state_names
from ..filters.weighing import free_of_stops
from ..machine import Machine
from ..machine.equations import by_cylinder
from ..machine.frames import turned
from .mass import Mass, PayloadSettings

AGREED = 0.5        # s for which a mass must have counted: a contact is noticed after 0.1 to 0.3 s
CHANGED = 1.0       # s after a change of the load without a force
FEWEST = 8          # samples of each position in a window, ...
COVERED = 0.7       # ... and the share of it that they cover
TERMS, LEVERS = 5, slice(1, 4)      # of each equation, and those that are levers
SEEN = 1e-6         # of the best-known component's information, from which a direction is shown
ALIGNED = 1e-4      # part of an axis along a direction that nothing shows, up to which the axis is known
AXES = 'xyz'
MPA = 1e6
TURN = 2 * np.pi
DEGREE = 6          # of the polynomial through the positions of a window
_K = np.arange(1, 5)
_COUPLED = np.sqrt(_K * (_K + 4) / ((2 * _K + 3) * (2 * _K + 5)))      # Golub, Welsch: Gauss for weights (1 - x^2)^2
NODES, _VECTORS = np.linalg.eigh(np.diag(_COUPLED, 1) + np.diag(_COUPLED, -1))
SHARES = _VECTORS[0] ** 2       # weights of a mean over a window at the instants NODES, -1 to 1
RENEWED = 0.1       # of the window, after which the force is found again
CELLS = np.gradient(NODES) / np.sqrt(12)    # standard deviation of the instants that each of them stands for
KERNEL = 10 / 7     # of the density over the window: the variance of a mean with these weights
LOST = 'the observer has no state'
UNWEIGHED = 'no mass counted before the contact'
CHANGES = 'the load changes, or its mass has just moved by more than its interval'


@dataclass(frozen=True)
class ToolForce:
    """Force of the surroundings on the tool, a mean over the last window: ``force`` (3,), N, along the axes of the
    frame of ``body``, at its ``point`` (3,), m, and its ``covariance`` (3, 3), N^2; NaN for an axis that nothing shows.

    ``direction`` (3,): unit vector, in the same frame, of the component that is known best; ``component`` and
    ``component_stddev``, N, are along it: of a machine that weighs by one cylinder all that it shows. ``mass``, kg: of
    the load, whose weight and inertia are not in the force; ``held``, s: for how long it has not counted as measured.
    ``reason``: why there is no force, or which axes are not known; '' where all are. ``stamp_ns``: end of the window,
    up to RENEWED of it before the segment's."""

    body: str
    point: np.ndarray
    force: np.ndarray
    covariance: np.ndarray
    direction: np.ndarray
    component: float
    component_stddev: float
    mass: float
    held: float
    reason: str = ''
    stamp_ns: int = 0

    @property
    def known(self) -> bool:
        """Whether there is any component."""
        return isfinite(self.component)

    @property
    def stddev(self) -> np.ndarray:
        """Standard deviations (3,), N."""
        return np.sqrt(np.diag(self.covariance))


def has_contact(machine: Machine) -> bool:
    """Whether the file says where the tool is touched."""
    payload = machine.description.payload
    return payload is not None and bool(payload.contact)


def contact_words(machine: Machine) -> str:
    """Why a machine has no force at its tool; '' where it has one."""
    if not has_contact(machine):
        return 'the file has no `payload.contact`'
    if machine.payload_data.hanging is not None:
        return 'the load hangs: its swing is a force, too'
    if not machine.weighing:
        return 'of no cylinder are all pressures measured'
    lacking = [name for name in machine.coordinates if f'position/{name}' not in direct(machine)]
    return f'no sensor measures the position of {" and ".join(lacking)} itself' if lacking else ''


def force_equations(machine: Machine) -> ca.Function:
    """``(near, X, P, mass, parameters) -> (near, terms, by X, by parameters, by friction, areas, free)``.

    Dependent coordinates nearby, the state X (nx,), SI, as ``state_names`` has it, its covariance (nx, nx); terms
    (a, 5): residuals g, N or N m, the levers A (a, 3) of a force along the axes of the tool, and the derivative of g by
    the mass; the derivatives of all of them, column by column, by X (5 a, nx) and by all uncertain numbers (5 a, k);
    that of g by frictions near standstill, for their bounds (a, c), levers times areas (a, c), m2, and whether all
    cylinders of an equation are off their stops (a,).
    """
    names, payload, system = state_names(machine)[0], machine.payload_data, machine.system
    balance, p = force_balance(machine, names, True), machine.parameters.symbol
    moved = len(machine.coordinates)
    q = machine.closed(balance.near, without_sensor_errors(machine, names, balance.X)[:moved], 1)
    J = ca.jacobian(system.points[payload.contact], system.q) @ machine.reduced.R
    J = ca.vertcat(J, ca.SX.zeros(3 - J.shape[0], J.shape[1]))
    along = (turned(system.frames[payload.contact.partition('.')[0]].rotation).T @ J)[:, machine.actuated]
    A = ca.horzcat(*(by_cylinder(machine, along[k, :].T)[0] for k in range(3)))[list(machine.weighing), :]
    friction = balance.levers @ ca.diag(balance.bounds * ca.sqrt(1 - balance.signs ** 2))
    P = ca.SX.sym('P', len(names), len(names))
    arguments = [balance.near, balance.X, balance.deviation, machine.payload, p]
    terms = ca.horzcat(balance.g, ca.substitute(A, system.q, q), ca.jacobian(balance.g, machine.payload))
    terms = ca.Function('terms', arguments, [ca.densify(item) for item in (
        terms, ca.jacobian(ca.vec(terms), balance.X), ca.jacobian(ca.vec(terms), p), friction,
        balance.levers @ ca.diag(machine.circuit.areas()[0::2]), free_of_stops(machine, balance))], {'cse': True})
    near = machine.closed(balance.near, balance.X[:moved])[system.dependent]
    close = ca.Function('close', [balance.near, balance.X, p], [near, ca.densify(balance.rates)], {'cse': True})
    arguments[2] = P
    near, rates = close(balance.near, balance.X, p)
    deviation = ca.sqrt(ca.sum2((rates @ P) * rates))
    return ca.Function('mbse_tool_force', arguments, [near, *terms(near, balance.X, deviation, machine.payload, p)],
                       {'cse': True})


class ToolForces:
    """Forces at the tool of one machine, segment by segment; ``psd``, MPa^2 s: density of what the force balance does
    not know. Raises nothing: what cannot be said is NaN, with a reason."""

    def __init__(self, machine: Machine, settings: PayloadSettings, backend: str = 'auto') -> None:
        self._machine, self._without = machine, contact_words(machine)
        self.configure(settings)
        self.reset()
        if self._without:
            return
        self._kernel = Kernel(built(('tool force', machine.made_of), lambda: force_equations(machine)), backend)
        self._body, _, point = machine.payload_data.contact.partition('.')
        place = [item.value for item in machine.description.bodies[self._body].points[point]]
        self._point = np.array([*place, *[0.0] * (3 - len(place))])
        names, channels = state_names(machine)[0], direct(machine)
        places = {name: names.index(name) for name in (*(f'position/{z}' for z in machine.coordinates),
                                                       *(f'pressure/{v}' for v in machine.measured_volumes))}
        found = [channels[name] for name in places]
        g, self._count = len(machine.coordinates), len(names)
        self._entries = [k + (g * np.arange(3) if i < g else np.zeros(1, int)) for i, k in enumerate(places.values())]
        self._turns = [k for k, item in enumerate(found) if item.sensor.wraps]
        self._columns = [machine.channels.index(item.name) for item in found]
        self._gain, self._offset, self._zero = np.array([item.nominal for item in found]).T
        self._noise = np.array([item.sensor.noise for item in found]) / np.abs(self._gain)
        self._needs = np.array([[volume in machine.pressure_needs[row] for volume in machine.measured_volumes]
                                for row in machine.weighing])
        parameters = machine.parameters
        self._consider, self._center = parameters.consider, list(parameters.center.values())
        self._factor, self._center_stddev = parameters.factor(self._consider.tolist()), parameters.stddev[self._center]

    @property
    def none(self) -> bool:
        """Whether the machine has no force at its tool at all."""
        return bool(self._without)

    def configure(self, settings: PayloadSettings) -> None:
        """Take new tuning from the next segment on."""
        self._window, self._psd = settings.force_window, settings.force_psd

    def reset(self) -> None:
        """Forget the samples, and the mass."""
        self._rows: deque[tuple[int, np.ndarray]] = deque()
        self._masses: deque[tuple[int, Mass]] = deque()
        self._mass: tuple[int, Mass] | None = None
        self._near: np.ndarray | None = None
        self._settled_ns, self._changes_ns, self._touches = 0, 0, False
        self._found: tuple[int, ToolForce] | None = None

    def process(self, stamp_ns: int, state: tuple[np.ndarray, np.ndarray, np.ndarray], restart: bool, lost: bool,
                mass: Mass | None, changes: bool = False, touches: bool | None = False) -> ToolForce:
        """After a segment that ends at a stamp: the state (nx,) there, samples (channels,), SI, and innovations, NaN
        for a sample that is not used; ``restart``: the samples before do not count; ``lost``: the state does not;
        ``mass``: of the load, None while it does not count; ``changes``: whether the load does; ``touches``: whether a
        contact is noticed, None where nothing says."""
        mean, samples, innovation = state
        if restart or self._rows and stamp_ns <= self._rows[-1][0]:
            self._rows.clear()
            self._masses.clear()
            self._near, self._settled_ns, self._changes_ns = None, 0, 0
        self._touches = self._touches if touches is None else touches
        self._keep(stamp_ns, mass, changes)
        values = np.where(np.isnan(innovation), nan, samples)[self._columns] if not self.none else samples
        self._rows.append((stamp_ns, values))
        while stamp_ns - self._rows[0][0] > 1e9 * self._window:
            self._rows.popleft()
        if self._without or lost or stamp_ns < self._settled_ns or self._mass is None:
            self._found = None
            unweighed = self._mass is None and self._touches
            return self._unknown(self._without or (LOST if lost else UNWEIGHED if unweighed else CHANGES if stamp_ns <
                                                   self._settled_ns else 'no mass has counted for half a second yet'))
        turn = stamp_ns // round(1e9 * RENEWED * self._window)      # by the stamp: the same live and from a log
        if self._found is None or self._found[0] != turn:
            self._found = turn, self._newly(mean)
        return self._found[1]

    def _newly(self, mean: np.ndarray) -> ToolForce:
        try:
            return self._solve(mean)
        except MbseError as error:      # out of reach, or a dead point
            self._near = None
            return self._unknown(str(error))

    def _keep(self, stamp_ns: int, mass: Mass | None, changes: bool) -> None:
        """The newest mass that has counted for a while since, and from when on none changes any more."""
        self._changes_ns = (self._changes_ns or stamp_ns) if changes else 0
        if changes:
            if stamp_ns - self._changes_ns >= 1e9 * AGREED:     # shorter: a contact, before it is noticed
                self._mass = None
            self._settled_ns = stamp_ns + round(1e9 * max(CHANGED, self._window))
        if mass is None or not isfinite(mass.mass + mass.stddev):
            self._masses.clear()
            return
        if self._mass is not None and abs(mass.mass + mass.lean - self._mass[1].mass) > self._mass[1].half_width:
            self._settled_ns = max(self._settled_ns, stamp_ns + round(1e9 * self._window))
        self._masses.append((stamp_ns, mass))
        while len(self._masses) > 1 and stamp_ns - self._masses[1][0] >= 1e9 * AGREED:
            self._masses.popleft()
        if stamp_ns - self._masses[0][0] >= 1e9 * AGREED:
            self._mass = stamp_ns, self._masses[0][1]

    def _unknown(self, reason: str) -> ToolForce:
        body, point = ('', np.full(3, nan)) if self._without else (self._body, self._point)
        mass = nan if self._mass is None else self._mass[1].mass
        return ToolForce(body, point, np.full(3, nan), np.full((3, 3), nan), np.full(3, nan), nan, nan, mass, nan,
                         reason, self._rows[-1][0])

    def _solve(self, mean: np.ndarray) -> ToolForce:
        machine = self._machine
        times, rows = np.array([row[0] for row in self._rows]), np.array([row[1] for row in self._rows])
        t = (times - times[-1]) * 2e-9 / self._window + 1.0      # -1 to 1
        measured = (rows - self._offset) / self._gain + self._zero
        X, known, alike = np.tile(mean[:self._count], (len(NODES), 1)), np.isfinite(measured), dict[bytes, list[int]]()
        for k in range(measured.shape[1]):      # channels whose samples are of the same instants
            alike.setdefault(known[:, k].tobytes(), []).append(k)
        curves, there = dict[int, np.ndarray](), np.zeros(measured.shape[1], dtype=bool)
        for columns in alike.values():
            own = known[:, columns[0]]
            there[columns] = np.count_nonzero(own) >= FEWEST and np.ptp(t[own]) >= 2 * COVERED
            if not there[columns[0]]:
                continue
            fit, factor = curve(t[own], self._counted(measured[own][:, columns], columns, mean), 2 / self._window)
            for i, k in enumerate(columns):
                X[:, self._entries[k]] = fit[:, :len(self._entries[k]), i]
                curves[k] = factor[:, :len(self._entries[k])] * self._noise[k]
        g = len(machine.coordinates)
        if not there[:g].all():
            return self._unknown(f'fewer than {FEWEST} samples of position/{machine.coordinates[there.argmin()]}, or a '
                                 f'part of the last {self._window:g} s without')
        return self._force(X, curves, np.all(there[g:] | ~self._needs, axis=1))

    def _counted(self, angles: np.ndarray, columns: list[int], near: np.ndarray) -> np.ndarray:
        """Positions (n, k) of these columns, with the turns that some sensors do not count."""
        for i, k in enumerate(columns):
            if k in self._turns:
                angles[:, i] = np.unwrap(angles[:, i])
                angles[:, i] += TURN * np.round((near[k] - angles[-1, i]) / TURN)
        return angles

    def _force(self, X: np.ndarray, curves: dict[int, np.ndarray], use: np.ndarray) -> ToolForce:
        """Of the states (n, nx) at NODES, with factors ``curves`` of the errors of each channel, by the equations (a,)
        that are of ``use``."""
        assert self._mass is not None
        (since, mass), machine = self._mass, self._machine
        # with slopes: the errors of mass and balance by the same numbers are one
        value, noise = (mass.weighed, mass.noise) if mass.slopes.size else (mass.mass, mass.stddev)
        moved, count = len(machine.coordinates), len(NODES)
        near = machine.position(X[0, :moved])[machine.system.dependent] if self._near is None else self._near
        rows, spread = [], np.zeros((count, self._count, self._count))
        for k, factor in curves.items():
            own = self._entries[k]
            spread[:, own[:, None], own] = factor @ factor.transpose(0, 2, 1)
        # friction is that of all speeds around an instant: they spread as the acceleration says
        speeds = (CELLS * self._window / 2)[:, None] * X[:, 2 * moved:3 * moved]
        spread[:, moved:2 * moved, moved:2 * moved] += speeds[:, :, None] * speeds[:, None]
        for k in range(count):
            near, *found = self._kernel(near, X[k], spread[k], [value], machine.parameters.mean)
            if not np.isfinite(near).all():
                self._near = None
                return self._unknown('the mechanism cannot be as its sensors say')
            self._near = near if k == 0 else self._near
            rows.append(found)
        a, (terms, H, by_numbers, friction, areas, free) = len(use), (np.array(item) for item in zip(*rows))
        H, by_numbers = (item.reshape(count, TERMS, a, -1) for item in (H, by_numbers))
        errors = np.concatenate([by_numbers[..., self._consider] @ self._factor,
                                 by_numbers[..., self._center] * self._center_stddev,
                                 *(H[..., self._entries[k]] @ factor[:, None] for k, factor in curves.items())], 3)
        errors[:, 0, :, :mass.slopes.size] += terms[:, :, -1:] * mass.slopes
        alone = np.concatenate([friction.reshape(count, a, -1), terms[:, :, -1:] * noise], 2)
        rest = np.sum((areas[0].reshape(a, -1) * MPA) ** 2, 1) * self._psd * KERNEL / self._window
        usable = np.flatnonzero(use & (free.reshape(count, a).min(axis=0) > 0.5))
        if not len(usable):
            return self._unknown('all cylinders that weigh are at an end of their strokes, or pressures are missing')
        terms, errors, alone = terms[:, usable], errors[:, :, usable], alone[:, usable]
        if not (np.isfinite(errors).all() and np.isfinite(terms).all() and terms[..., LEVERS].any()):
            return self._unknown('no cylinder that weighs has a lever on the contact')
        return self._solved(terms, errors, alone, np.diag(rest[usable]), value, (self._rows[-1][0] - since) * 1e-9)

    def _solved(self, terms: np.ndarray, errors: np.ndarray, alone: np.ndarray, rest: np.ndarray, mass: float,
                held: float) -> ToolForce:
        """Of the means of equations ``g = A F``, terms (n, a, 5) at NODES with derivatives ``errors`` (n, 5, a, k) by
        independent errors of standard deviation 1; ``alone`` (n, a, m): of g alone by others; ``rest`` (a, a): what is
        left of the covariance of the means of g."""
        g, A, each = terms[..., :1], terms[..., LEVERS], SHARES[:, None, None] * np.eye(terms.shape[1])
        mean = np.tensordot(SHARES, A, 1)
        weighted = np.linalg.solve(_covariance(each, errors[:, 0], alone) + rest, A)
        solve = np.linalg.pinv(A.transpose(0, 2, 1) @ weighted, SEEN, True) @ weighted.transpose(0, 2, 1)
        forces = (solve @ g)[..., 0]        # at each of NODES
        # the mean of A F is more than that of A times that of F where both turn
        shares = each - SHARES[:, None, None] * ((A - mean) @ solve)
        R = _covariance(shares, errors[:, 0] - np.einsum('nj,njak->nak', forces, errors[:, LEVERS]), alone) + rest
        weighted = np.linalg.solve(R, mean)
        size, along = np.linalg.eigh(mean.T @ weighted)
        shown = size > SEEN * size[-1]
        some, unseen = along[:, shown], along[:, ~shown]
        covariance = (some / size[shown]) @ some.T
        force = covariance @ (weighted.T @ (shares @ g).sum(axis=0)[:, 0])
        best = along[:, -1] * np.sign(along[np.argmax(np.abs(along[:, -1])), -1])
        unknown = np.linalg.norm(unseen, axis=1) > ALIGNED
        component = float(best @ force)
        force[unknown] = covariance[unknown] = covariance[:, unknown] = nan
        axes = ' and '.join(axis for axis, no in zip(AXES, unknown) if no)
        return ToolForce(self._body, self._point, force, covariance, best, component, float(size[-1] ** -0.5), mass,
                         held, f'no cylinder that weighs shows {axes}' if axes else '', self._rows[-1][0])


def _covariance(shares: np.ndarray, *errors: np.ndarray) -> np.ndarray:
    """Of means (a,) with ``shares`` (n, a, a) of equations whose ``errors`` (n, a, k) are by independent ones."""
    mean = (shares @ np.concatenate(errors, 2)).sum(axis=0)
    return np.asarray(mean @ mean.T)


def curve(t: np.ndarray, x: np.ndarray, rate: float) -> tuple[np.ndarray, np.ndarray]:
    """Values, slopes and second derivatives (n, 3, k) at NODES of the polynomials that fit ``x`` (m, k) at ``t`` (m,),
    -1 to 1, best, and factors F (n, 3, degree + 1) of their errors: F F' is the covariance for a variance 1 of each of
    x. ``rate``, 1/s: of t."""
    count = min(DEGREE, len(t) // 3) + 1
    Q, T = np.linalg.qr(np.vander(t, count, True))
    powers = np.stack([polyval(NODES, polyder(np.eye(count), k)).T * rate ** k for k in range(3)], 1)
    factors = np.linalg.solve(T.T, powers.reshape(-1, count).T).T.reshape(-1, 3, count)
    return factors @ (Q.T @ x), factors
