# SPDX-License-Identifier: Apache-2.0
"""Several unknown masses: the equations in the print's NumPy, exact Jacobian, least squares, poses that show too
little, and intervals."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import casadi as ca
import numpy as np
import pytest
from core_support import feed, kinematic, two_cylinders
from source_tree import ROOT
from two_payloads import TWO, TwoMasses, newton, two_payloads

from mbse_ros.description.load import parse_mechanism
from mbse_ros.errors import DescriptionError, SampleError, SettingError
from mbse_ros.filters.hydraulic_state import state_names
from mbse_ros.filters.observer_settings import ObserverSettings
from mbse_ros.machine import Machine
from mbse_ros.machine.feed_forward import FeedForward
from mbse_ros.monitor.faults import GATES as REASONS
from mbse_ros.monitor.faults import Fault
from mbse_ros.monitor.mass import plain_difference
from mbse_ros.payload.gates import GATES
from mbse_ros.payload.inverse_dynamics import residual
from mbse_ros.payload.mass import Mass, PayloadSettings
from mbse_ros.payload.paper import InverseDynamics
from mbse_ros.payload.several import seen_words
from mbse_ros.simulation.crane import CraneSettings, SimulatedCrane
from mbse_ros.simulation.cycle import Move, WorkCycle
from mbse_ros.simulation.plant import Plant
from mbse_ros.streams.mass_monitor import MassMonitor
from mbse_ros.streams.pipeline import Output, Pipeline
from mbse_ros.streams.records import PayloadStatus
from mbse_ros.streams.stages import ObserverStage, SeveralPayloads

OPEN = PayloadSettings(min_speed=1e-6, max_acceleration_share=100.0, max_sample_share=1e3, stroke_margin=0.0,
                       significance=0.0)
ONE_LIFT = (ROOT / 'config' / 'machines' / 'patu655_lift.yaml').read_text()
STDDEV = {'position': 5e-5, 'velocity': 1e-3, 'acceleration': 0.1, 'pressure': 1e4, 'spool': 1e-3}
THREE = TWO + '  middle: {body: jib, center: [0.7, 0, 0], limits: [0, 1000]}\n'
HOLD = Move(0.0, 0.3)
CYCLE = WorkCycle(0.35, (HOLD, Move(6.0, 1.1), Move(-6.0, 1.0)),
                  {'tilt_valve': (HOLD, Move(5.0, 0.8), Move(-5.0, 1.3))})


def random_states(machine: Machine, count: int, seed: int = 0) -> np.ndarray:
    """States (count, nx) of any masses whatever: pistons that move, pressures at random."""
    rng, names = np.random.default_rng(seed), state_names(machine)[0]
    X, g = np.zeros((count, len(names))), len(machine.cylinders)
    X[:, :g] = machine.stroke[:, 1] * rng.uniform(0.2, 0.8, (count, g))
    X[:, g:2 * g], X[:, 2 * g:3 * g] = rng.uniform(0.05, 0.2, (count, g)), rng.uniform(-0.3, 0.3, (count, g))
    pressures = [name.startswith('pressure') for name in names]
    X[:, pressures] = rng.uniform(1e6, 8e6, (count, sum(pressures)))
    return X


def covariance(machine: Machine, seed: int = 0) -> np.ndarray:
    """Covariance (nx, nx) of a state with correlations."""
    spread = np.array([STDDEV[name.split('/')[0]] for name in state_names(machine)[0]])
    root = np.random.default_rng(seed).normal(size=(len(spread), 2 * len(spread)))
    P = root @ root.T
    return P / np.sqrt(np.outer(np.diag(P), np.diag(P))) * np.outer(spread, spread)


def dynamics_of(machine: Machine, settings: PayloadSettings = OPEN) -> InverseDynamics:
    """Inverse dynamics with these gates, in the virtual machine."""
    found = InverseDynamics(machine, 'vm')
    found.configure(settings)
    return found


def samples_of(machine: Machine, X: np.ndarray, P: np.ndarray, settings: PayloadSettings = OPEN
               ) -> list[tuple[np.ndarray, np.ndarray]]:
    """Rows (n, 2 + numbers) and closed gates (n,) of each mass, each of the states by itself: they are far apart."""
    dynamics, found = dynamics_of(machine, settings), []
    for x in X:
        dynamics.reset()
        several = bool(machine.description.payloads)
        found.append(dynamics.process_all(x[None], P) if several else (dynamics.process(x[None], P),))
    return [(np.vstack([item.rows for item in of_one]), np.hstack([item.closed for item in of_one]))
            for of_one in zip(*found)]


@cache
def g_of(machine: Machine) -> ca.Function:
    """``(near, X, m) -> (g, Jacobian by m)``."""
    r, m = residual(machine), ca.SX.sym('m', machine.payload.numel())
    return ca.Function('g', [r.near, r.X, m, machine.parameters.symbol], [r.g0 + r.G1 @ m, r.G1])


def test_newton_of_the_print_finds_the_same_masses() -> None:
    """As many equations as masses: Eqs. 50 to 57 in NumPy, Jacobian by forward differences of 0.01 kg. The central
    differences of M and S leave 1e-6 N of g."""
    machine, by_hand = two_payloads(), TwoMasses()
    X = random_states(machine, 4)
    (boom, _), (jib, _) = samples_of(machine, X, covariance(machine))
    start = np.zeros(2)
    for x, *found in zip(X, boom[:, 1] / boom[:, 0], jib[:, 1] / jib[:, 0]):
        z, zd, zdd = x[:6].reshape(3, 2)
        pressures = x[6:10].reshape(2, 2)
        start = newton(lambda m, args=(z, zd, zdd, pressures): by_hand.residual(*args, m), start)
        assert found == pytest.approx(start, rel=1e-6, abs=1e-5)


def test_jacobian_by_the_masses_is_exact() -> None:
    """Forward differences of Eq. 57 at two masses, and g is a plane."""
    machine, rng = two_payloads(THREE), np.random.default_rng(1)
    g, p = g_of(machine), machine.parameters.mean
    for X in random_states(machine, 4, 1):
        near = machine.position(X[:2])[machine.system.dependent]
        for m in rng.uniform(0, 500, (2, 3)):
            value, G1 = (item.full() for item in g(near, X, m, p))
            for k, unit in enumerate(np.eye(3)):
                moved = g(near, X, m + 1e-2 * unit, p)[0].full()
                assert (moved - value)[:, 0] / 1e-2 == pytest.approx(G1[:, k], rel=1e-6, abs=1e-6)


def test_more_equations_than_masses_are_weighed_by_their_covariance() -> None:
    """One mass by the way of several, with a second one that presses on nothing of consequence: least squares as of one
    payload, whose deviation from it is that of a prior of 1e5 ranges."""
    one = two_cylinders()
    X, P = random_states(one, 6, 2), covariance(one, 2)
    far = two_payloads(TWO.replace('limits: [0, 500]', 'limits: [0, 1e-9]'))     # no mass on the boom
    ((expected, _),) = samples_of(one, X, P)
    (boom, closed), (jib, _) = samples_of(far, X, P, replace(OPEN, max_sample_share=1e6))
    assert not boom[:, 0].any() and set(closed) == {GATES.index('not observable')}
    assert jib[:, :2] == pytest.approx(expected[:, :2], rel=1e-6)


def test_information_is_that_with_the_other_mass_unknown() -> None:
    """The inverse of the diagonal of (G' W G)^-1, W by derivatives of the residual at the lower limits."""
    machine = two_payloads()
    X, P, r = random_states(machine, 5, 3), covariance(machine, 3), residual(machine)
    J = ca.Function('J', [r.near, r.X, machine.parameters.symbol], [ca.jacobian(r.g0, r.X), ca.jacobian(
        machine.closed(r.near, r.X[:2], 1)[machine.system.dependent], r.X)])
    (boom, _), (jib, _) = samples_of(machine, X, P)
    g, p = g_of(machine), machine.parameters.mean
    for x, *found in zip(X, boom[:, 0], jib[:, 0]):
        near = machine.position(x[:2])[machine.system.dependent]
        G1 = g(near, x, [0, 0], p)[1].full()
        slope = J(near, x, p)[0].full()
        C = np.linalg.inv(G1.T @ np.linalg.inv(slope @ P @ slope.T) @ G1)
        assert found == pytest.approx(1 / np.diag(C), rel=1e-6)


def test_derivatives_by_the_uncertain_numbers() -> None:
    """Times the information: against masses solved again with numbers that are off, where g is zero at such masses as
    the machine may carry."""
    machine = two_payloads()
    X, r = random_states(machine, 1, 4)[0], residual(machine)
    near, p, n = machine.position(X[:2])[machine.system.dependent], machine.parameters.mean, len(X)
    g = g_of(machine)
    balance = ca.Function('balance', [r.near, r.X, machine.parameters.symbol], [r.g0 + r.G1 @ ca.DM([120, 300])])
    areas = np.array(ca.evalf(machine.circuit.areas()))[::2, 0]
    for _ in range(40):      # the piston sides take the balance
        X[[6, 8]] += balance(near, X, p).full()[:, 0] / areas
    assert n and np.abs(balance(near, X, p).full()).max() < 1e-6
    samples = dynamics_of(machine).process_all(X[None], covariance(machine))
    for k, number in enumerate(machine.parameters.names):
        if number.startswith('bodies.') and number.endswith('mass') or number.startswith('cylinders.'):
            h = 1e-4 * max(abs(p[k]), 1.0)
            moved = []
            for sign in (1, -1):
                off = p + sign * h * np.eye(len(p))[k]
                value, G1 = (item.full() for item in g(near, X, [0, 0], off))
                moved.append(np.linalg.solve(G1, -value[:, 0]))
            slope = (moved[0] - moved[1]) / (2 * h)
            found = [sample.rows[0, 2 + k] / sample.rows[0, 0] for sample in samples]
            assert found == pytest.approx(slope, rel=1e-4, abs=1e-6), number


def test_fewer_equations_show_sums_alone() -> None:
    """Three masses, two equations: what stands on the boom is found no better than the two on the jib; no mass has any
    information, and the words give sums that hold for the masses that made the pressures."""
    machine = two_payloads(THREE)
    X, P = random_states(machine, 1, 5), covariance(machine)
    dynamics = dynamics_of(machine, replace(OPEN, max_sample_share=1e6))
    samples = dynamics.process_all(X, P)
    for name, sample in zip(('boom', 'jib', 'middle'), samples):
        assert (sample.closed == GATES.index('not observable')).all() and not sample.rows[:, :2].any(), name
        assert not sample.clean
    near = machine.position(X[-1, :2])[machine.system.dependent]
    value, G1 = (item.full() for item in g_of(machine)(near, X[-1], [0, 0, 0], machine.parameters.mean))
    for words in dynamics.seen.split(', '):
        terms, _, mass = words.partition(' +- ')[0].partition(' = ')
        w = np.zeros(3)
        for term in terms.replace('- ', '+ -').split(' + '):
            times, _, name = term.rpartition(' ')
            w[('boom', 'jib', 'middle').index(name.lstrip('-'))] = float(times or ('-1' if name[0] == '-' else '1'))
        shares, *_ = np.linalg.lstsq(G1.T, w, rcond=None)
        assert G1.T @ shares == pytest.approx(w, abs=6e-3)      # a sum that the equations have; three digits are shown
        assert float(mass) == pytest.approx(-shares @ value[:, 0], rel=2e-2, abs=2.0)
    assert len(dynamics.seen.split(', ')) == 2


def test_a_cylinder_at_rest_leaves_what_the_other_shows() -> None:
    """The jib's equation alone has the jib's mass and not the boom's; the boom's alone has neither."""
    machine = two_payloads()
    X = random_states(machine, 4, 6)
    X[:2, 2] = 0.0      # the lift cylinder rests
    X[2:, 3] = 0.0      # the tilt cylinder does
    gates = replace(OPEN, min_speed=0.01)
    for rows, expected in ((X[:2], ('too slow', 'open')), (X[2:], ('too slow', 'too slow'))):
        dynamics = dynamics_of(machine, gates)
        found = dynamics.process_all(rows, 1e-4 * covariance(machine))
        assert [GATES[int(sample.closed[0])] for sample in found] == list(expected)
    assert '+' in dynamics.seen      # a sum


def test_words_of_what_is_seen() -> None:
    """By hand: one equation of two masses, one of each, none."""
    payloads, span = two_payloads().description.payloads, np.array([500.0, 1000.0])
    row = np.array([1.0, 2.0]) * span
    assert seen_words(payloads, np.outer(row, row) / 100.0, row * 7.0) == 'boom + 2 jib = 700 +- 19.6 kg'      # 10 kg
    assert seen_words(payloads, np.diag([0.0, 1e4]), np.array([0.0, 300.0 * 1e4 / 1000.0])) == 'jib = 300 +- 19.6 kg'
    assert seen_words(payloads, np.diag([0.0, 15.0]), np.array([0.0, 0.3 * 15.0])) == ''    # +- 506 of 1000 kg
    assert seen_words(payloads, np.zeros((2, 2)), np.zeros(2)) == ''
    assert seen_words(payloads, np.full((2, 2), np.nan), np.zeros(2)) == ''


@cache
def plant() -> Plant:
    """Of the machine with two payloads."""
    return Plant(two_payloads())


def outputs(masses: dict[str, float], seed: int = 1, cycle: WorkCycle = CYCLE, numbers: np.ndarray | None = None,
            segment: float = 0.1) -> tuple[Pipeline, list[Output]]:
    """A simulated run, weighed apart."""
    frames = SimulatedCrane(two_payloads(), masses, seed, cycle, CraneSettings(rate=100.0), numbers, plant()).run()
    pipeline = Pipeline(two_payloads(), observer=kinematic(), segment=segment)
    return pipeline, [*feed(pipeline, frames), *pipeline.flush()]


def test_intervals_hold_the_masses() -> None:
    """20 logs of 2.4 s, each with other numbers of the file, noise and masses: of 40 intervals of 95 %, fewer than 34
    hold with a chance of 1e-3 (2e-2 if both of a log go together); the mean square of 40 normalised errors is 1, with a
    deviation of 0.22 to 0.32."""
    rng, machine, held, errors, widths = np.random.default_rng(7), two_payloads(), [], [], []
    spread = machine.parameters.factor()
    for seed in range(20):
        masses = {'boom': float(rng.uniform(20, 200)), 'jib': float(rng.uniform(20, 300))}
        numbers = machine.parameters.mean + spread @ rng.normal(size=len(machine.parameters.mean))
        _, found = outputs(masses, seed, numbers=numbers)
        for name, mass in masses.items():
            estimate = found[-1].payload.payloads[name]
            held.append(estimate.lower <= mass <= estimate.upper)
            errors.append((estimate.mass - mass) / estimate.stddev)
            widths.append(estimate.upper - estimate.lower)
    assert sum(held) >= 34 and 0.2 < np.mean(np.square(errors)) < 2.0 and np.median(widths) < 60.0


def test_an_interval_wider_than_the_limits_is_no_mass() -> None:
    """However wide the tuning allows it to be (the paper's preset: 1e6 ranges): half a weight of the boom's limits."""
    narrow = two_payloads(TWO.replace('limits: [0, 500]', 'limits: [0, 12]'))
    frames = SimulatedCrane(narrow, {'boom': 6.0, 'jib': 200.0}, 1, CYCLE, CraneSettings(rate=100.0)).run()
    tuning = replace(OPEN, max_interval_share=1e6)
    pipeline = Pipeline(narrow, observer=kinematic(), payload=tuning, segment=0.1)
    found = [o.payload.payloads['boom'] for o in [*feed(pipeline, frames), *pipeline.flush()]]
    known = [one for one in found if np.isfinite(one.upper) and one.upper - one.lower > 12.0]
    assert {one.status for one in known} & {PayloadStatus.NOT_OBSERVABLE} and not any(
        one.status is PayloadStatus.UPDATING for one in known)
    (reason,) = {one.reason.partition(';')[0] for one in known if 'interval' in one.reason}
    assert reason.endswith('of payloads.boom.limits)')


def test_the_first_mass_is_the_estimate_and_all_have_their_budget() -> None:
    """Old fields are of the first; names, statuses and causes of each."""
    pipeline, found = outputs({'boom': 100.0, 'jib': 200.0})
    last = found[-1].payload
    assert list(last.payloads) == ['boom', 'jib']
    assert replace(last, payloads={}) == last.payloads['boom']
    assert found[-1].state.weighing.size == 0
    budgets = pipeline.payload.budgets
    for name, estimate in last.payloads.items():
        kg = [cause.kg for cause in budgets[name]]
        assert np.sqrt(np.sum(np.square(kg))) == pytest.approx(estimate.stddev, rel=1e-9)
    assert pipeline.payload.budget == budgets['boom']
    assert {o.payload.payloads['boom'].status for o in found} >= {PayloadStatus.UPDATING, PayloadStatus.TOO_SLOW}
    pipeline.payload.reset()
    assert not pipeline.payload.budget


def test_segments_of_any_length_give_the_same_masses() -> None:
    """As the nodes have them, and joined: samples are the same; scatter is taken in other batches."""
    (_, short), (_, long) = (outputs({'boom': 100.0, 'jib': 200.0}, segment=segment) for segment in (0.0, 0.1))
    for name in ('boom', 'jib'):
        one, other = (found[-1].payload.payloads[name] for found in (short, long))
        assert one.mass == pytest.approx(other.mass, abs=0.5) and one.samples == pytest.approx(other.samples, rel=0.05)


def test_one_cylinder_never_tells_two_masses_apart() -> None:
    """No mass, NOT_OBSERVABLE, and the sum, which is right: its factor is the ratio of the levers."""
    one = 'payload:\n  point: boom.tip\n  limits: [0 kg, 1000 kg]\n'
    assert one in ONE_LIFT
    text = ONE_LIFT.replace(one, 'payloads:\n  inner: {body: boom, center: [1 m, 0 m, 0 m], limits: [0 kg, 500 kg]}\n'
                                 '  tip: {point: boom.tip, limits: [0 kg, 1000 kg]}\n')
    machine = Machine(parse_mechanism(text, 'lift.yaml'))
    frames = SimulatedCrane(machine, {'inner': 80.0, 'tip': 60.0}, 1, WorkCycle(0.35, (HOLD, Move(6.0, 1.2)))).run()
    pipeline = Pipeline(machine, observer=kinematic(), segment=0.1)
    found = [*feed(pipeline, frames), *pipeline.flush()]
    moving = [o.payload.payloads for o in found if abs(o.state.mean[-1, 1]) > 0.03]
    assert len(moving) > 5
    sums = []
    for payloads in moving:
        for estimate in payloads.values():
            assert estimate.status is PayloadStatus.NOT_OBSERVABLE and np.isnan([estimate.mass, estimate.raw]).all()
        terms, _, mass = payloads['tip'].reason.partition('the forces show ')[2].removesuffix(' kg').partition(' = ')
        if terms:       # its interval is a range of the limits or less
            sums.append([float(terms.removeprefix('inner + ').removesuffix(' tip')), float(mass.split(' +- ')[0])])
    assert len(sums) > 5
    factor, mass = np.median(sums, axis=0)
    assert factor == pytest.approx(2.89, rel=0.05)      # of the levers about the pivot, 1 m and the tip's
    assert mass == pytest.approx(80.0 + 2.89 * 60.0, rel=0.1)


def test_only_apart() -> None:
    """The joint way is refused where it is chosen, at the start and later, and where its states come."""
    machine = two_payloads()
    with pytest.raises(SettingError, match="observer.weighing: got 'joint', expected apart: several payloads"):
        ObserverStage(machine, ObserverSettings(), 'vm')
    with pytest.raises(SettingError, match=r'observer.estimator: .* several payloads \(boom, jib\)'):
        ObserverStage(machine, ObserverSettings(estimator='hydraulic_errorEKF_FE'), 'vm')
    stage = ObserverStage(machine, kinematic(), 'vm')
    with pytest.raises(SettingError, match='observer.weighing'):
        stage.configure(ObserverSettings())
    _, found = outputs({'boom': 100.0, 'jib': 200.0}, segment=0.5)
    with pytest.raises(SampleError, match='several payloads'):
        SeveralPayloads(machine, backend='vm').process(replace(found[-1].state, weighing=np.ones((1, 3))))


def test_what_needs_one_mass_says_so() -> None:
    """Never a load left out in silence."""
    for needs_one in (FeedForward, lambda machine: machine.payload_data):
        with pytest.raises(DescriptionError, match="payloads: got \\['boom', 'jib'\\], expected a section `payload`"):
            needs_one(two_payloads())
    for wrong in (50.0, {'boom': 1.0}, {'boom': 1.0, 'jib': 1.0, 'tip': 1.0}):
        with pytest.raises(SettingError, match='masses of boom and jib'):
            SimulatedCrane(two_payloads(), wrong, plant=plant())
    with pytest.raises(SettingError, match='one mass'):
        SimulatedCrane(two_cylinders(), {'boom': 1.0})


def test_a_held_mass_whose_interval_is_wider_than_the_limits_is_not_observable() -> None:
    """At rest after the motion, too: no TOO_SLOW beside a number that the poses hardly showed. Of one payload a held
    mass keeps its gate."""
    state = outputs({'boom': 100.0, 'jib': 200.0}, segment=0.5)[1][-1].state
    several, one = (MassMonitor(machine, plain_difference, name) for machine, name in (
        (two_payloads(), 'boom'), (two_cylinders(), '')))       # 500 and 1000 kg
    for gate in GATES:
        for half, refused in ((200.0, False), (300.0, True)):
            mass = Mass(90.0, half / 2, half, np.nan, 90.0, 50, gate, half / 2)
            status, _, faults = several.judge_mass(state, mass, 0.0, None, 1e6)
            assert status is (PayloadStatus.NOT_OBSERVABLE if refused else REASONS[gate][0]), (gate, half)
            assert (faults == Fault.VAGUE) == refused
    status, *_ = one.judge_mass(state, replace(mass, half_width=600.0, gate='too slow'), 0.0, None, 1.0)
    assert status is PayloadStatus.TOO_SLOW
