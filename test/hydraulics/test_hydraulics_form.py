# SPDX-License-Identifier: Apache-2.0
"""Other friction out than in, and forces beside a piston: by hand, their derivatives, nothing where there are none."""

from __future__ import annotations

from functools import cache

import casadi as ca
import numpy as np
import pytest
from core_support import feed
from machine_variants import changed

from mbse_ros.compiled.dense import c_source
from mbse_ros.description.explain import explain
from mbse_ros.description.model import fingerprint
from mbse_ros.filters.force_balance import force_balance
from mbse_ros.filters.hydraulic_error import own_accelerations
from mbse_ros.filters.hydraulic_observer import HydraulicObserver
from mbse_ros.filters.hydraulic_state import MPA, state_names
from mbse_ros.filters.observer_settings import ObserverSettings
from mbse_ros.machine import Machine, load_machine
from mbse_ros.machine.feed_forward import FeedForward
from mbse_ros.simulation.crane import SimulatedCrane, plant_of
from mbse_ros.simulation.cycle import Move, WorkCycle
from mbse_ros.simulation.plant import Plant
from mbse_ros.streams.pipeline import Pipeline

CYLINDER = 'cylinders/lift'
FORM = {'constant': (-400.0, 100.0), 'linear': (-3e4, 1e4), 'cubic': (2e5, 1e5), 'damping': (1e5, 1e4),
        'about': (0.2, 0.01)}
DIRECTED = {'out_scale': (1.3, 0.1), 'in_scale': (0.8, 0.1)}
POINTS = [(0.05, -0.02), (0.3, 0.0), (0.31, 0.001), (0.45, 0.1)]


def written(numbers: dict[str, tuple[float, float]], uncertain: bool) -> dict[str, object]:
    return {key: {'value': value, 'stddev': stddev} if uncertain else value for key, (value, stddev) in numbers.items()}


@cache
def crane(name: str = 'patu655_lift', uncertain: bool = True, **more: object) -> Machine:
    """A machine whose lift cylinder has both."""
    changes = {f'{CYLINDER}/friction/{key}': value for key, value in written(DIRECTED, uncertain).items()}
    return changed(name, {**changes, f'{CYLINDER}/parallel': written(FORM, uncertain), **more})


def by_hand(s: float, v: float, p1: float, p2: float, count: int) -> float:
    """Force against the way out: that of the file of patu655_lift, with other friction out and in, and FORM."""
    sign = np.tanh(4 * v / 5e-3)
    dry = 210.0 * sign + (300.0 - 210.0) * (v / 5e-3) / ((v / 5e-3) ** 2 / 4 + 0.75) ** 2 + 330.0 * v
    friction = (1.05 + 0.25 * sign) * (dry + abs(p1 - p2) * 5.5e-4 * sign)
    return count * (friction - 400.0 - 3e4 * (s - 0.2) + 2e5 * (s - 0.2) ** 3 + 1e5 * v)


@pytest.mark.parametrize('count', [1, 2])
def test_forces_by_hand(count: int) -> None:
    machine, z, zd, p = crane(**{f'{CYLINDER}/count': count}), ca.SX.sym('z'), ca.SX.sym('zd'), ca.SX.sym('p', 2)
    f = ca.Function('f', [z, zd, p, machine.parameters.symbol], [machine.circuit.resisting_forces(z, zd, p),
                                                                 machine.circuit.friction_bounds(p)])
    for s, v in POINTS:
        force, bound = f(s, v, [5e6, 2e6], machine.parameters.mean)
        assert float(force) == pytest.approx(by_hand(s, v, 5e6, 2e6, count), rel=1e-12)
        assert float(bound) == pytest.approx(count * 1.3 * (300.0 + 5.5e-4 * 3e6), rel=1e-9)      # the larger of both


def test_a_spring_is_free_in_the_middle_of_the_stroke_where_the_file_does_not_say() -> None:
    machine = changed('patu655_lift', {f'{CYLINDER}/parallel': {'linear': '20 kN/m'}})
    force = [float(ca.evalf(machine.circuit.parallel_forces(ca.SX([s]), ca.SX([0.3])))) for s in (0.2675, 0.5)]
    assert force == pytest.approx([0.0, 2e4 * (0.5 - 0.2675)])


def test_plant_and_force_balance_by_hand() -> None:
    """With the force beside it, the plant's boom is faster by this force times its lever over its inertia; the force
    balance asks for as much more."""
    plain, own, found = load_machine('patu655_lift'), crane(uncertain=False), []
    p, friction = np.array([5e6, 2e6]), ca.SX.sym('v')
    before = ca.Function('f', [friction, plain.parameters.symbol], [plain.circuit.friction_forces(friction, ca.SX(p))])
    for machine in (plain, own):
        b, plant, slow = force_balance(machine, state_names(machine)[0]), Plant(machine, 'vm'), [100.0, 0.0]
        assert list(machine.parameters.states) == ['payload.mass']
        M, g = (ca.Function('f', inputs, outputs) for inputs, outputs in (
            ([machine.system.q, machine.payload, machine.parameters.symbol], [machine.reduced.Mbar]),
            ([b.near, b.X, machine.payload, machine.parameters.symbol], [b.g])))
        rhs, numbers = plant._rhs(), machine.parameters.mean
        for s, v in POINTS:
            q = machine.position(np.array([s]))
            near = q[machine.system.dependent]
            zdd = rhs(np.concatenate([near, [s, v], p / MPA, [0.0]]), [0.0], slow, numbers)[2]
            found.append([float(item) for item in (zdd, M(q, 100.0, numbers),
                                                   g(near, [s, v, 0.2, *p, 0.0], 100.0, numbers))])
    for (s, v), one, other in zip(POINTS, found, found[len(POINTS):]):
        more = by_hand(s, v, *p, 1) - float(before(v, plain.parameters.mean))
        assert one[1] * (other[0] - one[0]) == pytest.approx(-more, rel=1e-9)
        assert other[2] - one[2] == pytest.approx(more, rel=1e-9)


def test_derivatives_of_the_force_balance() -> None:
    """By the state and by all uncertain numbers, those of the new forms among them: finite differences."""
    machine = crane()
    b, names = force_balance(machine, state_names(machine)[0]), machine.parameters.names
    f = ca.Function('g', [b.near, b.X, machine.payload, machine.parameters.symbol], [
        b.g, ca.densify(ca.jacobian(b.g, b.X)), ca.densify(ca.jacobian(b.g, machine.parameters.symbol))])
    own = {f'{CYLINDER}/{kind}/{key}'.replace('/', '.') for kind, form in (('parallel', FORM), ('friction', DIRECTED))
           for key in form}
    assert own <= {names[k] for k in machine.parameters.consider}
    for s, v in ((0.31, 0.004), (0.4, -0.05)):
        near = machine.position(np.array([s]))[machine.system.dependent]
        X, numbers = np.array([s, v, 0.2, 5e6, 2e6, 0.0]), machine.parameters.mean
        _, by_state, by_numbers = (item.full() for item in f(near, X, 100.0, numbers))
        for k, step in ((1, 1e-7), (2, 1e-4), (3, 1.0), (4, 1.0)):
            move = step * np.eye(6)[k]
            slope = (float(f(near, X + move, 100.0, numbers)[0]) - float(f(near, X - move, 100.0, numbers)[0])) / step
            assert 0.5 * slope == pytest.approx(by_state[0, k], rel=1e-5), k
        for k in (k for k, name in enumerate(names) if name in own):
            move = 1e-3 * machine.parameters.stddev[k] * np.eye(len(names))[k]
            slope = float(f(near, X, 100.0, numbers + move)[0]) - float(f(near, X, 100.0, numbers - move)[0])
            assert 0.5 * slope / move[k] == pytest.approx(by_numbers[0, k], rel=1e-5), names[k]


def test_the_model_of_errors_has_them() -> None:
    """The accelerations that errorEKF_FE of machines predicts are those of the plant, their slopes along the loops
    those of finite differences."""
    machine = crane(uncertain=False)
    names, numbers, plant = state_names(machine)[0], machine.parameters.mean, Plant(machine, 'vm')._rhs()
    X = ca.SX.sym('X', len(names))
    f = ca.Function('m', [machine.system.q, X, machine.payload, machine.parameters.symbol],
                    list(own_accelerations(machine, names, X, ca.SX([1e-6]))))
    x = np.array([0.31, 0.03, 0.0, 5.0, 2.0, 0.0])

    def at(x: np.ndarray) -> tuple[float, np.ndarray]:
        found = f(machine.position(x[:1]), x, 100.0, numbers)
        return float(found[0]), found[1].full()[0]
    near = machine.position(x[:1])[machine.system.dependent]
    assert at(x)[0] == pytest.approx(float(plant([*near, *x[:2], *x[3:]], [0.0], [100.0, 0.0], numbers)[2]), rel=1e-6)
    for k in (0, 1, 3, 4):
        move = 1e-5 * np.eye(6)[k]
        assert (at(x + move)[0] - at(x - move)[0]) / 2e-5 == pytest.approx(at(x)[1][k], rel=1e-5), names[k]


def test_what_holds_a_load_and_where_a_plant_starts() -> None:
    """The oil pushes against load and spring; a plant that starts at rest stays there."""
    machine = changed('patu655_lift', {f'{CYLINDER}/parallel': {'constant': '3 kN', 'linear': '-40 kN/m'}})
    plain, s = load_machine('patu655_lift'), 0.4
    more = 3e3 - 4e4 * (s - 0.2675)
    oil = [FeedForward(it)(it.position(np.array([s])), 200.0) for it in (plain, machine)]
    assert oil[1].forces - oil[0].forces == pytest.approx([more])
    assert oil[1].torques == pytest.approx(oil[0].torques)
    moving = [FeedForward(crane(uncertain=False))(plain.position(np.array([s])), 200.0, zd=np.array([v])).forces[0]
              for v in (0.0, 0.05)]
    other = [FeedForward(plain)(plain.position(np.array([s])), 200.0, zd=np.array([v])).forces[0] for v in (0.0, 0.05)]
    assert np.diff(moving) - np.diff(other) == pytest.approx([1e5 * 0.05])
    plant = Plant(machine, 'vm')
    x = plant.start(np.array([s]), 200.0, machine.parameters.mean)
    area = machine.circuit.areas()
    p = x[plant._sizes[0] + 2:][:2] * MPA
    push = float(ca.evalf(ca.SX(area[0]))) * p[0] - float(ca.evalf(ca.SX(area[1]))) * p[1]
    assert push == pytest.approx(oil[1].forces[0], rel=1e-9)


@pytest.mark.parametrize('name', ['patu655_lift', 'patu655'])
def test_files_without_them_are_as_before(name: str) -> None:
    """Fingerprint, and the compiled step of the observer: with forms that change nothing it is the same text."""
    machine = load_machine(name)
    assert fingerprint(machine.description) == {'patu655_lift': '865d6255', 'patu655': 'f093de14'}[name]
    nothing = {f'cylinders/{c}/{key}': value for c in machine.cylinders for key, value in (
        ('parallel', {'constant': 0, 'about': 0.1}), ('friction/out_scale', 1), ('friction/in_scale', 1))}
    texts = {c_source(HydraulicObserver(it, ObserverSettings(), 'vm').step(1e-3)[0])
             for it in (machine, changed(name, nothing))}
    assert len(texts) == 1
    assert fingerprint(changed(name, nothing).description) != fingerprint(machine.description)


def test_they_are_explained() -> None:
    rows = {row.name: row for section in explain(crane().description) for row in section.rows}
    assert rows['parallel damping'].value == '100000 +- 1e+04 N*s/m'
    assert 'friction out_scale' in rows and 'parallel about' in rows
    plain = {row.name for section in explain(load_machine('patu655_lift').description) for row in section.rows}
    assert not any(name.startswith('parallel') or name == 'friction in_scale' for name in plain)


def test_a_load_is_weighed_beside_a_damper() -> None:
    """By the file that has it, within its interval; by one that has not, 20 kg too low."""
    own = changed('patu655_lift', {f'{CYLINDER}/parallel': {'damping': {'value': 1e5, 'stddev': 1e4}}})
    frames = SimulatedCrane(own, 200.0, 1, WorkCycle(0.2, (Move(0.0, 0.5), Move(6.0, 2.5))), plant=plant_of(own)).run()
    last = [[out.payload for out in feed(Pipeline(it), frames)][-1] for it in (own, load_machine('patu655_lift'))]
    assert last[0].lower < 200.0 < last[0].upper and last[0].upper - last[0].lower < 100.0
    assert abs(last[1].mass - 200.0) > 5 * abs(last[0].mass - 200.0)
