# SPDX-License-Identifier: Apache-2.0
"""Mechanism files that are written by the program."""

from __future__ import annotations

from ..errors import DescriptionError, SettingError

CHAIN = 'n_four_bar'   # its name, as n_four_bar:N
LARGEST = 200      # loops; a larger chain would hold more than the reader of the files takes


def n_four_bar(n: int) -> str:
    """YAML of the four-bar mechanism with n loops, benchmark A02 of the IFToMM library of multibody problems.

    n + 1 vertical rods (the cranks) are on pins of the ground 1 m apart, n horizontal rods join their upper ends;
    all rods are uniform, 1 m and 1 kg. It starts with a speed of 1 m/s at the upper ends and then turns through the
    flat position, where all rods lie on one line and the mechanism could part into other motions. SettingError for n
    outside 1 to 200.
    """
    if isinstance(n, bool) or not isinstance(n, int) or not 1 <= n <= LARGEST:
        raise SettingError('n_four_bar', n, f'a whole number of loops from 1 to {LARGEST}')
    cranks, couplers = range(n + 1), range(n)
    lines = [
        '# SPDX-License-Identifier: Apache-2.0',
        f'# Written by mbse_ros.description.generate.n_four_bar({n}).',
        'format: mbse/mechanism/1',
        'name: n_four_bar',
        f'source: IFToMM benchmark A02, N four-bar mechanism, N = {n}',
        'gravity: 9.81 m/s^2',
        '',
        'points:',
        *(f'  A{i}: {{fixed: [{i}, 0]}}' for i in cranks),
        *(f'  B{i}: [{i}, 1]' for i in cranks),
        '',
        'bodies:',
        *(f'  crank_{i}: {{points: [A{i}, B{i}], length: 1 m, mass: 1 kg, uniform: true}}' for i in cranks),
        *(f'  coupler_{i}: {{points: [B{i}, B{i + 1}], length: 1 m, mass: 1 kg, uniform: true}}' for i in couplers),
        '',
        'named:',
        '  theta: {angle: crank_0}',
        '',
        'independent: [theta]',
        'initial:',
        '  position: {theta: pi/2}',
        '  velocity: {theta: -1 rad/s}          # 1 m/s at B0, to the right',
    ]
    return '\n'.join(lines) + '\n'


def chain_of(name: str) -> str:
    """Text of the generated chain 'n_four_bar:N'."""
    number = name.partition(':')[2]
    try:
        return n_four_bar(int(number))
    except (ValueError, SettingError) as error:
        raise DescriptionError(name, 'mechanism', number, f'{CHAIN}:N with a whole number of loops N from 1 to '
                               f'{LARGEST}, such as {CHAIN}:5') from error
