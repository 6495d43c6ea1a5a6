# SPDX-License-Identifier: Apache-2.0
"""A simulated machine with its sensors: samples with noise at the sensors' rate, and the truth beside them.

``TrueSamples``: what the sensors of a machine would say of its true state.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import pi
from typing import NamedTuple

import casadi as ca
import numpy as np

from ..compiled import Kernel
from ..errors import SettingError, check_choice
from ..filters.hydraulic_state import measurements, sample_of, state_names
from ..machine import Machine, with_valves
from ..machine.channels import Channel
from ..settings import Settings, setting
from .cycle import CYCLES, Operator, WorkCycle, dig, joints_cycle, lift_hold_lower, random_cycle
from .pendulum import PendulumMachine
from .physics import NOTHING, PlantPhysics
from .plant import SOIL, STEP_NS, Masses, Plant

SPEEDS = {'rad': 1.0, 'm': 0.3}     # rad/s, m/s, of the joints of an arm, the fastest
STILL = np.zeros(3)     # accelerations of a base that stands


class TrueSamples:
    """Samples of ``channels`` at states of a plant's machine: gain, offset, noise and resolution of each."""

    def __init__(self, machine: Machine, channels: tuple[Channel, ...]) -> None:
        self.machine, self._channels = machine, channels
        self.names, scale = state_names(machine)
        X = ca.SX.sym('X', len(self.names))
        found = measurements(machine, self.names, X)
        values = ca.vertcat(*(item.h if item.index is None else
                              sample_of(machine, channel, X[item.index] * scale[item.index])
                              for item, channel in zip(found, channels)))
        self._scale = scale
        self._values = Kernel(ca.Function('mbse_samples', [X, machine.system.q, machine.parameters.symbol], [values]),
                              'vm')
        self._shape = [(channel.sensor.resolution, item.wraps) for item, channel in zip(found, channels)]

    def read(self, q: np.ndarray, z: np.ndarray, zd: np.ndarray, zdd: np.ndarray, pushes: np.ndarray,
             noise: np.ndarray, base: Mapping[str, float], parameters: np.ndarray | None = None,
             driven: np.ndarray = STILL) -> dict[str, float]:
        """Samples by channel, SI, at coordinates (n,), (g,), their rates, pressures, Pa, and efforts, with noise (s,).

        ``parameters`` (k,): true values of the uncertain numbers, those of the sensors included; default: nominal;
        ``driven`` (3,), m/s2: accelerations of the base along the axes of its accelerometer.
        """
        X = np.zeros(len(self.names))
        X[:3 * len(z)] = np.concatenate([z, zd, zdd])
        X[3 * len(z):3 * len(z) + len(pushes)] = pushes
        for i, name in enumerate(self.names):
            kind, owner = name.split('/', 1)
            if kind == 'supply':
                X[i] = self.machine.hydraulics.supplies[owner].value
            elif kind == 'inclination':
                X[i] = base.get(owner, 0.0)
            elif kind == 'base_acceleration':
                X[i] = driven['xyz'.index(owner)]
        numbers = self.machine.parameters.mean if parameters is None else parameters
        (values,) = self._values(X / self._scale, q, numbers)
        samples = {}
        for channel, sample, (step, wraps) in zip(self._channels, values + noise, self._shape):
            sample = step * round(sample / step) if step else sample
            samples[channel.name] = float((sample + pi) % (2 * pi) - pi) if wraps else float(sample)
        return samples


@dataclass(frozen=True)
class CraneSettings(Settings):
    """How the simulated machine is sampled."""

    rate: float = setting(100.0, 'Rate of the sensors', 'Hz', 1.0, 1000.0)
    noise: float = setting(1.0, "Factor on the sensors' noise of the machine's YAML", '', 0.0, 100.0)


class PlantState(NamedTuple):
    """What sensors see of a plant: all coordinates q, independent ones, their rates, pressures, Pa, and efforts, N m or
    N, accelerations of its base along the axes of an accelerometer, m/s2."""

    q: np.ndarray
    z: np.ndarray
    zd: np.ndarray
    zdd: np.ndarray
    pushes: np.ndarray
    driven: np.ndarray


@dataclass(frozen=True)
class SensorFrame:
    """Samples of one instant, SI, and the truth at it: independent coordinates, pressures, payload."""

    stamp_ns: int
    samples: dict[str, float]
    commands: dict[str, float]
    position: np.ndarray
    velocity: np.ndarray
    acceleration: np.ndarray
    pressure: np.ndarray
    payload: float


class SimulatedCrane:
    """Plant, operator and sensors of one machine; the same seed gives the same samples, bit for bit. A sensor with a
    ``delay`` says what was there so much before the stamp.

    ``parameters``: the plant's true values of the uncertain numbers of ``machine``, in its order (default: nominal);
    ``base``: its true 'roll' and 'pitch', rad, where a sensor measures them; ``plant`` may be shared between cranes of
    one machine, to compile it once; ``soil``: force of the soil, N, where the cycle digs; ``swing``: rad from the
    vertical at which a load that hangs is let go; ``payload``: mass, kg, of several by their names. Raises
    SettingError.
    """

    def __init__(self, machine: Machine, payload: Masses = 50.0, seed: int = 1, cycle: WorkCycle | None = None,
                 settings: CraneSettings = CraneSettings(), parameters: np.ndarray | None = None,
                 plant: Plant | None = None, start_ns: int = 0, base: Mapping[str, float] | None = None,
                 soil: float = 0.0, swing: float = 0.0) -> None:
        self.plant = plant or plant_of(machine)
        self.machine, self.settings = machine, settings
        several, names = machine.description.payloads, payload if isinstance(payload, Mapping) else ()
        if set(names) != set(several):
            raise SettingError('payload', payload, f'masses of {" and ".join(several)}' if several else 'one mass, kg')
        self.payloads = {name: float(mass) for name, mass in payload.items()} if isinstance(payload, Mapping) else {}
        self.payload = next(iter(self.payloads.values())) if isinstance(payload, Mapping) else float(payload)
        self.cycle, self.base, self.soil = cycle or lift_hold_lower(), dict(base or {}), float(soil)
        self.parameters = self.plant.machine.parameters.mean if parameters is None else self._of_plant(parameters)
        self.period_ns = max(1, round(1e9 / settings.rate / STEP_NS)) * STEP_NS
        self.controls = controls_of(self.plant)
        self._operators = self._make_operators()
        self._rng = np.random.default_rng(seed)
        stroke = machine.stroke[:len(machine.cylinders)]
        shares = np.array([self.cycle.share_of(name) for name in machine.cylinders])
        self._x = self.plant.start(stroke[:, 0] + shares * (stroke[:, 1] - stroke[:, 0]),
                                   self._masses(0.0), self.parameters, swing=swing, **self.base)
        self._start_ns, self._next_ns = int(start_ns), int(start_ns)
        self._acceleration = np.zeros(len(self.plant.machine.coordinates))
        self._samples = TrueSamples(self.plant.machine, machine.all_channels)
        self._late = self._delays()
        self._stops = sorted([(-delay % self.period_ns, delay) for delay in self._late] + [(self.period_ns, 0)])
        self._first, self._past = self._state(0.0), dict[tuple[int, int], PlantState]()   # by delay and stamp
        self._stddev = [channel.sensor.stddev * settings.noise for channel in machine.all_channels]

    def frame(self, command: float | Mapping[str, float] | None = None) -> SensorFrame:
        """Samples at the next instant; then the plant moves on one period under the commands sent with them.

        The commands are the operator's, or ``command``, V: that of all valves, or by the names of valves and drives,
        where a controller has taken over.
        """
        stamp, time = self._next_ns, (self._next_ns - self._start_ns) * 1e-9
        payload = self.payload * self.cycle.load_at(time)        # of several the first
        state, (_, z, _, p, _) = self._state(time), self.plant.split(self._x)
        sent = self._commands(command, time, state.q)
        self._advance(stamp, time, np.array([sent[name] for name in self.controls]))
        self._next_ns = stamp + self.period_ns
        g = len(self.machine.coordinates)       # a load that hangs has its coordinates behind the machine's
        return SensorFrame(stamp, self._sample(stamp, state), {f'command/{v}': sent[v] for v in self.machine.valves},
                           z[:g], state.zd[:g], state.zdd[:g], p, payload)

    def _advance(self, stamp: int, time: float, controls: np.ndarray) -> None:
        """The plant one period later; states that late sensors measure on the way are kept."""
        begin = 0
        for stop, delay in self._stops:
            if stop > begin:
                self._x, self._acceleration = self.plant.advance(
                    self._x, controls, (stop - begin) // STEP_NS, self._masses(time), self.parameters, **self.base,
                    **{SOIL: self.soil * self.cycle.soil_at(time)})
                begin = stop
            if delay:
                self._past[delay, stamp + stop + delay] = self._state(time + 1e-9 * stop)

    def _state(self, time: float) -> PlantState:
        (z, pressure), zd = self.plant.read(self._x, self.parameters), self.plant.split(self._x)[2]
        efforts = self.plant.efforts(self._x, self._acceleration, self._masses(time), self.parameters, **self.base)
        return PlantState(self.plant.coordinates(self._x), z, zd, self._acceleration,
                          np.concatenate([pressure, efforts]), self.plant.driven(self._x, self.parameters))

    def _delays(self) -> dict[int, list[str]]:
        """Channels by the delay, ns, that their sensors truly have; no sensor measures what is to come."""
        machine, found = self.plant.machine, dict[int, list[str]]()
        for channel in self.machine.all_channels:
            if (delay := channel.sensor.delay) is not None:
                true = ca.Function('delay', [machine.parameters.symbol], [ca.SX(machine.system.values(delay))])
                late = round(1e9 * float(true(self.parameters)) / STEP_NS) * STEP_NS
                if late > 0:
                    found.setdefault(late, []).append(channel.name)
        return found

    def _masses(self, time: float) -> Masses:
        """That hang on the machine at a time, s."""
        share = self.cycle.load_at(time)
        return {name: mass * share for name, mass in self.payloads.items()} or self.payload * share

    @property
    def coordinates(self) -> np.ndarray:
        """All coordinates (n,) of the plant's machine at the next instant."""
        return self.plant.coordinates(self._x)

    def advance(self, stop_ns: int) -> Iterator[SensorFrame]:
        """Frames up to and including ``stop_ns``."""
        while self._next_ns <= stop_ns:
            yield self.frame()

    def run(self) -> list[SensorFrame]:
        """Frames of the whole cycle."""
        return list(self.advance(self._start_ns + round(self.cycle.duration * 1e9)))

    def _make_operators(self) -> dict[str, Operator]:
        """By control; the cycle's own moves are the first valve's."""
        moves = {self.controls[0]: self.cycle.moves, **self.cycle.others}
        for name in moves:
            if name not in self.controls:
                raise SettingError('cycle', name, 'moves of ' + ', '.join(self.controls))
        return {name: Operator(item, self.cycle.timed) for name, item in moves.items()}

    def _of_plant(self, parameters: np.ndarray) -> np.ndarray:
        """Uncertain numbers of the machine in the order of its plant; raises SettingError if the plant has others."""
        own, wanted = self.machine.parameters.names, self.plant.machine.parameters.names
        if other := sorted(set(own) ^ set(wanted)):
            raise SettingError('parameters', ', '.join(other), f'uncertain numbers that {self.machine.name} and its '
                               'plant have in common: only one of them has these')
        if np.shape(parameters) != (len(own),):
            raise SettingError('parameters', np.shape(parameters), f'{len(own)} numbers: {", ".join(own)}')
        return np.asarray(parameters)[[own.index(name) for name in wanted]]

    def _commands(self, command: float | Mapping[str, float] | None, time: float, q: np.ndarray) -> dict[str, float]:
        """Commands of all controls."""
        if command is None:
            shares = self._shares(q)
            return {name: float(self._operators[name].command(time, shares[name]))
                    if name in self._operators else 0.0 for name in self.controls}
        if isinstance(command, Mapping):
            return {name: float(command.get(name, 0.0)) for name in self.controls}
        return {name: float(command) if name in self.machine.valves else 0.0 for name in self.controls}

    def _shares(self, q: np.ndarray) -> dict[str, float]:
        """Where what each control moves is in its range."""
        machine = self.plant.machine
        found: dict[str, float] = {}
        positions = dict(zip(machine.cylinders, q[machine.pistons]))
        strokes = dict(zip(machine.cylinders, machine.stroke))
        for cylinder, valve in valves_by_cylinder(machine).items():
            low, high = strokes[cylinder]
            found.setdefault(valve, (positions[cylinder] - low) / (high - low))
        for name, place, (low, high) in zip(machine.coordinates, machine.model.z, machine.range):
            if name in self.plant.drives:
                found[name] = (q[place] - low) / (high - low)
        return found

    def _sample(self, stamp: int, state: PlantState) -> dict[str, float]:
        """Noisy samples by channel; of late sensors what was there so much earlier, at rest before the start."""
        noise = self._rng.standard_normal(len(self._stddev)) * self._stddev
        samples = self._samples.read(*state[:-1], noise, self.base, self.parameters, state.driven)
        for delay, names in self._late.items():
            earlier = self._past.pop((delay, stamp), self._first)
            late = self._samples.read(*earlier[:-1], noise, self.base, self.parameters, earlier.driven)
            samples |= {name: late[name] for name in names}
        return samples


def cycle_by_name(name: str, machine: Machine, seed: int, ramp: float = 0.2) -> WorkCycle:
    """Cycle by its name; 'boom' is the first cylinder alone; a machine of drives alone moves all its joints at once, in
    'random' by its seed. Raises SettingError."""
    check_choice('cycle', name, CYCLES)
    if not 0.001 <= ramp <= 2.0:
        raise SettingError('ramp', ramp, 'from 0.001 to 2.0 s')
    if not machine.cylinders:
        check_choice('cycle', name, ('lift_hold_lower', 'random'))
        chance = np.random.default_rng([seed if name == 'random' else 1, 1])
        units = {drive.coordinate: drive.unit for drive in machine.description.drives.values()}
        return joints_cycle(chance, [SPEEDS[units.get(coordinate, 'rad')] for coordinate in machine.coordinates],
                            machine.coordinates)
    led = {drive.coordinate for drive in machine.description.drives.values()}
    drives = [name for k, name in enumerate(machine.coordinates) if k not in machine.actuated or name in led]
    if name == 'random':
        return random_cycle(np.random.default_rng([seed, 1]), others=machine.valves[1:], drives=drives)
    return dig(valves_by_cylinder(machine), drives) if name == 'dig' else lift_hold_lower(ramp)


def valves_by_cylinder(machine: Machine) -> dict[str, str]:
    """Valve that feeds the piston side of each cylinder."""
    hydraulics = machine.hydraulics
    volumes = {chamber: name for name, volume in hydraulics.volumes.items() for chamber in volume.chambers}
    return {cylinder: next(name for name, valve in hydraulics.valves.items()
                           if volumes[cylinder, 'piston'] in (valve.a, valve.b)) for cylinder in machine.cylinders}


def controls_of(plant: Plant) -> tuple[str, ...]:
    """Names of the valves, then of the drives."""
    return (*plant.machine.valves, *plant.drives)


def plant_of(machine: Machine, backend: str = 'auto', physics: PlantPhysics = NOTHING) -> Plant:
    """Plant of a machine, see plant_machine, with physics beyond its file."""
    described = physics.described(machine.description)
    return Plant(plant_machine(machine if described is machine.description else Machine(described)), backend, physics)


def plant_machine(machine: Machine) -> Machine:
    """The machine whose valves become orifices where the observer takes them as unknown, and whose load is a body of
    its own where it hangs; raises DescriptionError."""
    if machine.unknown_valves:
        machine = Machine(with_valves(machine.description, 'orifice', ('unknown',)))
    return PendulumMachine(machine) if machine.swings else machine
