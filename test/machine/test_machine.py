# SPDX-License-Identifier: Apache-2.0
"""The machine: names and orders, valve kinds, outlines, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import casadi as ca
import numpy as np
import pytest
from core_support import TWO_CYLINDERS, crane, two_cylinders
from lagrange_by_hand import Lagrange

from mbse_ros.errors import DescriptionError, PositionProblemError, SettingError
from mbse_ros.machine import Machine, load_machine, with_valves
from mbse_ros.machine.find_machine import NEEDED


def test_names_in_the_order_of_all_vectors() -> None:
    machine = two_cylinders()
    assert machine.cylinders == ('lift', 'tilt') and machine.valves == ('lift_valve', 'tilt_valve')
    assert machine.volumes == ('lift_a', 'lift_b', 'tilt_a', 'tilt_b')
    assert machine.channels == ('position/lift', 'position/tilt', 'pressure/lift_a', 'pressure/lift_b',
                                'pressure/tilt_a', 'pressure/tilt_b')
    assert machine.commands == ('command/lift_valve', 'command/tilt_valve')
    np.testing.assert_array_equal(machine.stroke, [[0, 0.535], [0, 0.5]])


def test_an_unknown_valve_needs_no_command() -> None:
    machine = crane('unknown')
    assert machine.commands == machine.modelled_valves == ()
    assert machine.unknown_valves == ('lift_valve',)


def test_valve_kinds_may_be_mixed() -> None:
    d = two_cylinders().description
    valves = d.hydraulics.valves
    mixed = {'lift_valve': replace(valves['lift_valve'], kind='unknown'), 'tilt_valve': valves['tilt_valve']}
    machine = Machine(replace(d, hydraulics=replace(d.hydraulics, valves=mixed)))
    assert machine.commands == ('command/tilt_valve',)


def test_a_volume_without_a_sensor_is_no_channel() -> None:
    d = crane().description
    machine = Machine(replace(d, sensors={name: s for name, s in d.sensors.items() if name != 'lift_piston'}))
    assert machine.channels == ('position/lift', 'pressure/lift_rod')


def test_a_valve_without_data_is_no_orifice() -> None:
    d = load_machine('patu655_measured').description
    with pytest.raises(DescriptionError) as caught:
        with_valves(d, 'orifice')
    assert 'nominal_flow' in caught.value.key
    with pytest.raises(SettingError, match='^valve: got .*orifice, compensated, unknown; did you mean unknown'):
        with_valves(d, 'unknow')


@pytest.mark.parametrize('key', NEEDED)
def test_a_valve_that_lacks_one_number_is_no_orifice(key: str) -> None:
    """Each is named, as for a file that says `kind: orifice`."""
    d, part = crane('unknown').description, key.removeprefix('ports.')
    valve = replace(d.hydraulics.valves['lift_valve'], **{part: '' if key.startswith('ports') else None})
    less = replace(d, hydraulics=replace(d.hydraulics, valves={'lift_valve': valve}))
    assert Machine(less).unknown_valves == ('lift_valve',)
    with pytest.raises(DescriptionError) as caught:
        with_valves(less, 'orifice')
    assert caught.value.key == f'hydraulics.valves.lift_valve.{key}'


def test_a_valve_whose_ports_are_swapped_is_no_orifice() -> None:
    d = crane('unknown').description
    valve = d.hydraulics.valves['lift_valve']
    swapped = {'lift_valve': replace(valve, pump=valve.tank, tank=valve.pump)}
    with pytest.raises(DescriptionError, match='a supply of higher pressure than the tank'):
        with_valves(replace(d, hydraulics=replace(d.hydraulics, valves=swapped)), 'orifice')


def test_machines_load_by_name_or_path(tmp_path: Path) -> None:
    path = tmp_path / 'two.yaml'
    path.write_text(TWO_CYLINDERS)
    assert load_machine(path).name == load_machine(str(path), 'unknown').name == 'two_cylinders'
    assert load_machine('patu655_lift').name == 'patu655_lift'
    with pytest.raises(DescriptionError) as caught:
        load_machine('patu')
    assert 'patu655_lift' in caught.value.expected and 'lut_simple_crane' in caught.value.expected
    with pytest.raises(DescriptionError):
        load_machine(tmp_path / 'none.yaml')


@pytest.mark.parametrize('share', [0.0, 0.3, 1.0])
def test_outline_stands_where_the_bodies_are(share: float) -> None:
    machine = two_cylinders()
    z = machine.stroke @ [0.5, 0.5] * 0.5 + share * 0.1
    lines = machine.outline(z)
    q, hand = machine.position(z), Lagrange(machine.description)
    placed = hand.at(dict(zip(machine.system.names, q)))
    at = lambda body, point: hand.place(body, point, placed)     # noqa: E731
    assert set(lines) == {'boom', 'jib', 'cylinder/lift', 'cylinder/tilt', 'payload'}
    points = machine.description.bodies['boom'].points     # no outline is given: all of them
    np.testing.assert_allclose(lines['boom'], [at('boom', name) for name in points], atol=1e-12)
    np.testing.assert_allclose(lines['payload'], [at('jib', 'tip')], atol=1e-12)
    base, gland, eye = lines['cylinder/tilt']
    np.testing.assert_allclose([base, eye], [at('boom', 'base'), at('jib', 'eye')], atol=1e-12)
    assert np.linalg.norm(gland - base) == pytest.approx(1.1) and np.linalg.norm(eye - gland) == pytest.approx(z[1])


def test_outline_of_the_crane_and_out_of_reach() -> None:
    lines = crane().outline(np.array([0.2]))
    assert lines['boom'].shape == (4, 3)
    np.testing.assert_array_equal(lines['boom'][0], lines['boom'][3])
    assert np.linalg.norm(lines['boom'][2]) == pytest.approx(np.hypot(2.89, 0.0246))
    with pytest.raises(PositionProblemError):
        crane().outline(np.array([2.0]))


def test_all_uncertain_numbers_have_a_symbol_before_any_function_exists() -> None:
    """The parameters of mechanism and hydraulics, and none more once models were built from them."""
    machine = load_machine('patu655_lift')
    before = list(machine.parameters.names)
    assert {'bodies.boom.mass', 'hydraulics.oil_bulk_modulus', 'cylinders.lift.friction.scale'} < set(before)
    machine.outline(np.array([0.2]))
    _ = machine.reduced, machine.newton, machine.circuit.hydraulic_forces(ca.SX(2, 1))
    assert [name for name in machine.system.values.names if name != 'payload.mass'] == before
    assert list(machine.parameters.names) == before and list(machine.parameters.states) == ['payload.mass']
