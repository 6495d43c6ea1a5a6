# SPDX-License-Identifier: Apache-2.0
"""Constraint rows in natural coordinates: value, Jacobian and its rate as in Blanco-Claraco et al., factor graphs,
appendix III."""

from __future__ import annotations

from dataclasses import dataclass, replace

import casadi as ca
import numpy as np
import pytest
from mechanism_numbers import Numbers
from mechanism_samples import angle, bar, body, four_bar, inverted_slider, joint, mechanism, pins, three_legs, trammel

from mbse_ros.description.model import MechanismDescription
from mbse_ros.dynamics.formulations.matrix_r import constraint_rates
from mbse_ros.errors import DescriptionError
from mbse_ros.mechanism.assembly import MechanismSystem, build_mechanism


@dataclass
class RandomState:
    """A system at random coordinates, on the constraints or not."""

    system: MechanismSystem
    q: dict[str, float]
    qd: dict[str, float]

    @classmethod
    def of(cls, description: MechanismDescription, **fixed: float) -> RandomState:
        system = build_mechanism(description, 'natural')
        rng = np.random.default_rng(4)
        q, qd = ({name: rng.uniform(-2, 2) for name in system.names} for _ in range(2))
        return cls(system, q | fixed, qd)

    def check(self, row: str, value: float, jacobian: dict[str, float], rate: dict[str, float]) -> None:
        """``Phi``, ``Phi_q`` and ``d Phi_q / dt`` of a row; coordinates that are not named have a zero there."""
        s, i = self.system, self.system.rows.index(row)
        J, _, c = constraint_rates(s)
        f = ca.Function('row', [s.q, s.qd, s.t], [s.Phi[i], J[i, :], c[i]])
        phi, J, c = (x.full() for x in f(list(self.q.values()), list(self.qd.values()), 0.0))
        assert phi.item() == pytest.approx(value, abs=1e-12)
        np.testing.assert_allclose(J.ravel(), [jacobian.get(name, 0.0) for name in s.names], atol=1e-12)
        assert c.item() == pytest.approx(-sum(rate[name] * self.qd[name] for name in rate), abs=1e-12)

    def points(self, *names: str) -> tuple[np.ndarray, np.ndarray]:
        """Places and velocities of points, one after the other."""
        labels = [f'{name}.{axis}' for name in names for axis in 'xy']
        return np.array([self.q[x] for x in labels]), np.array([self.qd[x] for x in labels])


def test_constant_distance() -> None:
    """Eq. 43, for two moving points; and for one on the ground."""
    here = RandomState.of(four_bar())
    (xi, yi, xj, yj), (ui, vi, uj, vj) = here.points('P1', 'P2')
    here.check('coupler.length', (xj - xi) ** 2 + (yj - yi) ** 2 - 64.0,
               {'P1.x': 2 * (xi - xj), 'P1.y': 2 * (yi - yj), 'P2.x': 2 * (xj - xi), 'P2.y': 2 * (yj - yi)},
               {'P1.x': 2 * (ui - uj), 'P1.y': 2 * (vi - vj), 'P2.x': 2 * (uj - ui), 'P2.y': 2 * (vj - vi)})
    here.check('crank.length', xi ** 2 + yi ** 2 - 4.0, {'P1.x': 2 * xi, 'P1.y': 2 * yi},
               {'P1.x': 2 * ui, 'P1.y': 2 * vi})


def test_massless_rod() -> None:
    """Eq. 43 of a joint."""
    ends = {'A': (0, 0), 'B': (3, 0), 'P': (1, 1), 'Q': (2.5, 1)}
    bars = [bar('left', 1.0, ('A', 'P'), ends), bar('right', 1.0, ('B', 'Q'), ends)]
    here = RandomState.of(mechanism('rods', bars, [*pins('ground.A left.A', 'ground.B right.B'), joint(
        'rod', 'distance', 'left.P', 'right.Q', length=1.5)], {'A': (0, 0), 'B': (3, 0)}))
    (xi, yi, xj, yj), (ui, vi, uj, vj) = here.points('left.P', 'right.Q')
    here.check('rod.length', (xj - xi) ** 2 + (yj - yi) ** 2 - 2.25,
               {'left.P.x': 2 * (xi - xj), 'left.P.y': 2 * (yi - yj), 'right.Q.x': 2 * (xj - xi),
                'right.Q.y': 2 * (yj - yi)},
               {'left.P.x': 2 * (ui - uj), 'left.P.y': 2 * (vi - vj), 'right.Q.x': 2 * (uj - ui),
                'right.Q.y': 2 * (vj - vi)})


def test_fixed_pinned_slider() -> None:
    """Eq. 44, with the points A and B of the line one metre apart."""
    here = RandomState.of(trammel())
    (x, y), _ = here.points('beam.Q')
    ax, ay = np.array([0.1, 1.0]) / np.hypot(0.1, 1.0)
    here.check('upright.side', ax * y - ay * x, {'beam.Q.x': -ay, 'beam.Q.y': ax}, {})


def test_mobile_pinned_slider() -> None:
    """Eq. 45, divided by the distance of the points i and j of the slot."""
    description = inverted_slider()
    slot = replace(description.joints['pin_in_arm'], axis=(1.0, 0.0))
    here = RandomState.of(replace(description, joints=description.joints | {'pin_in_arm': slot}))
    length = description.bodies['arm'].points['E'][0].value
    (x, y, xj, yj), (u, v, uj, vj) = here.points('crank.P', 'E')
    xi, yi = 0.0, -1.0
    here.check('pin_in_arm.side', ((xj - xi) * (y - yi) - (yj - yi) * (x - xi)) / length,
               {'crank.P.x': (yi - yj) / length, 'crank.P.y': (xj - xi) / length, 'E.x': (y - yi) / length,
                'E.y': (xi - x) / length},
               {'crank.P.x': -vj / length, 'crank.P.y': uj / length, 'E.x': v / length, 'E.y': -u / length})


@pytest.mark.parametrize('theta', [0.2, 1.0, np.pi / 2, 2.5, np.pi, 4.0, 5.0, -0.9])
def test_absolute_orientation_in_branches(theta: float) -> None:
    """Eqs. 46 where |sin| > 1/sqrt(2) and 47 elsewhere, divided by the length."""
    here = RandomState.of(four_bar(coordinates=[angle('theta', 'coupler', branches=True)]), theta=theta)
    (xi, yi, xj, yj), _ = here.points('P1', 'P2')
    omega, sine, cosine = here.qd['theta'], np.sin(theta), np.cos(theta)
    if abs(sine) > np.sqrt(0.5):
        here.check('theta', (xj - xi) / 8 - cosine, {'P1.x': -1 / 8, 'P2.x': 1 / 8, 'theta': sine},
                   {'theta': omega * cosine})
    else:
        here.check('theta', (yj - yi) / 8 - sine, {'P1.y': -1 / 8, 'P2.y': 1 / 8, 'theta': -cosine},
                   {'theta': omega * sine})


@pytest.mark.parametrize('theta', [0.0, 1.0, np.pi / 2, 2.5, np.pi, -np.pi / 2])
def test_absolute_orientation_in_one_form(theta: float) -> None:
    """``sin(theta) x - cos(theta) y`` of the unit vector along the bar."""
    here = RandomState.of(four_bar(coordinates=[angle('theta', 'coupler')]), theta=theta)
    (xi, yi, xj, yj), (ui, vi, uj, vj) = here.points('P1', 'P2')
    w, s, k = here.qd['theta'], np.sin(theta) / 8, np.cos(theta) / 8
    dx, dy, du, dv = xj - xi, yj - yi, uj - ui, vj - vi
    here.check('theta', s * dx - k * dy, {'P1.x': -s, 'P1.y': k, 'P2.x': s, 'P2.y': -k, 'theta': k * dx + s * dy},
               {'P1.x': -k * w, 'P1.y': -s * w, 'P2.x': k * w, 'P2.y': s * w,
                'theta': k * du + s * dv - w * (s * dx - k * dy)})


@pytest.mark.parametrize('phi', [0.1, 1.2, 2.9, -1.7])
def test_relative_angle_in_branches(phi: float) -> None:
    """By the scalar product of the bars where |sin| > 1/sqrt(2), by the cross product elsewhere."""
    here = RandomState.of(four_bar(coordinates=[angle('phi', 'crank', 'coupler', branches=True)], forces=[]), phi=phi)
    (xi, yi, xj, yj), (ui, vi, uj, vj) = here.points('P1', 'P2')
    dx, dy, du, dv = xj - xi, yj - yi, uj - ui, vj - vi
    w = here.qd['phi']
    if abs(np.sin(phi)) > np.sqrt(0.5):
        here.check('phi', (xi * dx + yi * dy) / 16 - np.cos(phi),
                   {'P1.x': (dx - xi) / 16, 'P1.y': (dy - yi) / 16, 'P2.x': xi / 16, 'P2.y': yi / 16,
                    'phi': np.sin(phi)},
                   {'P1.x': (du - ui) / 16, 'P1.y': (dv - vi) / 16, 'P2.x': ui / 16, 'P2.y': vi / 16,
                    'phi': w * np.cos(phi)})
    else:
        here.check('phi', (xi * dy - yi * dx) / 16 - np.sin(phi),
                   {'P1.x': (dy + yi) / 16, 'P1.y': (-dx - xi) / 16, 'P2.x': -yi / 16, 'P2.y': xi / 16,
                    'phi': -np.cos(phi)},
                   {'P1.x': (dv + vi) / 16, 'P1.y': (-du - ui) / 16, 'P2.x': -vi / 16, 'P2.y': ui / 16,
                    'phi': w * np.sin(phi)})


def test_rigidly_placed_point() -> None:
    """A third point by two linear rows: ``r = ri + a (rj - ri) + b n``, n across the line of the first two."""
    here = RandomState.of(three_legs())
    plate = three_legs().bodies['plate']
    r1, r2 = (np.array([item.value for item in plate.points[f'C{k}']]) for k in (1, 2))
    first, second = ('C1', 'C2') if 'plate.C1.x' in here.system.rows else ('C2', 'C1')
    basis, placed = (r2, r1) if first == 'C1' else (r1, r2)
    a, b = basis @ placed / (basis @ basis), (basis[0] * placed[1] - basis[1] * placed[0]) / (basis @ basis)
    (x0, y0, xj, yj, x, y), _ = here.points('C0', second, first)
    here.check(f'plate.{first}.x', x - x0 - a * (xj - x0) + b * (yj - y0),
               {f'{first}.x': 1, f'{second}.x': -a, f'{second}.y': b, 'C0.x': a - 1, 'C0.y': -b}, {})
    here.check(f'plate.{first}.y', y - y0 - a * (yj - y0) - b * (xj - x0),
               {f'{first}.y': 1, f'{second}.y': -a, f'{second}.x': -b, 'C0.y': a - 1, 'C0.x': b}, {})


def test_the_basis_is_the_longest() -> None:
    """A plate is carried by the shared points that are farthest apart, so that the third is placed accurately."""
    sketch = {'A': (0, 0), 'B': (0.01, 0), 'C': (1, 0.5), 'D': (2, 0)}
    plate = body('plate', 1.0, {'A': (0, 0), 'B': (0.01, 0), 'C': (1, 0.5)}, (0.3, 0.2), (0.1,))
    legs = [bar('one', 1.0, ('B', 'D'), sketch), bar('two', 1.0, ('C', 'D'), sketch)]
    system = build_mechanism(mechanism('plate', [plate, *legs], pins('ground.A plate.A', 'plate.B one.B',
                                                                     'plate.C two.C'), {'A': (0, 0)}))
    assert 'plate.B.x' in system.rows and 'plate.C.x' not in system.rows


def test_a_body_between_two_fixed_points() -> None:
    """Nothing moves and no row is left where it fits, a constraint that cannot hold where it does not."""
    def frame(length: float) -> MechanismSystem:
        sketch = {'A': (0, 0), 'B': (2, 0), 'P': (0, 1)}
        tie = body('tie', 1.0, {'A': (0, 0), 'B': (length, 0)})
        return build_mechanism(mechanism('frame', [tie, bar('arm', 1.0, ('A', 'P'), sketch)], pins(
            'ground.A tie.A', 'ground.B tie.B', 'ground.A arm.A'), {'A': (0, 0), 'B': (2, 0)}))
    assert 'tie.length' not in frame(2.0).rows
    wrong = frame(1.9)
    assert abs(float(wrong.Phi[wrong.rows.index('tie.length')])) > 0.1


def test_one_point_at_two_places_of_the_ground() -> None:
    arm = body('arm', 1.0, {'A': (0, 0), 'P': (1, 0)})
    ground = {'A': (0, 0), 'B': (0.1, 0)}
    description = mechanism('torn', [arm], pins('ground.A arm.A', 'ground.B arm.A'), ground)
    with pytest.raises(DescriptionError, match='one point of the ground'):
        build_mechanism(description)


@pytest.mark.parametrize('kind', ['natural', 'reference_point', 'relative'])
def test_second_solutions_are_on_the_wrong_side(kind: str) -> None:
    """An angle counted from the far end of its bar satisfies its row, and is found by ``sides``."""
    system = build_mechanism(four_bar(coordinates=[angle('theta', 'crank', branches=True), angle('phi', 'rocker')]),
                             kind)
    found = Numbers(system)
    sides = ca.Function('sides', [system.q, system.values.symbol], [system.sides])
    assert np.all(sides(found.start, []).full() > 0.9)
    if kind == 'natural':
        flipped = found.start.copy()
        flipped[system.names.index('phi')] += np.pi
        assert np.max(np.abs(found.residual(flipped)[0])) < 1e-10
        assert np.min(sides(flipped, []).full()) < -0.9
