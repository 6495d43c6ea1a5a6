# SPDX-License-Identifier: Apache-2.0
"""Generated mechanism files."""

from pathlib import Path

import pytest

from mbse_ros.description.generate import LARGEST, n_four_bar
from mbse_ros.description.load import parse_mechanism
from mbse_ros.errors import SettingError

FILE = Path(__file__).parents[2] / 'config' / 'mechanisms' / 'n_four_bar.yaml'


def test_the_file_is_what_the_generator_writes():
    assert FILE.read_text() == n_four_bar(2)


@pytest.mark.parametrize('n', [1, 2, 7, LARGEST])
def test_n_loops_have_2n_plus_1_rods(n):
    description = parse_mechanism(n_four_bar(n))
    cranks = [body for name, body in description.bodies.items() if name.startswith('crank')]
    assert (len(description.bodies), len(cranks), len(description.ground)) == (2 * n + 1, n + 1, n + 1)
    assert all(body.uniform and body.mass.value == 1.0 for body in description.bodies.values())
    assert all([item.value for item in list(body.points.values())[1]] == [1.0, 0.0]
               for body in description.bodies.values())
    assert description.initial.velocity['theta'].value == -1.0


@pytest.mark.parametrize('n', [0, -1, LARGEST + 1, 2.0, '2', True, None])
def test_other_numbers_of_loops_are_refused(n):
    with pytest.raises(SettingError, match='from 1 to 200'):
        n_four_bar(n)
