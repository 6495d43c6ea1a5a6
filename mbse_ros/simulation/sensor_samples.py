# SPDX-License-Identifier: Apache-2.0
"""What the sensors of a machine would say of its true state."""

from __future__ import annotations

from collections.abc import Mapping
from math import pi

import casadi as ca
import numpy as np

from ..compiled import Kernel
from ..estimators.hydraulic_sensors import measurements, sample_of
from ..estimators.hydraulic_state import state_names
from ..machine import Machine
from ..machine.channels import Channel


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

    def read(self, q: np.ndarray, z: np.ndarray, zd: np.ndarray, zdd: np.ndarray, pressure: np.ndarray,
             noise: np.ndarray, base: Mapping[str, float], parameters: np.ndarray | None = None) -> dict[str, float]:
        """Samples by channel, SI, at coordinates (n,), (g,), their rates, pressures, Pa, with noise (s,).

        ``parameters`` (k,): true values of the uncertain numbers, those of the sensors included; default: nominal.
        """
        supplies = self.machine.hydraulics.supplies
        X = np.zeros(len(self.names))
        X[:3 * len(z)] = np.concatenate([z, zd, zdd])
        X[3 * len(z):3 * len(z) + len(pressure)] = pressure
        for i, name in enumerate(self.names):
            kind, owner = name.split('/', 1)
            if kind == 'supply':
                X[i] = supplies[owner].value
            elif kind == 'inclination':
                X[i] = base.get(owner, 0.0)
        numbers = self.machine.parameters.mean if parameters is None else parameters
        (values,) = self._values(X / self._scale, q, numbers)
        samples = {}
        for channel, sample, (step, wraps) in zip(self._channels, values + noise, self._shape):
            sample = step * round(sample / step) if step else sample
            samples[channel.name] = float((sample + pi) % (2 * pi) - pi) if wraps else float(sample)
        return samples
