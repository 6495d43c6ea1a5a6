# SPDX-License-Identifier: Apache-2.0
"""Tuning of the payload estimator."""

from __future__ import annotations

from dataclasses import dataclass

from ..settings import Settings, setting


@dataclass(frozen=True)
class PayloadSettings(Settings):
    """Tuning of the payload estimator (Pyrhönen et al., mass estimation, section 3.3)."""

    low_pass_gain: float = setting(2e-4, 'Gain Kf of the low-pass filter at each sample of 1 ms; at another step it '
                                         'forgets as much in the same time', '', 1e-6, 1.0)
    window: int = setting(401, 'Samples of 1 ms in the triangular window (made odd); at another step it is as long', '',
                          1, 20001)
    min_speed: float = setting(0.0, "Slowest piston whose friction is trusted; 0: 1.2 times the transition velocity of "
                                    "each cylinder's friction", 'm/s', 0.0, 1.0)
    significance: float = setting(3.0, 'Standard deviations by which a piston must move, and the acceleration exceed '
                                       'its limit, to be believed; 0: by the estimate alone', '', 0.0, 100.0)
    guard_time: float = setting(0.1, 'A sample counts when all gates stay open this long before and after it', 's', 0.0,
                                10.0)
    max_acceleration_share: float = setting(0.15, "Largest share of acceleration in the mass's lever", '', 0.0, 100.0)
    max_sample_share: float = setting(1.0, "Largest standard deviation of one sample of the mass, in ranges of the "
                                           "payload's limits", '', 1e-6, 1e6)
    max_interval_share: float = setting(1.0, "Widest 95 % interval of a mass that counts as weighed, in ranges of the "
                                             "payload's limits", '', 1e-6, 1e6)
    stroke_margin: float = setting(0.005, 'Distance from the ends of the stroke in which forces are not trusted; at '
                                          "least the length of a cylinder's end stop", 'm', 0.0, 1.0)
    batch_time: float = setting(0.1, 'Length of the batches whose scatter gives the interval', 's', 0.001, 10.0)
