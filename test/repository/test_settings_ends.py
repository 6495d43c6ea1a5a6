# SPDX-License-Identifier: Apache-2.0
"""Each number of each setting at both ends of its declared range: it works, or is refused in words."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
import pytest
from core_support import crane, cycle_run
from streams_samples import CHANNELS, COMMANDS, feed, rows

from mbse_ros.dynamics.model import Model, load_model
from mbse_ros.errors import DivergenceError, SettingError
from mbse_ros.filters.linkage_settings import LinkageSettings
from mbse_ros.filters.observer_settings import ObserverSettings
from mbse_ros.payload.mass import PayloadSettings
from mbse_ros.settings import Settings
from mbse_ros.simulation.crane import CraneSettings, SimulatedCrane, cycle_by_name
from mbse_ros.simulation.linkage import LinkagePlantSettings, SimulatedLinkage
from mbse_ros.streams.interpolation import InterpolationSettings, Interpolator
from mbse_ros.streams.lagged import LaggedStage
from mbse_ros.streams.linkage import LinkageStage
from mbse_ros.streams.records import ObserverStatus, StateEstimate
from mbse_ros.streams.stages import ObserverStage, PayloadStage

SENSORS, STEP = ('encoder_1', 'encoder_2'), 0.005


def ends(kind: type[Settings]) -> list:
    """Settings with one number at an end of its range."""
    found = [(item.name, type(item.default)(item.metadata[end])) for item in fields(kind) for end in ('low', 'high')
             if item.metadata[end] is not None]
    return [pytest.param(kind(**{name: value}), id=f'{name}={value:g}') for name, value in found]


@pytest.fixture(scope='module')
def observers() -> dict[str, ObserverStage]:
    """An observer of either kind: each is compiled once."""
    return {word: ObserverStage(crane(), ObserverSettings(weighing=word), 'vm') for word in ('joint', 'apart')}


@pytest.fixture(scope='module')
def states() -> dict[str, list[StateEstimate]]:
    """Of an observer of either kind, in motion."""
    stages = {word: ObserverStage(crane(), ObserverSettings(weighing=word), 'vm') for word in ('joint', 'apart')}
    return {word: [stage.process(output.segment) for output in cycle_run('orifice').outputs[100:220]]
            for word, stage in stages.items()}


@pytest.fixture(scope='module')
def payload() -> PayloadStage:
    return PayloadStage(crane(), PayloadSettings(), 'vm')


@pytest.mark.parametrize('word', ['joint', 'apart'])
@pytest.mark.parametrize('settings', ends(ObserverSettings))
def test_observer(observers: dict[str, ObserverStage], word: str, settings: ObserverSettings) -> None:
    stage = observers[word]
    stage.configure(replace(settings, weighing=word))
    stage.reset()
    states = [stage.process(output.segment) for output in cycle_run('orifice').outputs[100:130]]
    assert len(states) == 30 and stage.settings == replace(settings, weighing=word)


@pytest.mark.parametrize('word', ['joint', 'apart'])
@pytest.mark.parametrize('settings', ends(PayloadSettings))
def test_payload(states: dict[str, list[StateEstimate]], payload: PayloadStage, word: str,
                 settings: PayloadSettings) -> None:
    payload.configure(settings)
    payload.reset()
    masses = [payload.process(state) for state in states[word]]
    assert len(masses) == 120 and all(mass.lower <= mass.upper or np.isnan(mass.mass) for mass in masses)


@pytest.mark.parametrize('settings', ends(InterpolationSettings))
def test_interpolation(settings: InterpolationSettings) -> None:
    interpolator = Interpolator(CHANNELS, COMMANDS, settings)
    segments = feed(interpolator, [*rows(0, 300), *rows(5_000, 5_300)])
    assert all(len(segment.values) and segment.step_ns == round(settings.step * 1e9) for segment in segments)


@pytest.fixture(scope='module')
def model() -> Model:
    return load_model('five_bar', backend='vm')


@pytest.fixture(scope='module')
def observer(model: Model) -> LinkageStage:
    """The filter, compiled once."""
    return LinkageStage(model, LinkageSettings(), SENSORS, STEP, 'vm')


@pytest.fixture(scope='module')
def samples(model: Model) -> list[tuple[int, dict[str, float]]]:
    """Stamps and samples of the moving mechanism."""
    plant = SimulatedLinkage(model, SENSORS)
    frames = [plant.frame() for _ in range(40)]
    return [(frame.stamp_ns, dict(zip(plant.channels, frame.samples))) for frame in frames]


@pytest.mark.parametrize('word', ['filter', 'smoother'])
@pytest.mark.parametrize('settings', ends(LinkageSettings))
def test_linkage(model: Model, observer: LinkageStage, samples: list[tuple[int, dict[str, float]]], word: str,
                 settings: LinkageSettings) -> None:
    stage: LinkageStage | LaggedStage
    if word == 'smoother':
        try:
            stage = LaggedStage(model, settings, SENSORS, STEP, 0.1, backend='vm')
        except SettingError as error:
            assert error.name in ('delay', 'start') and error.expected      # in words
            return
    else:
        stage = observer
        stage.configure(settings)
        stage.reset()
    told = [estimate for sample in samples for estimate in stage.add(*sample) or ()]
    told += stage.flush() if word == 'smoother' else ()
    assert told and all(np.isfinite(e.mean).all() or e.status is ObserverStatus.LOST for e in told)


@pytest.mark.parametrize('settings', ends(CraneSettings))
def test_crane(settings: CraneSettings) -> None:
    plant = SimulatedCrane(crane(), 50.0, 1, cycle_by_name('lift_hold_lower', crane(), 1), settings)
    assert all(np.isfinite([*plant.frame().samples.values()]).all() for _ in range(3))


@pytest.mark.parametrize('settings', ends(LinkagePlantSettings))
def test_mechanism(model: Model, settings: LinkagePlantSettings) -> None:
    plant = SimulatedLinkage(model, settings=settings)
    try:
        assert all(np.isfinite(plant.frame().samples).all() for _ in range(20))
    except DivergenceError:
        pass        # in words: a force of 1e9 N m is more than the mechanism bears
