# SPDX-License-Identifier: Apache-2.0
"""A simulated crane with its sensors: samples with noise at the sensors' rate, and the truth beside them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ..machine import Machine, with_valves
from ..settings import Settings, setting
from .cycle import Operator, WorkCycle, lift_hold_lower
from .plant import STEP_NS, Plant


@dataclass(frozen=True)
class CraneSettings(Settings):
    """How the simulated crane is sampled."""

    rate: float = setting(100.0, 'Rate of the sensors', 'Hz', 1.0, 1000.0)
    noise: float = setting(1.0, "Factor on the sensors' noise of the machine's YAML", '', 0.0, 100.0)


@dataclass(frozen=True)
class SensorFrame:
    """Samples of one instant, SI, and the truth at it."""

    stamp_ns: int
    samples: dict[str, float]
    commands: dict[str, float]
    position: np.ndarray
    velocity: np.ndarray
    acceleration: np.ndarray
    pressure: np.ndarray
    payload: float


class SimulatedCrane:
    """Plant, operator and sensors of one machine; the same seed gives the same samples, bit for bit.

    ``parameters`` are the plant's true values of the uncertain numbers (default: nominal);
    ``plant`` may be shared between cranes of one machine, to compile it once.
    """

    def __init__(self, machine: Machine, payload: float = 50.0, seed: int = 1, cycle: WorkCycle | None = None,
                 settings: CraneSettings = CraneSettings(), parameters: np.ndarray | None = None,
                 plant: Plant | None = None, start_ns: int = 0) -> None:
        self.plant = plant or plant_of(machine)
        self.machine, self.payload, self.settings = machine, float(payload), settings
        self.cycle = cycle or lift_hold_lower()
        self.parameters = self.plant.machine.parameters.mean if parameters is None else parameters
        self.period_ns = max(1, round(1e9 / settings.rate / STEP_NS)) * STEP_NS
        self._operator, self._rng = Operator(self.cycle), np.random.default_rng(seed)
        self._stroke = machine.stroke
        position = self._stroke @ [1 - self.cycle.start, self.cycle.start]
        self._x = self.plant.start(position, self.payload, self.parameters)
        self._start_ns, self._next_ns = int(start_ns), int(start_ns)
        self._acceleration = np.zeros(len(machine.cylinders))
        sensors = machine.description.sensors
        self._stddev = [{'position': sensors.position, 'pressure': sensors.pressure}[kind][owner] * settings.noise
                        for kind, owner in (c.split('/') for c in machine.channels)]

    def frame(self, command: float | None = None) -> SensorFrame:
        """Samples at the next instant; then the plant moves on one period under the command sent with them.

        The command is the operator's, or ``command``, V, where a controller has taken over.
        """
        _, z, zd, p, _ = self.plant.split(self._x)
        stamp = self._next_ns
        truth = (z, zd, self._acceleration, p)
        if command is None:
            share = (z[0] - self._stroke[0, 0]) / (self._stroke[0, 1] - self._stroke[0, 0])
            command = self._operator.command((stamp - self._start_ns) * 1e-9, share)
        commands = np.full(len(self.machine.valves), float(command))
        self._x, self._acceleration = self.plant.advance(self._x, commands, self.period_ns // STEP_NS, self.payload,
                                                         self.parameters)
        self._next_ns = stamp + self.period_ns
        return SensorFrame(stamp, self._sample(z, p), {f'command/{v}': float(command) for v in self.machine.valves},
                           *truth, self.payload)

    def advance(self, stop_ns: int) -> Iterator[SensorFrame]:
        """Frames up to and including ``stop_ns``."""
        while self._next_ns <= stop_ns:
            yield self.frame()

    def run(self) -> list[SensorFrame]:
        """Frames of the whole cycle."""
        return list(self.advance(self._start_ns + round(self.cycle.duration * 1e9)))

    def _sample(self, z: np.ndarray, p: np.ndarray) -> dict[str, float]:
        """Noisy samples by channel."""
        owners = dict(zip((f'position/{c}' for c in self.machine.cylinders), z)) | dict(
            zip((f'pressure/{v}' for v in self.machine.volumes), p))
        noise = self._rng.standard_normal(len(self._stddev)) * self._stddev
        return {c: float(owners[c] + e) for c, e in zip(self.machine.channels, noise)}


def plant_of(machine: Machine, backend: str = 'auto') -> Plant:
    """Plant of a machine, whose valves become orifices where the observer takes them as unknown."""
    if machine.valves_of('orifice') == machine.valves:
        return Plant(machine, backend)
    return Plant(Machine(with_valves(machine.description, 'orifice')), backend)
