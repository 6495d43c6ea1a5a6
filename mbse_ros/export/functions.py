# SPDX-License-Identifier: Apache-2.0
"""The functions of an exported model: as CasADi functions, as generated C, and put together as the C code does.

With them the names, units and C macros of what an exported model takes and gives.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from ..compiled import Kernel
from ..compiled.dense import dense
from ..description.coordinate_units import input_unit, measured_unit, unit_of
from ..description.model import RATES
from ..dynamics.model import Model
from ..dynamics.partitioned import newton_function, velocity_function
from ..dynamics.sensor_equations import sensor_function
from ..dynamics.state_equations import Pieces, is_small, state_function, state_symbols
from ..mechanism.assembly import MechanismSystem
from ..mechanism.sensors import SensorModel
from ..transition.exponential import transition

STEP_ITERATIONS = 3         # Newton's method in a transition step, from a guess of second order
LARGEST_ITERATIONS = 30     # in the position problem, from a far guess
TOLERANCE = 1e-11           # of Phi, times the square of the largest coordinate above 1
BODY = re.compile(r'^/\*[^\n]*\*/\nstatic int (casadi_f\d+)(\(.*?^}\n)', re.DOTALL | re.MULTILINE)
WORK = re.compile(r'\*sz_arg = (\d+).*?\*sz_res = (\d+).*?\*sz_iw = (\d+).*?\*sz_w = (\d+)', re.DOTALL)
COORDINATE_RATES = {**RATES, '1': '1/s'}
PARAMETERS = {'mass': 'kg', 'inertia': 'kg m^2', 'length': 'm', 'center_of_mass': 'm', 'points': 'm',
              'gravity': 'm/s^2'}


@dataclass(frozen=True)
class Generated:
    """C source of all functions; by function the lengths of its argument, result, integer and number work arrays, and
    about how many local numbers it has."""

    source: str
    work: dict[str, tuple[int, int, int, int]]
    locals: dict[str, int]


@dataclass
class ExportedFunctions:
    """What is exported of a model, by its virtual machine: ``state``, ``newton``, ``velocity``, ``energy`` and, where
    there are sensors, ``sensors``."""

    model: Model
    order: str
    functions: dict[str, ca.Function] = field(init=False)

    def __post_init__(self) -> None:
        system = self.model.partition().system
        p = system.values.symbol
        pieces = Pieces(system, p)
        self.functions = {'state': state_function(system, p, pieces=pieces), 'newton': newton_function(system),
                          'velocity': velocity_function(system), 'energy': energy_function(system)}
        if system.description.sensors:
            self.functions['sensors'] = sensor_function(system, p, pieces=pieces)
        self._kernels = {name: Kernel(function, 'vm') for name, function in self.functions.items()}
        self.z, self.p = self.model.z, self.model.system.values.mean

    def generated(self, prefix: str) -> Generated:
        """C of all functions, named ``<prefix>_casadi_<function>``."""
        generator = ca.CodeGenerator(f'{prefix}_generated', {'casadi_int': 'int', 'with_export': False})
        dense_ones = {name: dense(function, f'{prefix}_casadi_{name}') for name, function in self.functions.items()}
        for function in dense_ones.values():
            generator.add(function)
        source = shared(generator.dump())
        return Generated(source, {name: work_sizes(source, function) for name, function in dense_ones.items()},
                         {name: function.sz_w() for name, function in dense_ones.items()})

    def call(self, name: str, *arrays: ArrayLike) -> tuple[np.ndarray, ...]:
        """Outputs of one function."""
        return self._kernels[name](*arrays, self.p)

    def position(self, guess: np.ndarray, t: float, fixed: int = 0) -> tuple[np.ndarray, float]:
        """Coordinates (n,) and the largest residual there; ``fixed`` iterations, or as many as are needed."""
        q, limit = guess.copy(), fixed or LARGEST_ITERATIONS
        for k in range(limit + 1):
            fresh, size = self.call('newton', q, [t])
            if k == limit or size[0] <= (0.0 if fixed else 1e-3) * TOLERANCE * max(1.0, np.max(np.abs(q)) ** 2):
                break
            q = fresh
        return q, float(size[0])

    def rates(self, q: np.ndarray, zd: np.ndarray, u: np.ndarray, t: float
              ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """``f`` (2g,), ``A`` (2g, 2g), ``B`` (2g, k), ``qd``, ``qdd`` (n,)."""
        zdd, A, B, qdd, _, qd = self.call('state', q, zd, u, [t])
        size = 2 * len(zd)
        return np.concatenate([zd, zdd]), A.reshape(size, size), B.reshape(size, len(u)), qd, qdd

    def step(self, X: np.ndarray, q: np.ndarray, u: np.ndarray, t: float, dt: float
             ) -> tuple[np.ndarray, np.ndarray, float, np.ndarray]:
        """``X + G f`` (2g,), coordinates there (n,), ``F`` (2g, 2g), residual."""
        g = len(self.z)
        f, A, _, qd, qdd = self.rates(q, X[g:], u, t)
        F, G = transition(A, dt, self.order)
        fresh = X + G @ f
        guess = q + dt * qd + dt * dt / 2 * qdd
        guess[self.z] = fresh[:g]
        return (fresh, *self.position(guess, t + dt, STEP_ITERATIONS), F)


def energy_function(system: MechanismSystem) -> ca.Function:
    """Function ``(q, zd, u, t, p)`` -> kinetic and potential energy, J, and power of loads, inputs and dampers, W."""
    p = system.values.symbol
    parts = ca.Function('energies', [system.q, system.qd, system.u, system.t, p], [ca.vertcat(
        system.kinetic, system.potential, ca.dot(system.qd, system.other_forces))])
    kind = ca.SX if is_small(system) else ca.MX
    q, zd, u, t, numbers = state_symbols(system, p, kind)
    qd = velocity_function(system)(q, zd, t, numbers)
    return ca.Function('mbse_energy', [q, zd, u, t, numbers], [parts(q, qd, u, t, numbers)], {'cse': True})


def shared(source: str) -> str:
    """Generated C with one copy of functions that are the same: CasADi keeps those apart that were made apart."""
    same: dict[str, str] = {}
    first: dict[str, str] = {}

    def renamed(text: str) -> str:
        return re.sub(r'\bcasadi_f\d+\b', lambda found: same.get(found[0], found[0]), text)

    def kept(found: re.Match[str]) -> str:       # called ones come before their callers
        name, body = found[1], renamed(found[2])
        same[name] = first.setdefault(body, name)
        return found[0].replace(found[2], body) if same[name] == name else ''

    head, mark, functions = source.partition('/* Configuration this file')
    functions = renamed(BODY.sub(kept, functions))
    unused = [name for name, other in same.items() if name != other]
    return re.sub(r'^#define (casadi_f\d+) .*\n', lambda found: '' if found[1] in unused else found[0], head,
                  flags=re.MULTILINE) + mark + functions


def work_sizes(source: str, function: ca.Function) -> tuple[int, int, int, int]:
    """Lengths of the work arrays as the C code states them, smaller than the virtual machine's."""
    _, found, rest = source.partition(f'int {function.name()}_work(')
    match = WORK.search(rest) if found else None
    if match is None:
        return function.sz_arg(), function.sz_res(), function.sz_iw(), function.sz_w()
    arg, res, iw, w = map(int, match.groups())
    return arg, res, iw, w


@dataclass(frozen=True)
class Item:
    """One number at a border: its ``name``, the ``macro`` of its place, its ``unit``."""

    name: str
    macro: str
    unit: str


@dataclass(frozen=True)
class Names:
    """Prefix of the C functions, and the items of each vector: all coordinates ``q``, the independent ones ``z``,
    inputs ``u``, sensors ``h``, parameters ``p``."""

    prefix: str
    q: tuple[Item, ...]
    z: tuple[Item, ...]
    u: tuple[Item, ...]
    h: tuple[Item, ...]
    p: tuple[Item, ...]

    @property
    def macro(self) -> str:
        """Prefix of the macros."""
        return self.prefix.upper()

    @property
    def groups(self) -> dict[str, tuple[Item, ...]]:
        """The vectors by what people call them."""
        return {'Coordinates q': self.q, 'Independent coordinates z': self.z, 'Inputs u': self.u, 'Sensors h': self.h,
                'Parameters p': self.p}


def export_names(model: Model, sensors: SensorModel) -> Names:
    """Names of a model's vectors."""
    prefix, description = _prefix(comment(model.description.name)), model.description
    q_units = [unit_of(description, name) or '1' for name in model.names]
    h_units = [measured_unit(description, name.partition('.')[0]) for name in sensors.channels]
    parameters = model.system.values.names
    return Names(
        prefix, _items(prefix, 'Q', model.names, q_units),
        _items(prefix, 'Z', model.independent, [q_units[i] for i in model.z]),
        _items(prefix, 'U', model.inputs, [input_unit(description, name) for name in model.inputs]),
        _items(prefix, 'H', sensors.channels, h_units),
        _items(prefix, 'P', parameters, [_parameter_unit(name) for name in parameters]))


def comment(text: str) -> str:
    """Text on one line that neither ends nor begins a C comment."""
    return ' '.join(text.split()).replace('*/', '* /').replace('/*', '/ *').replace('??', '? ?')


def _prefix(name: str) -> str:
    """The name as the beginning of a C identifier."""
    word = re.sub(r'\W', '_', name, flags=re.ASCII)
    if not word[:1].isalpha():
        word = f'm_{word}'
    return f'{word}_mechanism' if word in ('test_model', 'mbse') else word


def _items(prefix: str, group: str, names: Sequence[str], units: Sequence[str]) -> tuple[Item, ...]:
    taken: set[str] = set()
    items = []
    for name, unit in zip(names, units):
        word = base = f'{prefix}_{group}_' + re.sub(r'\W+', '_', name, flags=re.ASCII).strip('_')
        count = 1
        while word.upper() in taken:           # names that differ by a dot or in their case only
            count += 1
            word = f'{base}_{count}'
        taken.add(word.upper())
        items.append(Item(name, word.upper(), unit))
    return tuple(items)


def _parameter_unit(name: str) -> str:
    """Unit of a number by the end of its key; a parameter of the file is in the SI unit of its use."""
    parts = re.sub(r'\[\d+\]', '', name).split('.')
    return next((PARAMETERS[part] for part in reversed(parts) if part in PARAMETERS), 'SI')
