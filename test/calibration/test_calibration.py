# SPDX-License-Identifier: Apache-2.0
"""Numbers of a machine by the balance of forces: exact derivatives, wrong numbers found, what is not told stays."""

from dataclasses import replace

import numpy as np
import pytest
from calibration_support import LOAD, OFF, TRUE, both, crane, logs, numbers_of, series
from scipy.special import chdtri

from mbse_ros.calibration.balance import WINDOW, CalibrationBalance, windows_of
from mbse_ros.calibration.fit import CalibrationLog, CalibrationProblem, KnownLoad, fit, left_out, weighed
from mbse_ros.calibration.identifiability import advice, cannot_tell
from mbse_ros.calibration.plan import FEWEST, MOST, CandidateMotion, choose, plan
from mbse_ros.errors import DescriptionError
from mbse_ros.machine import load_machine
from mbse_ros.machine.machine import Machine
from mbse_ros.offline.calibration.calibrated_file import prior_machine


def told(some):
    """Numbers by some logs: before, after, their deviations, and what cannot be told, by lines."""
    c = crane()
    found, problem = fit(c.balance, some), CalibrationProblem(c.balance, some)
    values, covariance = numbers_of(found, problem)
    after = np.sqrt(np.diag(covariance))
    lines = cannot_tell(c.balance, found, c.machine.parameters.stddev, after, covariance / np.outer(after, after))
    return dict(zip(c.machine.parameters.names, zip(problem.prior, c.machine.parameters.stddev, values, after))), lines


def test_derivatives():
    """Of what is missing by the errors of all numbers and of the load, away from the file's numbers."""
    c, rng = crane(), np.random.default_rng(3)
    problem = CalibrationProblem(c.balance, [log for log in logs()])
    u = 0.5 * rng.standard_normal(problem.size)
    r, J = problem.residuals(u)
    assert J.shape == (len(r), len(c.machine.parameters.names) + 1)
    for k in range(problem.size):
        step = 1e-3 * np.eye(problem.size)[k]
        slope = (problem.residuals(u + step)[0] - problem.residuals(u - step)[0]) / 2e-3
        assert slope == pytest.approx(J[:, k], abs=1e-5 * np.abs(J).max()), k     # third derivatives times 1e-6


def test_wrong_numbers_are_found():
    c, (found, problem) = crane(), both()
    values, covariance = numbers_of(found, problem)
    deviation, names, before = np.sqrt(np.diag(covariance)), c.machine.parameters.names, c.machine.parameters.stddev
    off = c.true - values
    assert (np.abs(off) < 4 * deviation).all()
    assert off @ np.linalg.solve(covariance, off) < chdtri(len(off), 1e-4)
    friction = names.index('cylinders.lift.friction.scale')
    assert deviation[friction] < 0.2 * before[friction] and abs(off[friction]) < 0.1
    mass = names.index('bodies.boom.mass')
    assert deviation[mass] < 0.8 * before[mass]
    r, zero = problem.residuals(found.u)[0], problem.residuals(np.zeros(problem.size))[0]
    assert np.sqrt(np.mean(r ** 2)) < 0.3 * np.sqrt(np.mean(zero ** 2))
    assert found.covariance[-1, -1] < 1.0
    assert problem.mass(logs()[1], found.u) == pytest.approx(TRUE, abs=3 * LOAD.stddev)


def test_a_log_that_was_left_out_is_weighed():
    """A load of which nothing is told, by numbers from others: within 1 % of full scale; as in the file it is not."""
    c = crane()
    other = replace(logs()[1], name='other', load=KnownLoad())
    whole = fit(c.balance, (*logs(), other))
    own, u = left_out(c.balance, fit(c.balance, logs() + (replace(other, moments=other.moments.part(slice(0, 0))),)), 2)
    own.logs = (other,)
    assert weighed(own, u)[0] == pytest.approx(TRUE, abs=10.0) and whole.noise[0] > 5      # an empty one fits badly
    assert abs(weighed(own, np.zeros(own.size))[0] - TRUE) > 10.0


def test_a_log_shorter_than_a_window_changes_nothing():
    """The last bag of a session that was ended."""
    c = crane()
    short = {name: (t[:20], y[:20]) for name, (t, y) in series(0.0).items()}
    moments = c.balance.moments(windows_of(c.machine, short), WINDOW / 2)
    assert not len(moments.X)
    found = fit(c.balance, (*logs(), CalibrationLog('short', moments, KnownLoad())))
    np.testing.assert_allclose(found.u, both()[0].u, atol=1e-9)


def test_lifting_alone():
    """Friction is what lifting says of it together with masses and offsets, and the text says so."""
    up = [replace(log, moments=log.moments.part(log.moments.speeds[:, 0] > 0)) for log in logs()[:1]]
    numbers, lines = told(up)
    full, _ = told(logs()[:1])
    key = 'cylinders.lift.friction.scale'
    assert numbers[key][3] > 2 * full[key][3]
    assert any('from lifting alone friction and load cannot be distinguished' in line and 'lower it too' in line
               for line in lines)
    assert abs(numbers['bodies.boom.mass'][2] - numbers['bodies.boom.mass'][0]) < 3 * numbers['bodies.boom.mass'][1]


def test_one_pose():
    pistons = logs()[0].moments.pistons[:, 0]
    here = [replace(log, moments=log.moments.part(np.abs(log.moments.pistons[:, 0] - np.median(pistons)) < 0.02))
            for log in logs()[:1]]
    numbers, lines = told(here)
    assert any('one pose' in line and 'cannot be distinguished' in line for line in lines)
    _, before, _, after = numbers['base.pitch']
    assert after > 0.9 * before and any(line.startswith('base.pitch: ') for line in lines)


def test_no_load():
    numbers, lines = told(logs()[:1])
    assert any('no bag has a known load' in line for line in lines)
    assert not any('no bag has a known load' in line for line in told(logs())[1])
    for key in ('hydraulics.oil_bulk_modulus', 'base.roll'):
        before, spread, value, after = numbers[key]
        assert value == pytest.approx(before, abs=1e-6 * spread) and after == pytest.approx(spread, rel=1e-9)
        assert any(line == f'{key}: nothing in these bags depends on it: it keeps its prior' for line in lines)


def test_a_load_that_nobody_knows():
    up = replace(logs()[1], moments=logs()[1].moments.part(logs()[1].moments.speeds[:, 0] > 0),
                 load=KnownLoad('unknown load', 500.0, 1000.0))
    numbers, lines = told([up])
    assert any(line.startswith('the load of load is not known') for line in lines)
    assert numbers['cylinders.lift.friction.scale'][3] > 0.15


def test_a_cylinder_that_never_moved():
    """It keeps the prior, exactly, of all its numbers."""
    still = [replace(log, moments=log.moments.part(slice(0, 0))) for log in logs()[:1]]
    numbers, lines = told(still)
    assert all(value == before and after == pytest.approx(spread) for before, spread, value, after in numbers.values())
    assert any('cylinder lift never moved' in line for line in lines)
    assert all(any(line.startswith(f'{key}: nothing') for line in lines) for key in numbers)


def test_windows():
    """A parabola and constants come out exactly; windows with a hole or too few samples are left out."""
    machine, t = crane().machine, np.arange(0.0, 4.0, 0.01)
    made = {name: (t, np.full_like(t, 3e6)) for name in machine.channels}
    made['position/lift'] = (t, 0.1 + 0.02 * t + 0.005 * t ** 2)
    made['pressure/lift_rod'] = tuple(item[(t < 2.0) | (t > 2.3)] for item in made['pressure/lift_rod'])
    found = windows_of(machine, made)
    assert len(found.t) == 6 and not ((found.t > 1.9) & (found.t < 2.4)).any()
    assert found.X[:, 1] == pytest.approx(0.02 + 0.01 * found.t) and found.X[:, 2] == pytest.approx(0.01)
    assert found.X[:, 3] == pytest.approx(3e6) and (found.covariance[:, 2, 2] > 0).all()
    assert not len(windows_of(machine, {name: made[name] for name in list(made)[:1]}).t)


def test_the_noise_of_windows():
    """As stated: the acceleration at rest, by many windows."""
    rng, machine, t = np.random.default_rng(5), crane().machine, np.arange(0.0, 200.0, 0.01)
    found = windows_of(machine, {name: (t, 0.2 + 4e-4 * rng.standard_normal(len(t)) if name == 'position/lift' else
                                        np.zeros_like(t)) for name in machine.channels})
    assert np.mean(found.X[:, 2] ** 2 / found.covariance[:, 2, 2]) == pytest.approx(1.0, abs=0.3)     # 400: 0.07


def test_a_machine_that_does_not_measure_what_it_needs():
    description = load_machine('patu655_lift').description
    other = {name: sensor for name, sensor in description.sensors.items() if name != 'lift_rod'}
    with pytest.raises(DescriptionError, match='pressure/lift_rod'):
        windows_of(Machine(replace(description, sensors=other)), series(0.0))


def test_standstill_and_turning_count_nothing():
    """Friction there may be anything."""
    for log in logs():
        speeds, own = log.moments.speeds[:, 0], log.moments.counts[:, 0]
        assert own.sum() > 10 and (np.abs(speeds[own]) > 0.01).all() and (~own).sum() >= 3
        turning = np.abs(np.diff(speeds, prepend=0.0, append=0.0))
        assert not own[np.maximum(turning[1:], turning[:-1]) > 0.1].any()


def test_the_motion_that_adds_most_comes_first():
    """And what it told counts no more."""
    def one(*row):
        return [CandidateMotion('lift', np.zeros(1), np.zeros(1), 0.0, np.array([row]), np.zeros((1, 1)))]
    groups = [one(1.0, 0.0), one(3.0, 0.0), one(0.0, 2.0), one(2.9, 0.0)]
    chosen, covariance = choose(groups, np.eye(2), 2, 2)
    assert chosen == [groups[1], groups[2]] and np.diag(covariance) == pytest.approx([0.1, 0.2])
    assert choose(groups, np.eye(2), 0, 9)[0] == [groups[1], groups[2], groups[3]]       # the last adds 0.03 nats


def test_the_procedure():
    found = plan(crane().balance)
    assert FEWEST <= len(found.poses) <= MOST and [item.cylinder for item in found.sweeps] == ['lift'] and found.loaded
    places = np.array([item.pistons[0] for item in found.poses])
    assert np.ptp(places) > 0.7 * 0.535 and len(set(places)) == len(places)
    assert (found.after <= found.before * (1 + 1e-9)).all() and found.load == 500.0
    k = found.keys.index('cylinders.lift.friction.scale')
    assert found.after[k] < 0.3 * found.before[k]


def test_advice_is_what_is_missing():
    c = crane()
    up = [replace(log, moments=log.moments.part(log.moments.speeds[:, 0] > 0)) for log in logs()[:1]]
    lines = advice(c.balance, fit(c.balance, up))
    assert lines[0].startswith('move lift slowly out and in at lift ') and set(OFF) & {line.split(': ')[1].split()[0]
                                                                                     for line in lines}


@pytest.mark.parametrize('more, depend', [('', False), ("""
calibration:
  keys: [cylinders.lift.friction.coulomb, cylinders.lift.friction.viscous]
  rows: [[1], [0.6, 0.8]]
""", True)])
def test_numbers_stay_within_what_a_file_may_say(tmp_path, more, depend):
    """A load that is not there, with little doubt: friction would have to be negative. It ends at its bound, which is
    said, also where the errors of the numbers depend on each other; the others are as good as they can be there."""
    text, _ = prior_machine('patu655_lift', [f'cylinders.*.friction.{name}=300 %' for name in ('coulomb', 'viscous')])
    path = tmp_path / 'x.yaml'
    path.write_text(text + more)
    _, machine = prior_machine(path)
    balance, load = CalibrationBalance(machine), KnownLoad('heavy', 60.0, 0.1)
    moments = balance.moments(windows_of(machine, series(0.0)), WINDOW / 2, load.mass)
    problem = CalibrationProblem(balance, [CalibrationLog('x', moments.part(moments.speeds[:, 0] > 0.0), load)])
    u, names = problem.solve(), machine.parameters.names
    values, bound = problem.numbers(u), problem.at_bound(u)
    assert machine.parameters.correlated == depend
    assert (problem.low <= values + 1e-9).all() and (values <= problem.high + 1e-9).all()
    k = names.index('cylinders.lift.friction.coulomb')
    assert k in bound and values[k] == pytest.approx(0.0, abs=1e-6) and problem.high[k] == 300.0     # the static one
    found = replace(fit(balance, problem.logs), u=u, at_bound=bound)
    lines = cannot_tell(balance, found, machine.parameters.stddev, machine.parameters.stddev, np.eye(len(names)))
    assert any(line.startswith(f'{names[k]} is at its bound') for line in lines)
    r, J = problem.residuals(u)     # uphill only for those at a bound
    slope = (J.T @ (np.minimum(1.0, 3.0 / np.abs(r)) * r) + u)[:len(names)]
    slope = np.linalg.solve(problem.factor.T, slope) * problem.spread
    inside = np.setdiff1d(np.arange(len(names)), bound)
    assert np.abs(slope[inside]).max() < 0.05 * slope[k]
