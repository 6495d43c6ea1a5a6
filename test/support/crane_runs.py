# SPDX-License-Identifier: Apache-2.0
"""A machine's file and its logs through ``crane_by_hand`` and through the package with the preset ``paper``."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from math import pi
from typing import Any, NamedTuple

import numpy as np
import yaml
from crane_by_hand import Crane, Tuning, interpolated, observed
from source_tree import ROOT

from mbse_ros.description.presets import preset_words
from mbse_ros.filters.observer_settings import ObserverSettings
from mbse_ros.machine import Machine, load_machine
from mbse_ros.offline.bag import parse_tuning
from mbse_ros.payload.paper import InverseDynamics
from mbse_ros.simulation.crane import SimulatedCrane
from mbse_ros.simulation.cycle import Move, WorkCycle
from mbse_ros.simulation.plant import Plant
from mbse_ros.streams.interpolation import Interpolator
from mbse_ros.streams.records import PayloadEstimate, Segment, StateEstimate
from mbse_ros.streams.stages import ObserverStage, PayloadStage

CYCLE = WorkCycle(0.3, (Move(0.0, 0.4), Move(5.0, 1.8), Move(0.0, 0.6), Move(-5.0, 1.8), Move(0.0, 0.4)))      # 5 s
PAPER = parse_tuning(preset_words('paper'))
OBSERVER, PAYLOAD = PAPER['observer'], replace(PAPER['payload'], min_speed=5e-3)      # the file's transition velocity
SI = np.array([1.0, 1.0, 1.0, 1e6, 1e6, 1.0])       # the state of the print in MPa
STEP = 1_000_000    # ns
UNITS = {'m': 1.0, 'mm': 1e-3, 'kg': 1.0, 'kg*m^2': 1.0, 'm/s^2': 1.0, 'mm/s': 1e-3, 'N': 1.0, 'N*s/m': 1.0,
         'm^2': 1.0, 'm^3': 1.0, 'MPa': 1.0, 'kPa': 1e-3, 'l/min': 1e-3 / 60.0, 'V': 1.0, 'ms': 1e-3}


def numbers(item: Any) -> Any:
    """A number of a machine's file in m, kg, s, MPa; a list of them as an array."""
    if isinstance(item, dict):
        return numbers(item['value'])
    if isinstance(item, list):
        return np.array([numbers(part) for part in item])
    value, _, unit = str(item).partition(' ')
    return float(value) * (UNITS[unit] if unit else 1.0)


@cache
def crane_of(name: str) -> tuple[Crane, np.ndarray]:
    """A machine's file with one lifting cylinder, read by itself, and the variances of its sensors (3,)."""
    file = yaml.safe_load((ROOT / 'config' / 'machines' / f'{name}.yaml').read_text())
    (cylinder,), (body,) = file['cylinders'].values(), file['bodies'].values()
    hydraulics, friction, ground = file['hydraulics'], cylinder['friction'], file['points']
    (valve,), volumes = hydraulics['valves'].values(), list(hydraulics['volumes'].values())
    (joint,) = file['joints'].values()
    hoses = [volume['hoses'][0] for volume in volumes]
    bore, rod = numbers(cylinder['bore']), numbers(cylinder['rod'])
    flow, command, drop = (numbers(valve[f'nominal_{kind}']) for kind in ('flow', 'command', 'pressure'))
    in_plane = [numbers(point)[[0, 2]] for point in (
        ground[cylinder['base'].partition('.')[2]]['fixed'], ground[joint['parent'].partition('.')[2]]['fixed'],
        body['points'][cylinder['rod_eye'].partition('.')[2]],
        body['points'][file['payload']['point'].partition('.')[2]], body['center_of_mass'])]
    crane = Crane(
        numbers(file['gravity']), *in_plane, numbers(body['mass']), numbers(body['inertia']['yy']),
        numbers(cylinder['closed_length']), numbers(cylinder['stroke']),
        pi / 4 * np.array([bore ** 2, bore ** 2 - rod ** 2]), numbers(hydraulics['oil_bulk_modulus']),
        numbers([volume['cylinder_bulk_modulus'] for volume in volumes]), numbers([hose['volume'] for hose in hoses]),
        numbers([hose['bulk_modulus'] for hose in hoses]), numbers(hydraulics['supplies']['pump']),
        numbers(hydraulics['supplies']['tank']), flow / (command * drop ** 0.5), numbers(valve['laminar_pressure']),
        numbers(valve['time_constant']), *(numbers(friction[key]) for key in (
            'coulomb', 'static', 'transition_velocity', 'viscous', 'pressure_difference', 'pressure_rod')))
    return crane, numbers([sensor['stddev'] for sensor in file['sensors'].values()]) ** 2


def smooth(crane: Crane) -> Any:
    """The sign of Eq. 52 as the paper's section 4 has it for its plant."""
    return lambda velocity: np.tanh(4 * velocity / crane.vs)


class Log(NamedTuple):
    """Stamps (k,), ns, samples (k, 3), SI, commands (k,), V, and the true motion and pressures (k, 5), of the print."""

    stamps: np.ndarray
    samples: np.ndarray
    commands: np.ndarray
    truth: np.ndarray


@cache
def machine_of(name: str) -> tuple[Machine, Plant]:
    machine = load_machine(name)
    return machine, Plant(machine, 'vm')


@cache
def log_of(name: str, load: float, seed: int) -> Log:
    """5 s at 100 Hz: lift, hold, lower."""
    machine, plant = machine_of(name)
    frames = SimulatedCrane(machine, load, seed, CYCLE, plant=plant).run()
    return Log(np.array([f.stamp_ns for f in frames]),
               np.array([[f.samples[channel] for channel in machine.channels] for f in frames]),
               np.array([f.commands[machine.commands[0]] for f in frames]),
               np.array([[*f.position, *f.velocity, *f.acceleration, *(f.pressure / 1e6)] for f in frames]))


@cache
def printed(name: str, load: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """States (5000, 6) and covariances of the print at each step, from the observer's own start: the first step."""
    crane, variance = crane_of(name)
    log, first = log_of(name, load, seed), ObserverSettings()
    grid = np.arange(log.stamps[0], log.stamps[-1] + 1, STEP)
    values, _ = interpolated(log.stamps, log.samples / [1.0, 1e6, 1e6], grid)
    commands = log.commands[np.searchsorted(log.stamps, grid, side='right') - 1]
    X = np.array([values[1, 0], 0.0, 0.0, values[1, 1], values[1, 2], commands[1]])
    P = np.diag([variance[0], first.start_velocity ** 2, first.start_acceleration ** 2, *variance[1:], 0.5 ** 2])
    return observed(crane, X, P, commands[:-1], values[1:], tuning_of(name))


def tuning_of(name: str) -> Tuning:
    return Tuning(1e-9 * STEP, (OBSERVER.acceleration_psd, OBSERVER.pressure_psd, OBSERVER.spool_psd),
                  crane_of(name)[1], PAYLOAD.low_pass_gain, PAYLOAD.window // 2)


class Product(NamedTuple):
    """Of a log: segments with the stamps at which they came, states at each step (n, 6), in the units of the print,
    covariances and payloads after each segment, and rows (n, 2) of ``MassSamples`` of each step."""

    segments: list[tuple[int, Segment]]
    states: np.ndarray
    covariances: np.ndarray
    payloads: list[PayloadEstimate]
    rows: np.ndarray


@cache
def estimated(name: str, load: float, seed: int, measurements: str = 'interpolated') -> Product:
    """A log through interpolation, observer and payload."""
    machine, log = machine_of(name)[0], log_of(name, load, seed)
    interpolator, dynamics = Interpolator(machine.channels, machine.commands), InverseDynamics(machine, 'vm')
    observer, payload = ObserverStage(machine, replace(OBSERVER, measurements=measurements), 'vm'), PayloadStage(
        machine, PAYLOAD, 'vm')
    dynamics.configure(PAYLOAD)
    segments = [(int(stamp), segment) for stamp, samples, command in zip(log.stamps, log.samples, log.commands)
                for channel, value in (*zip(machine.channels, samples), (machine.commands[0], command))
                for segment in interpolator.add(channel, int(stamp), float(value))]
    states: list[StateEstimate] = [observer.process(segment) for _, segment in segments]
    return Product(segments, np.concatenate([state.mean for state in states]) / SI,
                   np.array([state.covariance for state in states]) / np.outer(SI, SI),
                   [payload.process(state) for state in states],
                   np.concatenate([dynamics.process(state.mean, state.covariance).rows[:, :2] for state in states]))
