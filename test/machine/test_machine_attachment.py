# SPDX-License-Identifier: Apache-2.0
"""A machine with another tool: its forces are those of the two masses; what cannot be is refused."""

from __future__ import annotations

from dataclasses import replace

import casadi as ca
import numpy as np
import pytest
from core_support import crane
from scale_support import excavator

from mbse_ros.description.basics import Scalar
from mbse_ros.description.machine_parts import Attachment, Calibration
from mbse_ros.description.model import MechanismDescription
from mbse_ros.dynamics.forces.inertial_forces import inertial_forces
from mbse_ros.errors import DescriptionError
from mbse_ros.machine.attachment import with_attachment
from mbse_ros.mechanism.assembly import build_mechanism

TOOL = Attachment('grading', 150.0, 3.0, ((0.5, 0.0), (0.1, 0.0), (-0.3, 0.02)))
KEY = 'bodies.bucket.mass'


def forces(description: MechanismDescription, mass: float) -> np.ndarray:
    """``M qdd - Q`` (n,) at drawn coordinates and rates, of all bodies and a load."""
    system = build_mechanism(description)
    q, qd, qdd = np.random.default_rng(3).normal(size=(3, system.n))
    names, numbers = system.values.names, system.values.mean
    numbers[names.index('payload.mass')] = mass
    function = ca.Function('forces', [system.q, system.qd, system.values.symbol],
                           [inertial_forces(system, ca.DM(qdd))])
    return function(q, qd, numbers).full().ravel()


@pytest.mark.parametrize('tool', [TOOL, replace(TOOL, center=()), replace(TOOL, mass=-90.0)],
                         ids=['its own place', 'that of the load', 'lighter'])
def test_forces_are_those_of_a_load_there(tool) -> None:
    plain = excavator().description
    center = plain.payload.center if not tool.center else tuple(Scalar(value) for value, _ in tool.center)
    there = replace(plain, payload=replace(plain.payload, center=center))
    expected = forces(there, tool.mass)
    np.testing.assert_allclose(forces(with_attachment(plain, tool), 0.0), expected, rtol=1e-9, atol=1e-6)
    assert np.abs(expected - forces(plain, 0.0)).max() > 10.0


def test_deviations_add_up_and_a_calibration_stays_one() -> None:
    plain = replace(excavator().description, calibration=Calibration(
        (KEY, 'bodies.arm.mass'), ((1.0,), (-0.6, 0.8))))
    found = with_attachment(plain, replace(TOOL, stddev=9.0))
    mass, old = found.bodies['bucket'].mass, plain.bodies['bucket'].mass
    assert (mass.value, mass.stddev) == (old.value + 150.0, pytest.approx(np.hypot(old.stddev, 9.0)))
    rows = np.zeros((2, 2))
    for k, row in enumerate(found.calibration.rows):
        rows[k, :k + 1] = row
    both = -0.6 * old.stddev / mass.stddev
    np.testing.assert_allclose(rows @ rows.T, [[1.0, both], [both, 1.0]], rtol=1e-12)
    place = found.bodies['bucket'].center_of_mass[2]
    share, apart = 150.0 / mass.value, -0.3 - 0.06898
    assert place.stddev == pytest.approx(np.sqrt(
        (share * 0.02) ** 2 + (share * apart * old.stddev / mass.value) ** 2
        + ((1.0 - share) * apart * 9.0 / mass.value) ** 2))


@pytest.mark.parametrize('tool, change, said', [
    (replace(TOOL, mass=-660.0), {}, 'more than -660 kg'), (replace(TOOL, mass=-500.0), {}, 'nearer'),
    (replace(TOOL, center=((0.0, 0.0),) * 2), {}, '3 numbers'), (TOOL, {'payload': None}, 'carries the load'),
    (TOOL, {'attachment': TOOL}, 'no other attachment')])
def test_what_is_refused(tool, change, said) -> None:
    with pytest.raises(DescriptionError, match=said):
        with_attachment(replace(excavator().description, **change), tool)


def test_arithmetic_of_the_body_is_refused() -> None:
    described = crane().description
    boom = described.bodies[described.payload.body]
    changed = replace(boom, mass=replace(boom.mass, text='2*m'))
    with pytest.raises(DescriptionError, match='plain numbers'):
        with_attachment(replace(described, bodies={**described.bodies, boom.name: changed}), TOOL)
