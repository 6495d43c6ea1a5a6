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
of half a second before, if it has counted since. While the load changes, or none has counted, force and mass are found
together, any mass within the payload's limits being as likely; where the equations do not tell them apart (one that
weighs, or a load that hangs where the tool is touched) there is no force. While the mass counts and nothing is touched,
the force is 0, and what the balance then has is the errors of the file: see ``FreeBalance``.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from math import isfinite, nan

import numpy as np

from ..compiled import Kernel
from ..compiled.cache import built
from ..errors import MbseError
from ..filters.hydraulic_state import direct, state_names
from ..machine import Machine
from .mass import Mass, PayloadSettings
from .pointing import Pointing, pointing
from .tool_force_equations import (
    CELLS,
    KERNEL,
    LEVERS,
    NODES,
    SHARES,
    TERMS,
    FreeBalance,
    covariance_of,
    curve,
    force_equations,
    root,
)

AGREED = 0.5        # s for which a mass must have counted: a contact is noticed after 0.1 to 0.3 s
CHANGED = 1.0       # s after a change of the load without a force
FEWEST = 8          # samples of each position in a window, ...
COVERED = 0.7       # ... and the share of it that they cover
PASSES = 2          # of force and mass, by which levers and the mass's equations are uncertain, too
TOLD = 0.5          # of the range of masses: how well a mass must be found with the force
SEEN = 1e-6         # of the best-known component's information, from which a direction is shown
ALIGNED = 1e-4      # part of an axis along a direction that nothing shows, up to which the axis is known
AXES = 'xyz'
MPA = 1e6
TURN = 2 * np.pi
RENEWED = 0.1       # of the window, after which the force is found again
LOST = 'the observer has no state'
EARLY = 'no mass has counted for half a second yet'
UNWEIGHED = 'no mass counted before the contact'
CHANGES = 'the load changes, or its mass has just moved by more than its interval'


@dataclass(frozen=True)
class ToolForce:
    """Force of the surroundings on the tool, a mean over the last window: ``force`` (3,), N, along the axes of the
    frame of ``body``, at its ``point`` (3,), m, and its ``covariance`` (3, 3), N^2; NaN for an axis that nothing shows.

    ``direction`` (3,): unit vector, in the same frame, of the component that is known best; ``component`` and
    ``component_stddev``, N, are along it: of a machine that weighs by one cylinder all that it shows. ``mass``, kg: of
    the load, whose weight and inertia are not in the force, with ``mass_stddev``; ``held``, s: for how long it has not
    counted as measured, NaN where it is found together with the force. ``reason``: why it is, or why there is no force,
    or which axes are not known; '' where all are. ``stamp_ns``: end of the window, up to RENEWED of it before the
    segment's."""

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
    mass_stddev: float = nan

    @property
    def known(self) -> bool:
        """Whether there is any component."""
        return isfinite(self.component)

    @property
    def stddev(self) -> np.ndarray:
        """Standard deviations (3,), N."""
        return np.sqrt(np.diag(self.covariance))

    @property
    def pointing(self) -> Pointing:
        """Size and direction, with their deviations."""
        return pointing(self.force, self.covariance)


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


class ToolForces:
    """Forces at the tool of one machine, segment by segment; ``psd``, MPa^2 s: density of what the force balance does
    not know. Raises nothing: what cannot be said is NaN, with a reason."""

    def __init__(self, machine: Machine, settings: PayloadSettings, backend: str = 'auto') -> None:
        self._machine, self._without = machine, contact_words(machine)
        self._actuator = 'cylinder' if machine.cylinders else 'drive'
        self._errors_count = len(machine.parameters.consider) + len(machine.parameters.center)
        self.configure(settings)
        self.reset()
        if self._without:
            return
        function = built(('tool force', machine.made_of), lambda: force_equations(machine))
        self._kernel = Kernel(function, backend, rare=True)
        self._body, _, point = machine.payload_data.contact.partition('.')
        place = [item.value for item in machine.description.bodies[self._body].points[point]]
        self._point = np.array([*place, *[0.0] * (3 - len(place))])
        names, channels = state_names(machine)[0], direct(machine)
        places = {name: names.index(name) for name in (*(f'position/{z}' for z in machine.coordinates),
                                                       *machine.measured_pushes)}
        found = [channels[name] for name in places]
        g, self._count = len(machine.coordinates), len(names)
        self._entries = [k + (g * np.arange(3) if i < g else np.zeros(1, int)) for i, k in enumerate(places.values())]
        self._turns = [k for k, item in enumerate(found) if item.sensor.wraps]
        self._columns = [machine.channels.index(item.name) for item in found]
        self._gain, self._offset, self._zero = np.array([item.nominal for item in found]).T
        self._noise = np.array([item.sensor.noise for item in found]) / np.abs(self._gain)
        self._needs = np.array([[name in machine.push_needs[row] for name in machine.measured_pushes]
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
        self._errors: tuple[np.ndarray, np.ndarray] | None = None      # that masses have in common, as last known
        self._near: np.ndarray | None = None
        self._windows: deque[tuple[int, np.ndarray, np.ndarray, np.ndarray]] = deque()    # that may be free of contact
        self._balance, self._learnt_ns = FreeBalance(self._errors_count), 0
        self._free_ns: int | None = None        # since when the mass has counted
        self._settled_ns, self._changes_ns, self._touches = 0, 0, False
        self._found: tuple[tuple[int, str], ToolForce] | None = None

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
            self._windows.clear()
            self._near, self._settled_ns, self._changes_ns, self._free_ns = None, 0, 0, None
        self._touches = self._touches if touches is None else touches
        self._keep(stamp_ns, mass, changes)
        values = np.where(np.isnan(innovation), nan, samples)[self._columns] if not self.none else samples
        self._rows.append((stamp_ns, values))
        while stamp_ns - self._rows[0][0] > 1e9 * self._window:
            self._rows.popleft()
        if self._without or lost:
            self._found = None
            return self._unknown(self._without or LOST)
        without = (UNWEIGHED if self._mass is None and self._touches else CHANGES if stamp_ns < self._settled_ns else
                   EARLY if self._mass is None else '')
        turn = stamp_ns // round(1e9 * RENEWED * self._window), without     # by the stamp: the same live and from a log
        if self._found is None or self._found[0] != turn:
            self._found = turn, self._newly(mean, without)
        return self._found[1]

    def _newly(self, mean: np.ndarray, without: str) -> ToolForce:
        try:
            found = self._solve(mean, without)
        except MbseError as error:      # out of reach, or a dead point
            self._near = None
            found = self._unknown(str(error))
        return found if found.known or not without else self._unknown(without)

    def _keep(self, stamp_ns: int, mass: Mass | None, changes: bool) -> None:
        """The newest mass that has counted for a while since, and from when on none changes any more."""
        self._changes_ns = (self._changes_ns or stamp_ns) if changes else 0
        if changes:
            if stamp_ns - self._changes_ns >= 1e9 * AGREED:     # shorter: a contact, before it is noticed
                self._mass = None
            self._settled_ns = stamp_ns + round(1e9 * max(CHANGED, self._window))
        while self._windows and stamp_ns - self._windows[0][0] >= 1e9 * AGREED:
            at, g, H, R = self._windows.popleft()
            if self._balance.take(g, H, R, max(at - self._learnt_ns, 0) * 1e-9):
                self._learnt_ns = at
        if mass is None or not isfinite(mass.mass + mass.stddev):
            self._masses.clear()
            self._windows.clear()
            self._free_ns = None
            return
        self._free_ns = self._free_ns or stamp_ns
        if self._mass is not None and abs(mass.mass + mass.lean - self._mass[1].mass) > self._mass[1].half_width:
            self._settled_ns = max(self._settled_ns, stamp_ns + round(1e9 * self._window))
        self._masses.append((stamp_ns, mass))
        while len(self._masses) > 1 and stamp_ns - self._masses[1][0] >= 1e9 * AGREED:
            self._masses.popleft()
        if stamp_ns - self._masses[0][0] >= 1e9 * AGREED:
            self._mass, self._errors = (stamp_ns, self._masses[0][1]), self._masses[0][1].errors

    def _unknown(self, reason: str) -> ToolForce:
        body, point = ('', np.full(3, nan)) if self._without else (self._body, self._point)
        mass = nan if self._mass is None else self._mass[1].mass
        return ToolForce(body, point, np.full(3, nan), np.full((3, 3), nan), np.full(3, nan), nan, nan, mass, nan,
                         reason, self._rows[-1][0])

    def _solve(self, mean: np.ndarray, without: str) -> ToolForce:
        """``without``: why no mass is known; '' where one is."""
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
        return self._force(X, curves, np.all(there[g:] | ~self._needs, axis=1), without)

    def _counted(self, angles: np.ndarray, columns: list[int], near: np.ndarray) -> np.ndarray:
        """Positions (n, k) of these columns, with the turns that some sensors do not count."""
        for i, k in enumerate(columns):
            if k in self._turns:
                angles[:, i] = np.unwrap(angles[:, i])
                angles[:, i] += TURN * np.round((near[k] - angles[-1, i]) / TURN)
        return angles

    def _force(self, X: np.ndarray, curves: dict[int, np.ndarray], use: np.ndarray, without: str) -> ToolForce:
        """Of the states (n, nx) at NODES, with factors ``curves`` of the errors of each channel, by the equations (a,)
        that are of ``use``."""
        mass, machine = self._known_mass(without), self._machine
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
        rest = np.sum((areas[0].reshape(a, -1) * MPA) ** 2, 1) * self._psd * KERNEL / self._window
        usable = np.flatnonzero(use & (free.reshape(count, a).min(axis=0) > 0.5))
        if not len(usable):
            return self._unknown('all cylinders that weigh are at an end of their strokes, or pressures are missing')
        terms, errors, friction = terms[:, usable], errors[:, :, usable], friction.reshape(count, a, -1)[:, usable]
        if not (np.isfinite(errors).all() and np.isfinite(terms).all() and terms[..., LEVERS].any()):
            return self._unknown(f'no {self._actuator} that weighs has a lever on the contact')
        equations = terms, errors, friction, np.diag(rest[usable])
        if not without:
            self._learn(equations, noise)
        known = self._balance.errors or mass.errors     # the masses show one combination of the equations alone
        if known is not None:
            common = slice(len(known[0]))
            terms = terms - np.einsum('njak,k->naj', errors[..., common], known[0])
            errors[..., common] = errors[..., common] @ root(known[1])
        return self._solved((terms, *equations[1:]), mass, noise, without)

    def _learn(self, equations: tuple[np.ndarray, ...], noise: float) -> None:
        """Keep a window in which the mass counts, until it is sure that it was without a contact; see ``_solved``."""
        now = self._rows[-1][0]
        begun = now - 1e9 * self._window
        if self._free_ns is None or begun < self._free_ns or self._windows and begun < self._windows[-1][0]:
            return
        terms, errors, friction, rest = equations
        each, k = SHARES[:, None, None] * np.eye(terms.shape[1]), self._errors_count
        g, H, by_mass = (np.tensordot(SHARES, item, 1)
                         for item in (terms[..., 0], errors[:, 0, :, :k], terms[..., -1:]))
        R = covariance_of(each, errors[:, 0, :, k:], friction) + rest + noise ** 2 * by_mass @ by_mass.T
        self._windows.append((now, g, H, R))

    def _known_mass(self, without: str) -> Mass:
        """The mass that has counted; without one, any within the payload's limits."""
        if not without:
            assert self._mass is not None
            return self._mass[1]
        low, high = self._machine.payload_data.limits
        middle, half = (low + high) / 2, (high - low) / 2
        return Mass(middle, half, half, nan, nan, 0, '', half, errors=self._errors)

    def _solved(self, equations: tuple[np.ndarray, ...], mass: Mass, noise: float, without: str) -> ToolForce:
        """Of the means of equations ``g = A F - dg/dm dm``: terms (n, a, 5) at NODES, their derivatives (n, 5, a, k) by
        independent errors of standard deviation 1, those of g (n, a, c) by frictions, and (a, a), what is left of the
        covariance of the means of g. ``noise``, kg: standard deviation of dm, that of the ``mass``."""
        terms, errors, friction, rest = equations
        g, A, by_mass, each = terms[..., :1], terms[..., LEVERS], terms[..., -1:], np.eye(terms.shape[1])
        mean, change, each = np.tensordot(SHARES, A, 1), 0.0, SHARES[:, None, None] * each
        weighted = np.linalg.solve(covariance_of(each, errors[:, 0], friction) + rest, A)
        solve = np.linalg.pinv(A.transpose(0, 2, 1) @ weighted, SEEN, True) @ weighted.transpose(0, 2, 1)
        # the mean of A F is more than that of A times that of F where both turn
        shares = each - SHARES[:, None, None] * ((A - mean) @ solve)
        balance, lever = (shares @ g).sum(axis=0)[:, 0], (shares @ by_mass).sum(axis=0)[:, 0] * noise
        for _ in range(PASSES):
            forces = (solve @ (g + by_mass * change))[..., 0]        # at each of NODES
            error = errors[:, 0] - np.einsum('nj,njak->nak', forces, errors[:, LEVERS]) + errors[:, -1] * change
            R = covariance_of(shares, error, friction) + rest + np.outer(lever, lever)
            weighted = np.linalg.solve(R, mean)
            size, along = np.linalg.eigh(mean.T @ weighted)
            shown = size > SEEN * size[-1]
            some, unseen = along[:, shown], along[:, ~shown]
            covariance = (some / size[shown]) @ some.T
            force = covariance @ (weighted.T @ balance)
            across = np.linalg.solve(R, lever) - weighted @ (covariance @ (weighted.T @ lever))
            change = -noise * float(across @ balance)
        share = np.sqrt(max(1.0 - float(across @ lever), 0.0))      # of the mass's deviation that is left
        if without and share > TOLD:
            return self._unknown(without)
        best = along[:, -1] * np.sign(along[np.argmax(np.abs(along[:, -1])), -1])
        unknown = np.linalg.norm(unseen, axis=1) > ALIGNED
        component = float(best @ force)
        force[unknown] = covariance[unknown] = covariance[:, unknown] = nan
        axes = ' and '.join(axis for axis, no in zip(AXES, unknown) if no)
        reasons = (f'{without}: the mass is found with the force' if without else '',
                   f'no {self._actuator} that weighs shows {axes}' if axes else '')
        now = self._rows[-1][0]
        held = nan if without or self._mass is None else (now - self._mass[0]) * 1e-9
        found, stddev = (mass.mass + change, noise * share) if without else (mass.mass, mass.stddev)
        return ToolForce(self._body, self._point, force, covariance, best, component, float(size[-1] ** -0.5), found,
                         held, '; '.join(filter(None, reasons)), now, float(stddev))
