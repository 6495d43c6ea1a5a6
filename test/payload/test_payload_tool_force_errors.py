# SPDX-License-Identifier: Apache-2.0
"""What makes a force at the tool uncertain: noise, friction, numbers of the file, of which the masses of all poses say
something, and a mass that is found with it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from machine_variants import changed
from tool_force_by_hand import AREA, SETTINGS, STEP, held_still, known, lifted

from mbse_ros.machine import Machine, load_machine
from mbse_ros.payload.mass import Mass
from mbse_ros.payload.tool_force import CHANGES, ToolForce, ToolForces
from mbse_ros.payload.tool_force_equations import NODES, root

OFFSET = 'sensors.lift_piston.offset'
PSD = 1e-4      # MPa^2 s


@pytest.fixture(scope='module')
def lift() -> Machine:
    """A crane with one cylinder, touched at the tip of its boom."""
    return changed('patu655_lift', {'payload/contact': 'boom.tip'})


def test_what_no_model_knows_is_white_noise_over_the_window(lift: Machine) -> None:
    """Its mean with weights w = (1 - t^2)^2 has the variance of its density over the window times the mean of w^2 over
    the square of that of w."""
    samples, lever, tip = lifted(0.0, 40e3)
    two = [held_still(lift, samples, known(100.0), ToolForces(lift, replace(SETTINGS, force_psd=psd), 'vm'))
           for psd in (0.0, PSD)]
    t = np.linspace(-1.0, 1.0, 20001)
    w = (1 - t ** 2) ** 2
    variance = PSD / SETTINGS.force_window * np.mean(w ** 2) / w.mean() ** 2        # MPa^2
    assert two[1].component_stddev ** 2 - two[0].component_stddev ** 2 == pytest.approx(
        (AREA * 1e6 * lever / np.hypot(*tip)) ** 2 * variance, rel=1e-3)


def weighed(machine: Machine, found: float, left: float, slope: float) -> Mass:
    """300 kg with 5 kg of noise. The masses have ``found`` that the file's offset is so many deviations too large, and
    have ``left`` so many uncertain; ``slope``, kg: of the mass, for one deviation more in the file."""
    consider = machine.parameters.consider
    k = [machine.parameters.names[i] for i in consider].index(OFFSET)
    mean, covariance, slopes = np.zeros(len(consider)), np.eye(len(consider)), np.zeros(len(consider))
    mean[k], covariance[k, k], slopes[k] = found, left ** 2, slope
    mass = 300.0 - slope * found
    return Mass(mass, 9.0, 18.0, mass, mass, 9, 'open', 5.0, 9, 300.0, slopes, errors=(mean, covariance))


@pytest.mark.parametrize('slope', [0.0, 20.0])
def test_errors_that_the_masses_have_shown_are_subtracted(lift: Machine, slope: float) -> None:
    """As if samples, and the mass that was weighed with them, were without them; what is left of their deviation counts
    for the force and for the mass as one."""
    samples, p = lifted(0.1, 50e3)[0], lift.parameters
    stddev = p.stddev[p.names.index(OFFSET)]
    wrong = samples | {'pressure/lift_piston': samples['pressure/lift_piston'] + 1.5 * stddev}
    found = held_still(lift, wrong, weighed(lift, -1.5, 0.0, slope))
    right = held_still(lift, samples, replace(weighed(lift, 0.0, 0.0, slope), weighed=300.0 + 1.5 * slope))
    assert found.component == pytest.approx(right.component, rel=1e-4)
    assert found.mass == 300.0 + 1.5 * slope
    moved, heavier = (held_still(lift, *given).component for given in (
        (samples | {'pressure/lift_piston': samples['pressure/lift_piston'] + stddev}, known(300.0)),
        (samples, known(300.0 + slope))))
    none = held_still(lift, samples, known(300.0)).component
    # a larger offset in the file makes the pressures smaller, and the mass larger
    both = held_still(lift, samples, weighed(lift, 0.0, 0.5, slope)).component_stddev ** 2
    alone = held_still(lift, samples, weighed(lift, 0.0, 0.0, slope)).component_stddev ** 2
    assert both - alone == pytest.approx((0.5 * (moved - none - heavier + none)) ** 2, rel=0.02)


def test_a_mass_that_is_found_with_the_force_is_any_that_the_machine_may_carry(lift: Machine) -> None:
    """With the errors that the last masses have shown."""
    forces, samples = ToolForces(lift, SETTINGS, 'vm'), lifted(0.1, 50e3)[0]
    mass = weighed(lift, 1.5, 0.2, 0.0)
    held_still(lift, samples, mass, forces)
    values = np.array([samples[name] for name in lift.channels])
    for k in range(121, 200):
        found = forces.process(k * STEP, (np.zeros(60), values, 0 * values), False, False, None, True)
    assert not found.known and found.reason == CHANGES
    wide, (low, high) = forces._known_mass(CHANGES), lift.payload_data.limits
    assert (wide.mass - wide.stddev, wide.mass + wide.stddev) == (low, high) and wide.errors is mass.errors


def test_a_cylinder_that_leaves_its_stop_in_the_window_shows_nothing(lift: Machine) -> None:
    """From 3 mm off the end of the stroke on it does; friction and stop share the force there."""
    forces, samples, found = ToolForces(lift, SETTINGS, 'vm'), lifted(0.1, 50e3)[0], dict[int, ToolForce]()
    for k in range(1, 121):
        values = np.array([samples[name] if name != 'position/lift' else 2e-3 * max(k - 20, 0)
                           for name in lift.channels])
        found[k] = forces.process(k * STEP, (np.zeros(60), values, 0 * values), k == 1, False, known(100.0))
    assert found[120].known and 'at an end of their strokes' in found[62].reason and found[62].mass == 100.0


def equations(rng: np.random.Generator) -> tuple[np.ndarray, ...]:
    """Three equations that stay the same in the window, of a force of 20 kN and 300 kg where 1000 were expected: their
    levers are uncertain by 2 %, what the mass does by 5 %."""
    A = np.array([[1.0, 0.0, -0.5], [0.3, 0.0, 1.5], [-1.0, 0.0, 0.8]]) * rng.uniform(0.8, 1.2, (3, 3))
    by_mass = np.array([30.0, 5.0, 20.0]) * rng.uniform(0.8, 1.2, 3)
    g = A @ [18e3, 0.0, -9e3] + by_mass * 700.0
    terms = np.column_stack([g, A, by_mass])
    errors = np.zeros((5, 3, 12))
    errors[0, :, :3] = np.diag([150.0, 90.0, 200.0])
    errors[1:4, :, 3:9] = 0.02 * rng.standard_normal((3, 3, 6)) * (A.T != 0.0)[:, :, None]
    errors[4, :, 9:] = 0.05 * by_mass[:, None] * rng.standard_normal((3, 3))
    friction = np.diag([50.0, 0.0, 30.0])
    return (np.tile(terms, (len(NODES), 1, 1)), np.tile(errors, (len(NODES), 1, 1, 1)),
            np.tile(friction, (len(NODES), 1, 1)), np.diag([1e3, 2e3, 3e3]))


@pytest.mark.parametrize('seed', range(4))
def test_force_and_mass_are_the_least_squares_of_both(seed: int) -> None:
    """Of all equations and of what is known of the mass, weighted by the errors that they have at this solution."""
    forces, limit = ToolForces(load_machine('zx200'), SETTINGS, 'vm'), 900.0
    forces._rows.append((0, np.zeros(1)))
    given = equations(np.random.default_rng(seed))
    found = forces._solved(given, Mass(1000.0, limit, limit, np.nan, np.nan, 0, '', limit), limit, CHANGES)
    terms, errors, friction, rest = given[0][0], given[1][0], given[2][0], given[3]
    H = np.zeros((4, 3))
    H[:3] = np.column_stack([terms[:, [1, 3]], -terms[:, 4]])
    H[3, 2] = 1.0
    x = np.array([18e3, -9e3, -700.0])
    for _ in range(20):
        error = errors[0] - x[0] * errors[1] - x[1] * errors[3] + x[2] * errors[4]
        R = np.zeros((4, 4))
        R[:3, :3], R[3, 3] = error @ error.T + friction @ friction.T + rest, limit ** 2
        P = np.linalg.inv(H.T @ np.linalg.solve(R, H))
        x = P @ H.T @ np.linalg.solve(R, [*terms[:, 0], 0.0])
    assert found.force[[0, 2]] == pytest.approx(x[:2], rel=0.01) and np.isnan(found.force[1])
    assert found.mass == pytest.approx(1000.0 + x[2], abs=0.02 * np.sqrt(P[2, 2]))
    assert found.mass_stddev == pytest.approx(np.sqrt(P[2, 2]), rel=0.02)
    assert found.covariance[np.ix_([0, 2], [0, 2])] == pytest.approx(P[:2, :2], rel=0.04, abs=0.01 * P[:2, :2].max())
    largest = np.argmax(np.abs(found.direction))
    assert found.direction[largest] > 0.0 and found.component == pytest.approx(
        found.direction[[0, 2]] @ found.force[[0, 2]])


def test_the_place_of_the_load_counts() -> None:
    """20 mm along the boom, of 300 kg."""
    samples, _, tip = lifted(0.0, 40e3)
    exact, wide = (held_still(changed('patu655_lift', {'payload': {
        'body': 'boom', 'contact': 'boom.tip', 'limits': ['0 kg', '1000 kg'], 'center': {
            'value': ['2.89 m', '0 m', '0.0246 m'], 'stddev': [stddev, '0 mm', '0 mm']}}}), samples, known(300.0),
        steps=90).component_stddev for stddev in ('1e-6 mm', '20 mm'))
    assert wide ** 2 - exact ** 2 == pytest.approx((300.0 * 9.8066 * 0.02 / np.hypot(*tip)) ** 2, rel=0.02)


def test_turns_that_a_sensor_does_not_count_are_those_of_the_state(lift: Machine) -> None:
    forces = ToolForces(lift, SETTINGS, 'vm')
    forces._turns = [0]
    angles = np.array([[3.0, 3.0], [3.1, 3.1], [-3.1, -3.1]])       # the second column counts its turns
    found = forces._counted(angles, [0, 1], np.array([3.18 - 4 * np.pi, 0.0]))
    assert found[:, 0] == pytest.approx(np.array([3.0, 3.1, 2 * np.pi - 3.1]) - 4 * np.pi)
    assert found[:, 1] == pytest.approx([3.0, 3.1, -3.1])


def test_a_root_of_a_covariance_is_one_also_where_something_is_exact() -> None:
    covariance = np.array([[1.0, 0.3, 0.0], [0.3, 0.25, 0.0], [0.0, 0.0, 0.0]])
    assert root(covariance) @ root(covariance).T == pytest.approx(covariance, abs=1e-7)
