# SPDX-License-Identifier: Apache-2.0
"""The stage of two linkages, and the samples of a four-bar linkage in motion."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import cache

import numpy as np

from mbse_ros.dynamics.model import Model, load_model
from mbse_ros.dynamics.motion import Motion, simulate
from mbse_ros.streams.linkage import LinkageEstimate, LinkageSettings, LinkageStage

DT, COUNT, START = 0.005, 400, 1_700_000_000_000_000_000
STEP = 5_000_000
SENSORS = ('encoder', 'crank_gyro')
SETTINGS = LinkageSettings(estimator='errorEKF_EJ', noises='acceleration=0.1', gate=1.0, start_at='file',
                           delay_window=0.1)


@cache
def four_bar() -> tuple[Model, Motion, np.ndarray]:
    """Its model, a motion, and encoder and gyro of the crank (COUNT, 2) with the file's noise."""
    model = load_model('four_bar', backend='vm')
    motion = simulate(model, COUNT * DT, DT, 'trapezoid')
    noise = np.random.default_rng(5).normal(size=(COUNT, 2)) * [model.description.sensors[name].stddev
                                                                for name in SENSORS]
    return model, motion, np.column_stack([motion.of('theta')[1:], motion.of('theta', 1)[1:]]) + noise


def stage(model: Model, settings: LinkageSettings = SETTINGS, sensors: tuple[str, ...] = SENSORS) -> LinkageStage:
    """Its stage."""
    return LinkageStage(model, settings, sensors, DT)


def feed(to: LinkageStage, measured: np.ndarray, rows: Iterable[int] | None = None) -> list[LinkageEstimate]:
    """Estimates of these rows of samples."""
    out: list[LinkageEstimate] = []
    for k in range(len(measured)) if rows is None else rows:
        out += to.add(START + k * STEP, dict(zip(SENSORS, measured[k])))
    return out


def five_bar_stage(**settings: object) -> tuple[LinkageStage, dict[str, float]]:
    """A stage of five_bar at rest, with the two encoders, and its samples."""
    one = LinkageStage(load_model('five_bar'), replace(SETTINGS, start_position=1e-3, **settings),
                       ('encoder_1', 'encoder_2'), DT)
    return one, dict(zip(one.channels, one.model.start.q[one.model.z]))
