# SPDX-License-Identifier: Apache-2.0
"""Errors of the file from windows without a force."""

import numpy as np
import pytest
from machine_variants import changed
from tool_force_by_hand import SETTINGS, STEP, held_still, known, lifted

from mbse_ros.payload.tool_force import ToolForces
from mbse_ros.payload.tool_force_equations import MEMORY, VARYING, FreeBalance

COUNT, R = 4, np.diag([0.5, 2.0])


def windows(seed: int, number: int, errors: np.ndarray) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Residuals that such errors make in as many poses, their derivatives, and the covariance of their noise."""
    rng = np.random.default_rng(seed)
    slopes = rng.standard_normal((number, 2, COUNT))
    return [(H @ errors + np.sqrt(np.diag(R)) * rng.standard_normal(2), H, R) for H in slopes]


def test_it_is_the_least_squares_of_all_windows_and_the_prior() -> None:
    """Without forgetting, that of one system of equations; a share of each error is not constant."""
    errors = np.array([1.0, -0.5, 0.3, -1.2])
    balance, taken = FreeBalance(COUNT), windows(1, 6, errors)
    assert all(balance.take(*window, 0.0) for window in taken) and balance.errors is not None
    rows = [np.eye(COUNT), *(np.linalg.solve(np.sqrt(R), H) for _, H, _ in taken)]
    values = [np.zeros(COUNT), *(np.linalg.solve(np.sqrt(R), g) for g, _, _ in taken)]
    A = np.vstack(rows)
    assert balance.errors[0] == pytest.approx(np.linalg.lstsq(A, np.concatenate(values), rcond=None)[0])
    P = np.linalg.inv(A.T @ A)
    assert balance.errors[1] == pytest.approx((1 - VARYING ** 2) * P + VARYING ** 2 * np.eye(COUNT))


def test_a_window_that_a_force_explains_better_does_not_count() -> None:
    balance = FreeBalance(COUNT)
    (g, H, noise), *others = windows(2, 20, np.zeros(COUNT))
    assert all(balance.take(*window, 0.0) for window in others)
    before = balance.errors
    assert not balance.take(g + [9.0, 0.0], H, noise, 0.0) and balance.errors is before
    assert balance.take(g, H, noise, 0.0)


def test_old_windows_are_forgotten() -> None:
    """After one memory a window of the same pose tells 1 / (1 + e) of what both do less."""
    twice = FreeBalance(1)
    for _ in range(2):
        twice.take(np.array([0.1]), np.eye(1), np.eye(1), MEMORY)
    assert twice.errors is not None
    assert twice.errors[0] == pytest.approx([0.1 * (1 + np.exp(-1)) / (2 + np.exp(-1))])


@pytest.mark.parametrize('touched', [False, True])
def test_the_force_is_what_has_changed_since_free_motion(touched: bool) -> None:
    """A pressure is off by two deviations while the machine moves freely for 5 s: that is not in a force after it. A
    window that a contact may have been in, because the mass does not count just after it, does not count."""
    machine = changed('patu655_lift', {
        'payload/contact': 'boom.tip', 'sensors/lift_piston/offset': {'value': '0 kPa', 'stddev': '1000 kPa'},
        'cylinders/lift/friction': {'coulomb': '1 N', 'static': '1 N', 'transition_velocity': '5 mm/s',
                                    'viscous': '330 N*s/m', 'scale': {'value': 1, 'stddev': '10 %'}}})
    plain = held_still(machine, lifted(0.1, 0.0)[0], known(100.0), steps=60)
    slope = (held_still(machine, lifted(0.1, 1e3)[0], known(100.0), steps=60).component - plain.component) / 1e3
    balanced = lifted(0.1, -plain.component / slope)[0]
    off = balanced | {'pressure/lift_piston': balanced['pressure/lift_piston'] + 2e6}
    before = held_still(machine, off, known(100.0), steps=60)
    forces, values = ToolForces(machine, SETTINGS, 'vm'), np.array([off[name] for name in machine.channels])
    for k in range(1, 501):
        counts = known(100.0) if not touched or k % 90 else None
        forces.process(k * STEP, (np.zeros(60), values, 0 * values), k == 1, False, counts)
    pushed = values + np.array([name == 'pressure/lift_piston' for name in machine.channels]) * 1e6
    for k in range(501, 561):
        found = forces.process(k * STEP, (np.zeros(60), pushed, 0 * values), False, False, None, False, True)
    if touched:
        assert found.component == pytest.approx(1.5 * before.component, rel=1e-6)
        return
    assert found.component == pytest.approx(0.5 * before.component, rel=0.05)
    assert found.component_stddev < 0.3 * before.component_stddev
