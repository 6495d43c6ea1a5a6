# SPDX-License-Identifier: Apache-2.0
"""Tuning of the scale."""

from __future__ import annotations

from dataclasses import dataclass

from ..settings import Settings, setting

LEAST_LOAD = 0.03       # of the range of payload.limits, where the tuning leaves it to the machine
LEAST_CHANGE = 0.02


@dataclass(frozen=True)
class ScaleSettings(Settings):
    """How loads are distinguished, and what is taken off them."""

    least_load: float = setting(0.0, 'Lightest load that counts; 0: 3 % of the range of payload.limits', 'kg', 0.0, 1e6)
    least_change: float = setting(0.0, 'Smallest change of the mass that is a spill, a further bucket or a drop; 0: '
                                       '2 % of the range of payload.limits', 'kg', 0.0, 1e6)
    least_time: float = setting(0.5, 'A mass counts once it has been known, and the same, for so long', 's', 0.05, 60.0)
    guard: float = setting(0.5, 'Of a mass that ends, this last part is left out: it may have begun to change', 's',
                           0.0, 10.0)
    dump_radius: float = setting(2.0, 'What is lost so near to where the loads of this truck went before, or, where '
                                      'nothing was, to where most of a load is lost, is delivered; what is lost '
                                      'elsewhere is not', 'm', 0.01, 100.0)
    least_travel: float = setting(2.0, 'A load that was never carried farther than that, and ends within dump_radius '
                                       'of where it was taken, was put back and does not count; 0: it does, as it '
                                       'does on a machine without a swing', 'm', 0.0, 100.0)
    carry_back: bool = setting(False, 'Take off what was weighed in the empty bucket before each load, where it was: '
                                      'what sticks there is not delivered')
    zero_range: float = setting(0.2, 'Largest mass that a zero takes off, share of the range of payload.limits', '',
                                0.001, 1.0)
    overload_warning: float = setting(0.9, 'Share of the limit of the load chart from which on the upper end of the '
                                           'interval is a warning', '', 0.01, 1.0)

    def lightest(self, span: float) -> float:
        """Lightest load, kg, of a machine whose payload.limits are ``span``, kg, apart."""
        return self.least_load or LEAST_LOAD * span

    def change(self, span: float) -> float:
        """Smallest change of the mass, kg."""
        return self.least_change or LEAST_CHANGE * span
