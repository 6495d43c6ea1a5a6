# SPDX-License-Identifier: Apache-2.0
"""A machine has a force that its file does not have: the calibration says so, of what shape it is, and which number
takes it away; that number gives it back."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from calibration_support import LOAD, MOVES, TRUE
from machine_variants import changed

from mbse_ros.calibration.balance import EXACT, WINDOW, CalibrationBalance, Samples, windows_of
from mbse_ros.calibration.balance_error import correlation_time, window_covariances
from mbse_ros.calibration.fit import CalibrationLog, CalibrationProblem, KnownLoad
from mbse_ros.calibration.residual_form import SHAPES, Residue
from mbse_ros.description.load import load_mechanism, parse_mechanism
from mbse_ros.machine import Machine
from mbse_ros.offline.calibration.calibrated_file import prior_machine
from mbse_ros.offline.calibration.calibration_bags import Recording, calibrated
from mbse_ros.offline.calibration.calibration_result import EXPLAINED, Calibration
from mbse_ros.simulation.crane import SimulatedCrane, plant_of
from mbse_ros.simulation.cycle import WorkCycle

KEY, FILE = 'cylinders.lift', 'patu655_lift'
NUMBERS = ('parallel.constant', 'parallel.linear', 'parallel.cubic', 'parallel.damping', 'friction.out_scale')
FORMS = {'damper': {'parallel.damping': 1e5}, 'spring': {'parallel.linear': -6e4, 'parallel.constant': 2e3},
         'direction': {'friction.out_scale': 1.8}, 'both': {'parallel.linear': -6e4, 'parallel.damping': 2e4},
         'as in the file': {}}
SHAPE = {'damper': 'speed', 'spring': 'stroke'}


@cache
def plant_machine() -> Machine:
    """The crane with all forms, each without effect at the file's numbers."""
    return changed(FILE, {'cylinders/lift/parallel': {name: {'value': 0, 'stddev': 1} for name in (
        'constant', 'linear', 'cubic', 'damping')}, 'cylinders/lift/friction/out_scale': {'value': 1, 'stddev': 0.1}})


@cache
def series(form: str, load: float) -> dict[str, Samples]:
    """Samples of one log of the machine that has it."""
    machine = plant_machine()
    true = machine.parameters.mean
    for key, value in FORMS[form].items():
        true[machine.parameters.names.index(f'{KEY}.{key}')] = value
    frames = SimulatedCrane(machine, load, 1, WorkCycle(0.1, MOVES), parameters=true, plant=plant_of(machine)).run()
    t = np.array([frame.stamp_ns for frame in frames]) * 1e-9
    return {name: (t, np.array([frame.samples[name] for frame in frames])) for name in machine.channels}


@cache
def found(form: str, *free: str, loads: tuple[tuple[float, KnownLoad], ...] = ((0.0, KnownLoad()), (TRUE, LOAD))
          ) -> Calibration:
    """By a bag for each load: what is on the machine, and what is told of it."""
    text, machine = prior_machine(FILE, free)
    bags = [Recording(f'bag {k}', series(form, mass), '2026-02-01') for k, (mass, _) in enumerate(loads)]
    return calibrated(machine, text, bags, {f'bag {k}': told for k, (_, told) in enumerate(loads)})


@pytest.mark.parametrize('form', ['damper', 'spring', 'direction'])
def test_what_is_missing_is_named_and_found(form: str, tmp_path) -> None:
    first, true = found(form), {f'{KEY}.{key}': value for key, value in FORMS[form].items()}
    said, keys = first.to_json(), [item.key for item in first.missing_numbers]
    assert not first.good and said['good'] is False and said['unexplained'] and set(keys) == set(true)
    assert all(item.free in first.unexplained for item in first.missing_numbers)
    verdict, = (line for line in first.summary() if line.startswith('verdict: not good: add free '))
    assert all(f'free {item.free}' in verdict for item in first.missing_numbers)
    assert verdict.endswith(f'N of {first.residual_rms_after:,.0f} N') and not first.write(tmp_path / 'no.yaml')
    shares = said['left'][0]['shares']
    if form in SHAPE:
        assert max(shares, key=shares.get) == SHAPE[form] and shares[SHAPE[form]] > 0.7
    assert first.missing_numbers[-1].left < 0.5 * first.residue.forms[0].rms
    for item in first.missing_numbers:
        assert item.value == pytest.approx(true[item.key], rel=0.1)
    again = found(form, *(item.free for item in first.missing_numbers))
    assert again.good and again.residual_rms_after < 2 * again.noise_rms and 'verdict: good' in again.summary()
    numbers = {item.key: item for item in again.parameters}
    for key, value in true.items():
        assert abs(numbers[key].after - value) < 3 * numbers[key].stddev_after < 0.3 * abs(value)
    assert again.missing_numbers == () and again.write(tmp_path / 'yes.yaml')


def test_most_of_it_is_not_all_of_it() -> None:
    """A spring takes most of the missing force away; what is left is a damper's, so the result is not good."""
    one = found('both', f'{KEY}.parallel.linear')
    assert one.residual_rms_after < EXPLAINED * one.residual_rms_before and not one.good
    item, = one.missing_numbers
    assert item.key == f'{KEY}.parallel.damping' and item.value == pytest.approx(2e4, rel=0.1)
    left, = one.residue.forms
    assert f'lift: {left.rms:.0f} N are left, {left.expected:.0f} N are expected' in one.unexplained
    assert found('both', f'{KEY}.parallel.linear', item.free).good


def test_a_machine_that_obeys_its_file_is_good() -> None:
    """Nothing is named; what is left has the size of the noise, and no shape."""
    one = found('as in the file')
    left, = one.residue.forms
    assert one.good and one.missing_numbers == () and one.residue.candidates == ()
    assert left.rms < 1.5 * left.noise < left.expected and left.count == sum(bag.count for bag in one.bags)
    assert all(0.0 <= share < 0.3 for share in left.shares.values()) and tuple(left.shares) == SHAPES


WRONG_LOAD, NOT_KNOWN = KnownLoad('wrong', 250.0, 1.25), KnownLoad('unknown bag 0', 500.0, 1000.0)
CONSTANT = f'{KEY}.parallel.constant'


@pytest.mark.parametrize('load', [(TRUE, WRONG_LOAD), (TRUE, LOAD), (TRUE, NOT_KNOWN)])
def test_a_number_that_would_take_a_wrong_load_is_not_good(load: tuple[float, KnownLoad], tmp_path) -> None:
    """A load told 250 kg too light is found as a force beside the piston, and nothing is missing; nor could it be seen
    where it is told right. A bag of another load tells them apart."""
    one = found('as in the file', f'{KEY}.parallel.*', loads=(load,))
    assert one.residual_rms_after < 2 * one.noise_rms and CONSTANT in one.taken_for_loads and not one.good
    assert CONSTANT in one.unexplained and one.to_json()['taken_for_loads'] == list(one.taken_for_loads)
    verdict, = (line for line in one.summary() if line.startswith('verdict: '))
    assert verdict.startswith('verdict: not good: ') and CONSTANT in verdict and 'another load' in verdict
    force = {item.key: item.after for item in one.parameters}[CONSTANT]
    assert not one.write(tmp_path / 'no.yaml')
    if load[1] is WRONG_LOAD:
        assert abs(force) > 1e4
    else:
        assert found('as in the file', f'{KEY}.parallel.*', loads=((0.0, KnownLoad()), load)).good


@pytest.mark.parametrize('free', [(), (f'{KEY}.parallel.damping',), (f'{KEY}.friction.out_scale',),
                                  ('sensors.*.offset=50 kPa', 'bodies.*.mass=5 %')])
def test_numbers_that_no_load_is_taken_for(free: tuple[str, ...]) -> None:
    one = found('as in the file', *free, loads=((TRUE, LOAD),))
    assert one.good and one.taken_for_loads == ()


def test_what_is_expected_and_shares_by_hand() -> None:
    """Of the damper: noise, a share of the forces of both chambers, squares that polynomials explain."""
    residue = found('damper').residue
    m, left = residue.moments, residue.forms[0]
    own = m.counts[:, 0]
    k = residue.balance.names.index('pressure/lift_piston')
    A1, A2 = np.pi / 4 * 0.1 ** 2, np.pi / 4 * (0.1 ** 2 - 0.056 ** 2)
    force = A1 * m.X[own, k] + A2 * m.X[own, k + 1]
    assert left.expected == pytest.approx(np.sqrt(np.mean(m.variance[own, 0] + (EXACT * force) ** 2)), rel=1e-9)
    r = np.concatenate([residue.problem.missing(log, residue.u)[0] for log in residue.problem.logs])[own, 0]
    assert left.rms == pytest.approx(np.sqrt(np.mean(r ** 2)), rel=1e-9)
    v, s, p = m.speeds[own, 0], m.pistons[own, 0], m.X[own, k] - A2 / A1 * m.X[own, k + 1]
    for name, x, degree in (('speed', v, 1), ('speed_sign', np.sign(v), 1), ('pressure', p, 1)):
        rest = r - np.polyval(np.polyfit(x, r, degree), x)
        assert left.shares[name] == pytest.approx(1 - rest @ rest / (r @ r) - np.mean(r) ** 2 / np.mean(r ** 2))
    rest = r - np.polyval(np.polyfit(s, r, 3), s)
    assert 0 <= left.shares['stroke'] <= 1 - rest @ rest / (r @ r) - np.mean(r) ** 2 / np.mean(r ** 2) + 1e-9


def test_derivatives_by_numbers_that_are_not_free() -> None:
    """Those that are tried are those of a machine that has these numbers."""
    residue, machine = found('damper').residue, Machine(plant_machine().description)
    balance, names = CalibrationBalance(machine), machine.parameters.names
    logs = [CalibrationLog('log', balance.moments(windows_of(machine, series('damper', load)), WINDOW / 2, load))
            for load in (0.0, TRUE)]
    columns, own = residue._columns(), residue.moments.counts[:, 0]
    assert {f'{KEY}.{name}' for name in NUMBERS} <= set(columns) and f'{KEY}.friction.scale' not in columns
    J = np.concatenate([balance.terms(log.moments, machine.parameters.mean, np.zeros(len(log.moments.X)))[1]
                        for log in logs])[own, 0]
    at = Residue(CalibrationProblem(residue.balance, residue.problem.logs), np.zeros(residue.problem.size))._columns()
    for name in NUMBERS:
        wanted = J[:, names.index(f'{KEY}.{name}')]
        assert at[f'{KEY}.{name}'][0][own, 0] == pytest.approx(wanted, rel=1e-3, abs=1e-3 * np.abs(wanted).max())


def test_what_is_left_is_written_as_an_error_of_the_force_balance(tmp_path) -> None:
    """Of the size that is left, for as long as a move takes; the next calibration that explains it takes it back."""
    one, key = found('damper'), f'{KEY}.parallel.damping'
    error, = one.errors
    assert error.stddev == pytest.approx(one.residual_rms_after, rel=0.05) and error.time == pytest.approx(3.0)
    line = f'lift: {error.stddev:,.0f} N are missing from the force balance (1 sigma), for 3 s: of 79 kN'
    assert any(line in item for item in one.summary()) and one.to_json()['force_errors'][0]['stddev'] == error.stddev
    assert one.write(tmp_path / 'forced.yaml', force=True)
    stated = load_mechanism(tmp_path / 'forced.yaml').cylinders['lift'].force_error
    assert stated.stddev == pytest.approx(error.stddev, rel=5e-3) and stated.time == 3.0
    text, machine = prior_machine(tmp_path / 'forced.yaml', [f'{key}=1e5 N*s/m', f'{KEY}.friction.scale=30 %'])
    bags = [Recording(f'bag {k}', series('damper', mass), '2026-02-01') for k, mass in enumerate((0.0, TRUE))]
    again = calibrated(machine, text, bags, {'bag 0': KnownLoad(), 'bag 1': LOAD})
    assert again.errors[0].stddev == 0.0 and 'missing from the force balance' not in ''.join(again.summary())
    assert parse_mechanism(again.text, 'x.yaml').cylinders['lift'].force_error.stddev == 0.0


def test_where_nothing_is_left_no_error_is_written() -> None:
    one = found('as in the file')
    assert one.errors[0].stddev == 0.0 and 'force_error' not in one.text
    assert not any('force balance' in line for line in one.summary())


@pytest.mark.parametrize('time', [0.2, 0.5, 2.0])
def test_the_correlation_time_of_a_markov_process_is_found_from_windows(time: float) -> None:
    """Simulated in steps of 10 ms, averaged as windows are."""
    rng, n = np.random.default_rng(4), round(WINDOW / 0.01)
    x, kept = np.zeros(4000 * n), np.exp(-0.01 / time)
    noise = rng.normal(size=len(x)) * np.sqrt(1 - kept ** 2)
    for k in range(1, len(x)):
        x[k] = kept * x[k - 1] + noise[k]
    weight = (1 - np.linspace(-1, 1, n) ** 2) ** 2
    means = x.reshape(-1, n) @ weight / weight.sum()
    share = np.mean(means[1:] * means[:-1]) / np.mean(means ** 2)
    assert correlation_time(share) == pytest.approx(time, rel=0.15)
    assert np.mean(means ** 2) == pytest.approx(window_covariances(np.array([time]))[0, 0], rel=0.15)
    assert correlation_time(-0.5) == pytest.approx(0.1) and correlation_time(2.0) == pytest.approx(3.0)
