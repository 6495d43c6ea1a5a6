# SPDX-License-Identifier: Apache-2.0
"""Short machine files: what is typical where the file says nothing, and what it says instead."""

from __future__ import annotations

from math import pi

import pytest
import yaml
from linkage_mutations import REMOVED
from machine_variants import changed, tree_of

from mbse_ros.calibration.free import freed
from mbse_ros.description.assumptions import is_assumed
from mbse_ros.description.basics import scalars, uncertain
from mbse_ros.description.edit import Number, with_numbers
from mbse_ros.description.explain import explain
from mbse_ros.description.load import parse_mechanism
from mbse_ros.description.typical import typical_friction, typical_oil
from mbse_ros.errors import DescriptionError, SettingError
from mbse_ros.simulation.crane import plant_machine

FRICTION, NONE = 'cylinders/lift/friction', {'hydraulics': REMOVED}


def test_a_machine_without_hydraulics_and_friction_has_typical_ones_that_are_marked_as_assumed() -> None:
    machine = changed('zx200', {'hydraulics': REMOVED, **{
        f'cylinders/{name}/friction': REMOVED for name in ('boom', 'arm', 'bucket')}})
    full = changed('zx200', {})
    assert (machine.volumes, machine.valves) == (full.volumes, full.valves) and not machine.modelled_valves
    marked = {key for key, number in uncertain(machine.description).items() if is_assumed(number)}
    hoses = {f'hydraulics.volumes.{name}.hoses[0].volume' for name in machine.volumes}
    assert marked >= hoses | {'hydraulics.oil_bulk_modulus', 'cylinders.arm.friction.scale'}
    rows = {row.name: row.note for section in explain(machine.description) for row in section.rows}
    assert 'assumed' in rows['cylinders.arm.friction.scale'] and 'assumed' in rows['hydraulics.oil_bulk_modulus']
    for name, ours in full.description.cylinders.items():      # which are those of a machine of this size
        typical = machine.description.cylinders[name].friction
        for part in ('coulomb', 'viscous', 'pressure_difference'):
            ratio = getattr(typical, part).value / getattr(ours.friction, part).value
            assert 0.5 < ratio < 2.0, (name, part)
        assert typical.scale.value == 1.0 and typical.scale.stddev == 0.5
    for name, valve in full.hydraulics.valves.items():
        assert valve.nominal_flow and machine.hydraulics.valves[name].nominal_flow
        assert 0.5 < machine.hydraulics.valves[name].nominal_flow.value / valve.nominal_flow.value < 2.0
    assert set(plant_machine(machine).modelled_valves) == set(full.valves)


def test_friction_by_its_name() -> None:
    bore = changed('patu655_lift', {}).description.cylinders['lift'].bore.value
    for value in ('typical', REMOVED, {'preset': 'typical'}):
        friction = changed('patu655_lift', {FRICTION: value}).description.cylinders['lift'].friction
        assert friction == typical_friction('lift', bore) and is_assumed(friction.scale)
    assert friction.pressure_difference.value == pytest.approx(0.05 * pi / 4 * 0.1 ** 2)
    other = changed('patu655_lift', {FRICTION: {'preset': 'typical', 'viscous': '1 kN*s/m', 'scale': {
        'value': 0.8, 'stddev': '20 %'}}}).description.cylinders['lift'].friction
    assert (other.viscous.value, other.scale.value, other.coulomb) == (1e3, 0.8, friction.coulomb)
    assert other.scale.stddev == pytest.approx(0.16) and not is_assumed(other.scale)


def test_oil_by_its_name() -> None:
    """Mineral oil is softer where it is warm and thin."""
    by_key = {'hydraulics/oil_bulk_modulus': REMOVED}
    oil = {text: changed('patu655_lift', {**by_key, 'hydraulics/oil': text}).hydraulics.oil_bulk_modulus
           for text in ('hlp46 at 40 degC', 'hlp46', 'hlp46 at -5.5 degC', 'hlp22 at 40 degC', 'hlp46 at 80 °C')}
    moduli = [number.value for number in oil.values()]
    assert moduli[0] == moduli[1] == typical_oil().value == pytest.approx(1.69e9)
    assert moduli[2] > moduli[0] > moduli[3] > moduli[4] > 1.2e9
    assert all(number.stddev == pytest.approx(0.1 * number.value) for number in oil.values())
    assert not is_assumed(oil['hlp46']) and is_assumed(changed('patu655_lift', by_key).hydraulics.oil_bulk_modulus)
    for text, expected in (('hlp64 at 40 degC', 'did you mean hlp68?'), ('hlp46 at 400 degC', '120 degC'),
                           ('hlp46 at 40 K', 'hlp46 at 40 degC'), ('', 'a grade')):
        with pytest.raises(DescriptionError) as caught:
            changed('patu655_lift', {**by_key, 'hydraulics/oil': text})
        assert caught.value.key == 'hydraulics.oil' and expected in caught.value.expected


def test_what_is_missing_of_a_circuit_is_typical_and_what_is_there_stays() -> None:
    full, part = changed('zx200', {}).hydraulics, 'hydraulics/volumes'
    one = changed('zx200', {f'{part}/arm_rod': REMOVED, f'{part}/arm_piston': REMOVED}).hydraulics
    assert {name: one.volumes[name] for name in full.volumes if 'arm' not in name} == {
        name: volume for name, volume in full.volumes.items() if 'arm' not in name}
    assert is_assumed(one.volumes['arm_rod'].hoses[0].volume) and one.valves['arm_valve'].kind == 'orifice'
    two = changed('zx200', {'hydraulics/valves/arm_valve': REMOVED}).hydraulics
    assert two.valves['arm_valve'].kind == 'unknown' and (two.valves['boom_valve'], two.supplies) == (
        full.valves['boom_valve'], full.supplies)
    three = changed('patu655_lift', {'hydraulics': {'supplies': {'P': '18 MPa', 'T': '0.3 MPa'}}}).hydraulics
    assert (three.valves['lift_valve'].pump, three.valves['lift_valve'].tank) == ('P', 'T')
    four = changed('patu655_lift', {'hydraulics': {'supplies': {'tank': '0.3 MPa'}}}).hydraulics
    assert {name: number.value for name, number in four.supplies.items()} == {'tank': 0.3e6, 'pump': 25e6}
    stated = {'kind': 'unknown', 'ports': {'a': 'lift_piston', 'b': 'lift_rod'}}
    five = changed('patu655_lift', {'hydraulics': {'valves': {'mine': stated}}}).hydraulics
    assert list(five.valves) == ['mine'] and not five.supplies


def test_a_machine_whose_motion_alone_is_measured_has_no_circuit() -> None:
    machine = changed('patu655_lift', {'hydraulics': REMOVED, FRICTION: REMOVED, 'sensors/lift_piston': REMOVED,
                                       'sensors/lift_rod': REMOVED})
    assert not machine.volumes and machine.description.cylinders['lift'].friction.coulomb.value == 0.0


@pytest.mark.parametrize('friction', [REMOVED, 'typical', {'preset': 'typical', 'viscous': '1 kN*s/m'}])
def test_a_calibration_writes_the_friction_of_a_short_file(friction: object) -> None:
    tree = tree_of('patu655_lift')
    if friction is REMOVED:
        del tree['cylinders']['lift']['friction']
    else:
        tree['cylinders']['lift']['friction'] = friction
    for flow in (None, True):
        text = yaml.safe_dump(tree, sort_keys=False, default_flow_style=flow)
        new = with_numbers(text, 'crane.yaml', {'cylinders.lift.friction.scale': Number(1.3, 0.1, 'calibrated')})
        before, after = parse_mechanism(text), parse_mechanism(new)
        old, new_friction = (item.cylinders['lift'].friction for item in (before, after))
        assert (new_friction.scale.value, new_friction.scale.stddev) == (1.3, 0.1)
        assert new_friction.viscous == old.viscous
        other = scalars(parse_mechanism(freed(text, 'crane.yaml', ['cylinders.*.friction.scale=30 %'])))
        assert other['cylinders.lift.friction.scale'].stddev == pytest.approx(0.3)
    del tree['hydraulics']
    with pytest.raises(SettingError, match='in the text of the file'):
        freed(yaml.safe_dump(tree), 'crane.yaml', ['hydraulics.oil_bulk_modulus=20 %'])
