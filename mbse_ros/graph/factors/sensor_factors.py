# SPDX-License-Identifier: Apache-2.0
"""Measurements as factors: every kind of sensor of a description, with a constant bias where it may have one."""

from __future__ import annotations

from dataclasses import replace

import casadi as ca
import numpy as np

from ...description.model import MechanismDescription, Sensor
from ...errors import SettingError, check_choice
from ...mechanism.sensors import SensorModel, sensor_model
from .equations import FactorEquations
from .kinds import FactorKind


def sensor_factor(equations: FactorEquations, sensor: str, bias: bool = False) -> FactorKind:
    """``h(q, qd, qdd, Q, parameters) + bias - y`` of one sensor, all its channels.

    Roles: those of q, qd, qdd, Q and ``parameters`` on which the sensor depends, and ``bias`` (s,); constants ``y``
    (s,), and u, t where it depends on them. Differences of angles are taken within half a turn. The force of a driver
    solves the equations of motion for its multiplier; its roles are q and qd, and Q and parameters where there are
    any. Raises SettingError for a sensor that the mechanism has not.
    """
    outputs = channels_of(equations, sensor)
    size = len(outputs.channels)
    output = ca.substitute(ca.densify(outputs.output), ca.vertcat(outputs.qdd, outputs.lam),
                           ca.vertcat(equations.symbols['qdd'], equations.lam))
    turns = wraps(equations.model.description, sensor)
    if ca.depends_on(output, equations.lam):
        return _of_multipliers(equations, output, size, bias)
    y, offset = ca.SX.sym('y', size), ca.SX.sym('bias', size if bias else 0)
    error = output + offset - y if bias else output - y
    residual = ca.vertcat(*(ca.atan2(ca.sin(e), ca.cos(e)) for e in ca.vertsplit(error))) if turns else error
    residual = equations.inserted(residual, True)
    roles = [role for role in ('q', 'qd', 'qdd', 'Q', 'parameters') if _depends(residual, equations.symbols[role])]
    known = [role for role in ('u', 't') if _depends(residual, equations.symbols[role])]
    symbols = {role: equations.symbols[role] for role in roles} | ({'bias': offset} if bias else {})
    fixed = {role: equations.symbols[role] for role in known} | {'y': y}
    return FactorKind('sensor', symbols, fixed, residual, parameters=equations.numbers_symbol,
                      numbers=equations.numbers, backend=equations.model.backend)


def channels_of(equations: FactorEquations, sensor: str) -> SensorModel:
    """Outputs of one sensor in the symbols of the equations; raises SettingError."""
    description = equations.model.description
    check_choice('sensors', sensor, description.mechanical_sensors)
    given = description.mechanical_sensors[sensor]
    if given.kind == 'force' and f'drivers.{given.driver}' not in equations.system.rows:
        raise SettingError(f'sensors.{sensor}.driver', given.driver,
                           'a driver whose motion no other constraint implies: the force is not determined')
    return sensor_model(replace(equations.system, description=replace(description, sensors={sensor: given})))


def wraps(description: MechanismDescription, sensor: str) -> bool:
    """Whether a sensor measures an angle modulo full turns."""
    given: Sensor = description.mechanical_sensors[sensor]
    return given.kind == 'inclinometer' or given.kind == 'encoder' and is_angle(description, given.coordinate)


def is_angle(description: MechanismDescription, coordinate: str) -> bool:
    """Whether a coordinate is an angle, by its name."""
    named = description.coordinates.get(coordinate)
    joint = named.joint if named is not None and named.kind == 'joint' else coordinate
    if named is not None and named.kind == 'angle' or coordinate.endswith('.angle'):
        return True
    return joint in description.joints and description.joints[joint].type == 'revolute'


def _depends(expression: ca.SX, symbol: ca.SX) -> bool:
    return bool(symbol.numel()) and ca.depends_on(expression, symbol)


def _of_multipliers(eq: FactorEquations, output: ca.SX, size: int, bias: bool) -> FactorKind:
    """``h(lam(q, qd, Q, parameters)) - y``; the derivative solves the equations of motion for that of ``lam``."""
    roles = ['q', 'qd', *(role for role in ('Q', 'parameters') if eq.symbols[role].numel())]
    s, p = eq.matrix_symbols()
    y, offset = ca.MX.sym('y', size), ca.MX.sym('bias', size)
    numbers = eq.with_unknown(p, s['parameters']) if eq.unknown else p
    state = s['q'], s['qd'], s['Q'], s['u'], s['t'], numbers
    M, forces, J, c, _ = eq.terms(*state)
    qdd, lam, K = eq.accelerations(M, forces, J, c)
    by_q, by_qd, by_Q, by_p, *_ = eq.tangents(*state, qdd, lam)
    slopes = {'q': by_q, 'qd': by_qd, 'Q': by_Q, 'parameters': by_p}
    D = ca.solve(K, ca.densify(ca.horzcat(*(slopes[role] for role in roles))), 'qr')[eq.n:, :]
    h = ca.Function('force', [eq.lam], [output, ca.jacobian(output, eq.lam)])
    value, by_lam = h(lam)
    jacobian = by_lam @ D
    if bias:
        value, jacobian = value + offset, ca.horzcat(jacobian, ca.MX.eye(size))
    variables = {role: s[role] for role in roles} | ({'bias': offset} if bias else {})
    fixed = {role: s[role] for role in ('u', 't') if s[role].numel()} | {'y': y}
    return FactorKind('sensor', variables, fixed, value - y, jacobian, p, eq.numbers, backend=eq.model.backend)


def sample_noise(equations: FactorEquations, sensor: str, stddev: float | None = None) -> np.ndarray:
    """Standard deviations (s,) of a sensor's channels: the file's, or one given; SettingError where there is none."""
    outputs = channels_of(equations, sensor)
    found = outputs.stddev if stddev is None else np.full(len(outputs.channels), float(stddev))
    if not (np.isfinite(found).all() and (found > 0).all()):
        raise SettingError(f'sensors.{sensor}.stddev', found.tolist(), 'positive standard deviations')
    return found
