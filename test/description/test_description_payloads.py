# SPDX-License-Identifier: Apache-2.0
"""The section `payloads`: several by name, each as `payload`; what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from two_payloads import ONE, TWO, text_with, two_payloads

from mbse_ros.description.explain import machine_sections
from mbse_ros.description.load import known_machines, known_mechanisms, load_mechanism, parse_mechanism
from mbse_ros.description.model import content, fingerprint
from mbse_ros.errors import DescriptionError
from mbse_ros.machine import Machine


def test_several_by_name_in_the_order_of_the_file() -> None:
    machine = two_payloads()
    boom, jib = machine.description.payloads.values()
    assert (boom.body, boom.point, boom.limits) == ('boom', 'tip', (0.0, 500.0))
    assert (jib.mass.key, jib.limits) == ('payloads.jib.mass', (0.0, 1000.0))
    assert machine.description.payload is None and machine.description.every_payload == machine.description.payloads
    assert list(machine.parameters.states) == ['payloads.boom.mass', 'payloads.jib.mass']
    assert machine.payload.numel() == 2
    (table,) = [section for section in machine_sections(machine.description) if section.title == 'payload and base']
    assert [row.name for row in table.rows][:2] == ['payload boom', 'payload jib']
    assert machine.description.sensors['lift_a'].bias[0].stddev > 0      # deviations are assumed, as with one


def test_one_payload_is_as_it_was() -> None:
    """What its files say, and so their fingerprints and compiled functions, do not know of several."""
    for name in known_machines():
        description = load_mechanism(name)
        assert 'payloads' not in content(description)
        assert list(description.every_payload) == ['payload'] and description.every_payload['payload'].mass.key == (
            'payload.mass')
    assert fingerprint(load_mechanism('patu655_lift')) == '865d6255'


def test_extended_loads_on_one_body_add_up() -> None:
    """Radii of gyration on one body: kinetic energy of both, by the sum of the inertias."""
    def machine(*radii: str) -> Machine:
        items = '\n'.join(f'  p{k}: {{body: jib, center: [{k}, 0, 0], limits: [0, 9], gyration_radius: {radius}}}'
                          for k, radius in enumerate(radii))
        return Machine(parse_mechanism(text_with(f'payloads:\n{items}\n')))
    import casadi as ca
    matrices = []
    for it in (machine('0.5', '0.3'), machine('0.0', '0.0')):
        M = ca.Function('M', [it.system.q, it.system.values.symbol], [it.system.M])
        values = it.parameters.numbers(None, {'payloads.p0.mass': 2.0, 'payloads.p1.mass': 3.0})
        matrices.append(M(it.model.start.q, values).full())
    spin = matrices[0] - matrices[1]
    k = [it.system.names.index('boom_joint'), it.system.names.index('jib_joint')]
    assert spin[np.ix_(k, k)] == pytest.approx(2 * 0.5 ** 2 + 3 * 0.3 ** 2)


@pytest.mark.parametrize('section, key, expected', [
    (ONE + TWO, 'payloads', 'only one of the sections `payload` and `payloads`'),
    ('payloads:\n  a: {point: jib.tip, limits: [0, 9]}\n', 'payloads', 'two payloads or more; of one: the section'),
    ('payloads: []\n', 'payloads', 'a mapping from names to payloads'),
    (TWO.replace('boom.tip', 'jib.tip'), 'payloads.jib', 'another place than that of boom'),
    (TWO.replace('  jib:', '  payload:'), 'payloads.payload', 'another name'),
    (TWO.replace('  jib:', '  j-b:'), 'payloads.j-b', 'a name of letters, digits'),
    (TWO.replace('[0, 500]', '[500, 0]'), 'payloads.boom.limits', 'a lower and a higher mass'),
    (TWO.replace('[0, 500]', '[0, .nan]'), 'payloads.boom.limits[1]', 'a number'),
    (TWO.replace('[0, 500]}', '[0, 500], hanging: 2 m}'), 'payloads.boom.hanging', 'one of the keys point, limits'),
    (TWO.replace('limits: [0, 500]', 'limit: [0, 500]'), 'payloads.boom.limit', 'did you mean limits'),
    (TWO.replace('boom.tip', 'boom.tipp'), 'payloads.boom.point', 'did you mean'),
    (TWO.replace(', limits: [0, 500]', ''), 'payloads.boom.limits', 'this key, which is missing')])
def test_what_is_refused(section: str, key: str, expected: str) -> None:
    with pytest.raises(DescriptionError) as error:
        parse_mechanism(text_with(section), 'two.yaml')
    assert error.value.key == key and expected in str(error.value)


def test_payloads_need_cylinders() -> None:
    text = (known_mechanisms()['pendulum']).read_text() + TWO
    with pytest.raises(DescriptionError, match='payloads: .*the section `cylinders` as well'):
        parse_mechanism(text)
