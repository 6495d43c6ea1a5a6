# SPDX-License-Identifier: Apache-2.0
"""One machine: mechanism, hydraulics and sensors, from one YAML."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from pathlib import Path

import casadi as ca
import numpy as np

from .compiled import Kernel
from .dynamics.matrix_r import Reduced, reduce
from .dynamics.position_problem import PositionProblem
from .errors import DescriptionError
from .hydraulics.circuit import Circuit
from .mechanism.description.load import load_description
from .mechanism.description.model import MachineDescription
from .mechanism.parameters import ParameterSet
from .mechanism.machine_system import MachineSystem, build_system
from .resources import share_directory

VALVE_KINDS = ('orifice', 'unknown')


class Machine:
    """The symbolic model of a described machine and what nodes and tools ask of it.

    ``parameters`` holds the uncertain numbers; every compiled function takes them as one vector.
    """

    def __init__(self, description: MachineDescription) -> None:
        self.description = description
        self.parameters = ParameterSet()
        self.system: MachineSystem = build_system(description, self.parameters)
        self.circuit = Circuit(description, self.parameters)
        self._register_hydraulic_parameters()

    @property
    def name(self) -> str:
        """The machine's name."""
        return self.description.name

    @property
    def cylinders(self) -> tuple[str, ...]:
        """Names of the cylinders, in the order of all vectors."""
        return self.circuit.cylinders

    @property
    def volumes(self) -> tuple[str, ...]:
        """Names of the control volumes, in the order of all vectors."""
        return self.circuit.volumes

    @property
    def valves(self) -> tuple[str, ...]:
        """Names of the valves."""
        return self.circuit.valves

    @cached_property
    def channels(self) -> tuple[str, ...]:
        """Measured channels: positions, then pressures."""
        sensors = self.description.sensors
        return (*(f'position/{c}' for c in self.cylinders if c in sensors.position),
                *(f'pressure/{v}' for v in self.volumes if v in sensors.pressure))

    @cached_property
    def commands(self) -> tuple[str, ...]:
        """Command channels the observer needs: those of the valves whose flow is modelled."""
        return tuple(f'command/{name}' for name in self.valves_of('orifice'))

    @property
    def stroke(self) -> np.ndarray:
        """Range of each piston position (cylinders, 2), m."""
        return np.array([[0.0, c.stroke.value] for c in self.description.cylinders.values()])

    @cached_property
    def reduced(self) -> Reduced:
        """The equations of motion in the piston positions."""
        return reduce(self.system)

    @cached_property
    def position_problem(self) -> PositionProblem:
        """Solver for the joint angles at given piston positions."""
        return PositionProblem(self.system, self.parameters)

    def valves_of(self, kind: str) -> tuple[str, ...]:
        """Names of the valves of a kind, 'orifice' or 'unknown'."""
        return tuple(n for n, valve in self.description.hydraulics.valves.items() if valve.kind == kind)

    def outline(self, position: np.ndarray, start: np.ndarray | None = None) -> dict[str, np.ndarray]:
        """Polylines (k, 3), m, in the machine frame at piston positions (cylinders,), m.

        One per body, one per cylinder ``cylinder/<name>`` (base, gland, rod eye), and ``payload`` (1, 3).
        Raises PositionProblemError where the cylinders cannot reach.
        """
        (flat,) = self._points(self.position_problem.solve(position, start), self.parameters.mean)
        points = dict(zip(self.system.points, flat))
        lines = {name: np.array([points[f'{name}.{p}'] for p in body.outline])
                 for name, body in self.description.bodies.items() if body.outline}
        for name, cylinder in self.description.cylinders.items():
            base, eye = points[str(cylinder.base)], points[str(cylinder.rod_eye)]
            length = max(float(np.linalg.norm(eye - base)), 1e-9)
            gland = base + (eye - base) * min(1.0, cylinder.closed_length.value / length)
            lines[f'cylinder/{name}'] = np.array([base, gland, eye])
        lines['payload'] = points[str(self.description.payload.point)][None, :]
        return lines

    @cached_property
    def _points(self) -> Kernel:
        stacked = ca.horzcat(*self.system.points.values()).T
        return Kernel(ca.Function('mbse_points', [self.system.q, self.parameters.symbol], [stacked]), 'vm')

    def _register_hydraulic_parameters(self) -> None:
        """Every uncertain number gets its symbol now: the vector must not grow once a function exists."""
        z, p = ca.SX.sym('z', len(self.cylinders)), ca.SX.sym('p', len(self.volumes))
        for name in self.valves_of('orifice'):
            self.circuit.valve_flows(name, ca.SX.sym('U'), p)
            self.circuit.spool_rate(name, ca.SX.sym('U'), ca.SX.sym('U_in'))
        self.circuit.pressure_rates(z, z, ca.SX.sym('Q', 2 * len(self.valves)))
        self.circuit.hydraulic_forces(p)
        self.circuit.friction_forces(z, p)


def load_machine(name: str | Path, valve: str | None = None) -> Machine:
    """Machine from the name of a file in ``config/machines`` or from a path.

    ``valve`` replaces the kind of all its valves ('orifice' or 'unknown'). Raises DescriptionError.
    """
    path = Path(name)
    if path.suffix not in ('.yaml', '.yml'):
        folder = share_directory() / 'config' / 'machines'
        path = folder / f'{name}.yaml'
        if not path.is_file():
            known = ', '.join(sorted(p.stem for p in folder.glob('*.yaml')))
            raise DescriptionError(str(name), 'machine', str(name), f'a path to a .yaml file or one of: {known}')
    description = load_description(path)
    return Machine(description if valve is None else with_valves(description, valve))


def with_valves(description: MachineDescription, kind: str) -> MachineDescription:
    """The same machine with another model of all its valves; raises DescriptionError when data for it are missing."""
    if kind not in VALVE_KINDS:
        raise DescriptionError(description.file, 'hydraulics.valves', kind, 'one of ' + ', '.join(VALVE_KINDS))
    valves = description.hydraulics.valves
    for name, valve in valves.items():
        if kind == 'orifice' and valve.nominal_flow is None:
            raise DescriptionError(description.file, f'hydraulics.valves.{name}.nominal_flow', None,
                                   'the data of an orifice valve')
    changed = {name: replace(valve, kind=kind) for name, valve in valves.items()}
    return replace(description, hydraulics=replace(description.hydraulics, valves=changed))
