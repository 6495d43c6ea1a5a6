# SPDX-License-Identifier: Apache-2.0
"""The grade of a calibration: motion left out of the fit, limits, and the accuracy over the work area."""

from __future__ import annotations

import math
from dataclasses import replace

import casadi as ca
import numpy as np
import pytest
from calibration_support import LOAD, TRUE, both, crane, series

from mbse_ros.calibration.fit import CalibrationProblem
from mbse_ros.calibration.grade import check_limits, graded
from mbse_ros.calibration.held_out import NORMAL, HeldOut, held_out, widening
from mbse_ros.description.load import known_machines, parse_mechanism
from mbse_ros.errors import SettingError
from mbse_ros.filters.force_balance import force_balance
from mbse_ros.filters.hydraulic_state import state_names
from mbse_ros.filters.observability.machine import mass_accuracy
from mbse_ros.filters.observability.mass_map import mass_map
from mbse_ros.machine import Machine
from mbse_ros.offline.calibration.calibration_bags import Recording, calibrated
from mbse_ros.offline.calibration.calibration_result import Calibration


def block(error: float = 0.0, stddev: float = 1.0, inside: float = 1.0) -> HeldOut:
    return HeldOut('bag', 0.0, 1.0, 20, 100.0, 100.0, inside, error, stddev)


def test_a_block_left_out_is_as_a_fit_without_it() -> None:
    """Errors of forces and mass by a linear step are those of least squares solved again without the block."""
    found, problem = both()
    problem.noise = found.noise
    blocks = held_out(problem, found)
    assert [item.log for item in blocks] == ['empty', 'empty', 'load'] and sum(item.count for item in blocks) == 50
    for item in blocks:
        log = next(log for log in problem.logs if log.name == item.log)
        left = (log.moments.t < item.begin) | (log.moments.t > item.end)
        rest = [replace(one, moments=one.moments.part(left)) if one is log else one for one in problem.logs]
        other = CalibrationProblem(problem.balance, rest)
        other.noise = problem.noise
        u = other.solve()
        part = log.moments.part(~left)
        own, mass = part.counts[:, 0], problem.mass(log, u)
        g, _, by_mass = problem.balance.terms(part, problem.numbers(u), np.full(len(part.X), mass))
        missing = (g[:, 0] / part.levers[:, 0])[own]
        assert item.count == own.sum() and item.missing == pytest.approx(np.sqrt(np.mean(missing ** 2)), rel=0.02)
        weight = (by_mass[:, 0] / part.variance[:, 0])[own]
        error = -float(weight @ g[own, 0]) / float(weight @ by_mass[own, 0])
        assert item.mass_error == pytest.approx(error, abs=0.03 * item.mass_stddev)
        assert item.inside > 0.9


@pytest.mark.parametrize('trouble, blocks, half, color, why', [
    ('', [block()] * 5, 9.0, 'green', ''),
    ('', [block()] * 5, 11.0, 'amber', '1.1 % of full scale, 1 % or less is green'),
    ('', [block()] * 5, 31.0, 'red', '3.1 % of full scale'),
    ('', [block()] * 5, math.inf, 'red', 'the mass does not show'),
    ('', [block(2.0), block(-2.5), block(2.0)], 4.0, 'amber', '2.2 times as far off as stated'),
    ('', [block(2.0), block(-2.5), block(2.0)], 15.0, 'red', '3.3 % of full scale'),
    ('', [block(inside=0.97), block(inside=0.8)], 4.0, 'amber', '88% of the forces left out'),
    ('', [block(inside=0.7)] * 2, 4.0, 'red', 'the deviations are too small'),
    ('', [], 4.0, 'amber', 'nothing tests the numbers'),
    ('not good', [block()] * 5, 4.0, 'red', 'not good')])
def test_the_colour_and_why(trouble: str, blocks: list[HeldOut], half: float, color: str, why: str) -> None:
    grade = graded(trouble, blocks, half, 1000.0)
    assert grade.color == color and why in '; '.join(grade.reasons) and bool(grade.reasons) == (color != 'green')


def test_limits_are_settings() -> None:
    assert graded('', [block()] * 5, 11.0, 1000.0, check_limits((2, 4))).color == 'green'
    for wrong in ((0.0, 1.0), (3.0, 1.0), (1.0,), (1.0, 101.0)):
        with pytest.raises(SettingError, match='limits'):
            check_limits(wrong)


def test_without_a_payload_the_forces_alone_count() -> None:
    blocks = [block(math.nan, math.nan)] * 3
    assert graded('', blocks, math.nan, math.nan).color == 'green' and widening(blocks) == 1.0
    assert graded('', [block(math.nan, math.nan, 0.8)] * 3, math.nan, math.nan).color == 'amber'


def test_chance_does_not_widen() -> None:
    """Up to the 95 % point of chi-square: 2.60 of 3 squares."""
    assert widening([block(1.6)] * 3) == 1.0 and widening([block(1.7)] * 3) == pytest.approx(1.7)


@pytest.fixture(scope='module')
def found() -> Calibration:
    c = crane()
    bags = [Recording('empty', series(0.0), '2026-02-01'), Recording('load', series(TRUE), '2026-02-03')]
    return calibrated(c.machine, c.text, bags, {'load': LOAD}, c.balance)


def test_the_map_is_of_the_new_file(found: Calibration) -> None:
    """Narrower than that of the file before; its best and worst pose are in words and in the JSON."""
    own, before = found.mass_map, mass_map(found.machine)
    assert own is not None and own.middle < 0.5 * before.middle
    said = found.to_json()['mass_map']
    assert len(said['poses']) == len(own.z) == 41
    halves = [item['half_width'] for item in said['poses']]
    assert said['best']['half_width'] == min(halves) and said['worst']['half_width'] == max(halves)
    k = int(np.argmax(halves))
    q = found.machine.position(own.z[k])
    assert said['worst']['measured']['position/lift'] == pytest.approx(q[found.machine.pistons[0]], abs=1e-9)
    line, = (line for line in found.summary() if line.startswith('over the work area: best'))
    assert f'worst +- {max(halves):.0f} kg at position/lift {1e3 * own.pistons[k, 0]:.0f} mm' in line
    grade, = (line for line in found.summary() if line.startswith('grade: '))
    assert grade.startswith('grade: green: a mass to +- ') and found.to_json()['grade']['color'] == 'green'


def test_a_calibration_that_is_not_good_is_red(found: Calibration) -> None:
    assert replace(found, trouble='no file', text='').grade.color == 'red'


def test_half_widths_are_the_spread_of_masses_by_drawn_numbers() -> None:
    """Numbers drawn by their covariance, the same pressures: the mass that balances, by Newton's method."""
    machine = Machine(parse_mechanism(known_machines()['patu655_lift'].read_text()))
    found, names = mass_map(machine), state_names(machine)[0]
    k = len(found.z) // 2
    b, p = force_balance(machine, names), machine.parameters
    g = ca.Function('g', [b.near, b.X, machine.payload, p.symbol], [b.g, ca.jacobian(b.g, machine.payload)])
    by_p = ca.Function('p', [b.near, b.X, machine.payload, p.symbol], [ca.jacobian(b.g, b.X)])
    near, low, high = machine.position(found.z[k])[machine.system.dependent], *machine.payload_data.limits
    X, rows = np.zeros(len(names)), [i for i, name in enumerate(names) if name.startswith('pressure/')]
    X[0], X[1], X[rows] = found.z[k, 0], 0.3, 2e6
    for _ in range(4):
        S = by_p(near, X, (low + high) / 2, p.mean).full()[:, rows]
        X[rows] -= np.linalg.lstsq(S, g(near, X, (low + high) / 2, p.mean)[0].full()[:, 0], rcond=None)[0]
    masses = []
    for u in np.random.default_rng(0).standard_normal((1500, len(p.mean))):
        mass = (low + high) / 2
        for _ in range(2):
            value, slope = g(near, X, mass, p.mean + p.factor() @ u)
            mass -= float(value) / float(slope)
        masses.append(mass)
    assert NORMAL * np.std(masses) == pytest.approx(found.half_width[k], rel=0.06)


def test_an_error_of_the_balance_that_the_file_states_counts() -> None:
    """Squares add up: of twice the force four times as much, beside all else."""
    text = known_machines()['patu655_lift'].read_text()
    machine = Machine(parse_mechanism(text))
    plain = mass_accuracy(machine).all
    stated = text.replace('cylinders:\n  lift:\n', 'cylinders:\n  lift:\n    force_error: {stddev: 1000 N}\n', 1)
    more = mass_accuracy(Machine(parse_mechanism(stated))).all
    twice = mass_accuracy(Machine(parse_mechanism(stated.replace('1000 N', '2000 N', 1)))).all
    assert more > 1.1 * plain and twice ** 2 - plain ** 2 == pytest.approx(4 * (more ** 2 - plain ** 2), rel=0.1)
