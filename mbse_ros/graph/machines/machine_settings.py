# SPDX-License-Identifier: Apache-2.0
"""Tuning of the factor graph of a machine."""

from __future__ import annotations

from dataclasses import dataclass

from ...settings import Settings, setting


@dataclass(frozen=True)
class MachineGraphSettings(Settings):
    """Tuning of the machine's factor graph; the noise of the sensors is in the machine's YAML."""

    acceleration_psd: float = setting(10.0, 'Random walk of the piston acceleration', '(m/s^2)^2/s', 1e-6, 1e6)
    free_psd: float = setting(1.0, 'Random walk of the acceleration of a coordinate that no cylinder moves', '(SI)^2/s',
                              1e-9, 1e6)
    pressure_psd: float = setting(20.0, 'Random walk of the pressures', 'MPa^2/s', 1e-6, 1e6)
    inclination_psd: float = setting(1e-5, 'Random walk of a measured inclination of the base', 'rad^2/s', 1e-12, 1e2)
    unknown_force: float = setting(0.0, 'Standard deviation of the force at a piston that is not in the model; '
                                        '0: as likely as the log says', 'N', 0.0, 1e6)
    unknown_time: float = setting(0.1, 'Correlation time of this force', 's', 1e-3, 100.0)
    balance_stddev: float = setting(5.0, 'Standard deviation of the balance of forces at one instant', 'N', 1e-3, 1e6)
    min_speed: float = setting(0.0, "Slowest piston whose friction is trusted; 0: 1.2 times the transition velocity of "
                                    "each cylinder's friction", 'm/s', 0.0, 1.0)
    guard_time: float = setting(0.15, 'A balance counts when the piston moves this long before and after it; '
                                      'each speed is taken over this long before and after, too', 's', 0.01, 10.0)
    stroke_margin: float = setting(0.005, 'Distance from the ends of the stroke in which forces are not trusted', 'm',
                                   0.0, 1.0)
