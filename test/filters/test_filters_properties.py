# SPDX-License-Identifier: Apache-2.0
"""What holds for every filter by its name: of mechanisms on a four-bar, of machines on a crane."""

from __future__ import annotations

from functools import cached_property, lru_cache
from inspect import signature

import casadi as ca
import numpy as np
import pytest
from linkage_faults import DT, SENSORS, four_bar, soundness

from mbse_ros.compiled import Scan
from mbse_ros.errors import SettingError
from mbse_ros.filters.filters import FILTERS, NEEDS, OF_MACHINES, OF_MECHANISMS, default_stddev, make_filter
from mbse_ros.filters.hydraulic_dekf import HydraulicFilter
from mbse_ros.filters.hydraulic_observer import HydraulicObserver
from mbse_ros.filters.observer import LinkageObserver
from mbse_ros.filters.observer_settings import ObserverSettings
from mbse_ros.filters.parts.problem import problem
from mbse_ros.filters.parts.step import DiscreteFilter
from mbse_ros.machine import load_machine

GATE = 1e4          # normalised innovation squared
PRINTED = {'CEKF_published'}        # of which docs/estimators.md says that its covariance does not stay one
EXACT = 'CEKF_penalty', 'kinematic', 'UKF', 'hydraulic'      # others leave terms of the derivative out, as published
ALL = [name for name in FILTERS if name not in PRINTED]
COUNTS = [(name, option) for name, made in OF_MECHANISMS.items() for option, of in signature(made).parameters.items()
          if of.annotation == 'int']


class Case:
    """A filter with a state after 40 steps with samples, its tuning, and samples (m,) at that state."""

    def __init__(self, filter_: DiscreteFilter, state: np.ndarray, tuning: np.ndarray, samples: np.ndarray,
                 rest: dict[str, np.ndarray]) -> None:
        self.filter, self.tuning, self.samples, self._rest = filter_, tuning, samples, rest
        self.state = state
        for _ in range(40):
            self.state, _ = self.step(samples)

    @cached_property
    def function(self) -> ca.Function:
        return self.filter.step()

    def given(self, samples: np.ndarray) -> np.ndarray:
        return self.filter.given.flat(o=samples, **self._rest)

    def called(self, function: ca.Function, state: np.ndarray, samples: np.ndarray) -> list[np.ndarray]:
        found = function.call([state, self.given(samples), self.tuning])
        return [np.array(part).ravel() for part in found]

    def step(self, samples: np.ndarray) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        """State and parts of the outputs after a step."""
        state, y = self.called(self.function, self.state, samples)
        return state, self.filter.outputs.arrays(y)

    @property
    def missing(self) -> np.ndarray:
        return np.full(len(self.samples), np.nan)


@lru_cache(maxsize=len(FILTERS))
def case(name: str) -> Case:
    """In the virtual machine: to compile a filter takes longer than its steps here."""
    if name in OF_MACHINES:
        samples = np.array([0.3, 5e6, 4e6])
        observer = HydraulicObserver(load_machine('patu655_lift'), ObserverSettings(estimator=name), 'vm')
        observer.start(samples, np.array([2.0]))
        _, state, tuning = observer.step(1e-3)
        return Case(observer.filter, state, tuning, samples, {'u': np.array([2.0])})
    of = LinkageObserver(four_bar(name, 'vm'), name, SENSORS.get(name, ('encoder',)), backend='vm', dt=DT)
    of.start(stddev=default_stddev(of.filter, 'four_bar'))
    tuning = of.tuning.copy()
    tuning[of.filter.tuning.places['gate']] = GATE
    q = of.model.start.q
    sensed = np.array(of.problem.sensors(q, *np.zeros((2, of.problem.g)), np.zeros(of.problem.system.u.numel()), 0.0,
                                         of.problem.model.parameters)[0]).ravel()
    return Case(of.filter, of.state, tuning, sensed, {'u': np.zeros(len(of.model.inputs)), 't': np.zeros(1)})


@pytest.fixture(params=ALL)
def of(request: pytest.FixtureRequest) -> Case:
    return case(request.param)


def test_a_step_is_prediction_and_correction(of: Case) -> None:
    predicted, = of.called(of.filter.predict, of.state, of.samples)
    assert predicted.shape == (of.filter.predicted.size,)
    expected = of.called(of.function, of.state, of.samples)
    for got, wanted in zip(of.called(of.filter.correct, predicted, of.samples), expected):
        np.testing.assert_allclose(got, wanted, rtol=1e-9, atol=1e-12 * np.abs(wanted).max())


@pytest.mark.parametrize('name', EXACT)
def test_the_covariance_goes_as_the_derivative_of_the_mean(name: str) -> None:
    of, state = case(name).filter, case(name).state
    places, P = of.state.places['x'], of.state.arrays(state)['P']
    unit = of.model.scale if isinstance(of, HydraulicFilter) else np.ones(len(P))      # SI of a unit of P

    def predicted(part: str, x: np.ndarray) -> np.ndarray:
        return of.predicted.arrays(case(name).called(of.predict, x, case(name).missing)[0])[part]

    F = np.empty(P.shape)
    for k in range(len(P)):
        step = np.zeros(len(state))
        step[places.start + k] = 1e-6 * unit[k]
        F[:, k] = (predicted('x', state + step) - predicted('x', state - step)) / unit / 2e-6
    less = state.copy()
    less[of.state.places['P']] /= 2     # noise is added to both
    change = 2 * (predicted('P', state) - predicted('P', less))
    np.testing.assert_allclose(change, F @ P @ F.T, rtol=0, atol=1e-4 * np.abs(change).max())


def test_a_missing_sample_has_no_innovation_and_spoils_nothing(of: Case) -> None:
    for missing in np.eye(len(of.samples), dtype=bool) if len(of.samples) > 1 else np.ones((1, 1), dtype=bool):
        state, y = of.step(np.where(missing, np.nan, of.samples))
        assert np.isfinite(state).all() and all(np.isfinite(part).all() for part in y.values())
        assert not y['innovation'][missing].any() and (y['innovation_variance'] > 0).all()


def test_samples_make_the_covariance_smaller_and_their_lack_larger(of: Case) -> None:
    P = [of.filter.state.arrays(of.step(samples)[0])['P'][0, 0] for samples in (of.samples, of.missing)]
    assert P[0] < P[1]


def test_the_covariance_stays_one(of: Case) -> None:
    rng, state = np.random.default_rng(1), of.state
    for _ in range(100):
        samples = np.where(rng.random(len(of.samples)) < 0.5, np.nan, of.samples)
        state, _ = of.called(of.function, state, samples)
        least, asymmetry = soundness(of.filter.state.arrays(state)['P'])
        assert least > -1e-9 and asymmetry < 1e-12


def test_a_sample_far_away_is_beyond_the_gate_by_its_innovation_and_the_variance_of_that(of: Case) -> None:
    """What is beyond it, a filter of mechanisms ignores; the observer of a machine runs the step again without."""
    usual = of.step(of.samples)[1]
    far = of.samples.copy()
    far[0] += 0.9 * np.pi if 'gate' in of.filter.tuning.parts else 1e4 * np.sqrt(usual['innovation_variance'][0])
    y = of.step(far)[1]
    assert y['innovation'][0] ** 2 > GATE * y['innovation_variance'][0]
    if 'used' in y:
        assert usual['used'][0] == 1 and y['used'][0] == 0
        np.testing.assert_array_equal(y['used'][1:], usual['used'][1:])


@pytest.mark.parametrize('name', ALL)
def test_c_gives_the_same_as_the_virtual_machine(name: str) -> None:
    of = case(name)
    rows = np.array([of.given(of.samples if k % 3 else of.missing) for k in range(20)])
    (state, y), (expected, wanted) = (Scan(of.function, backend)(of.state, rows, of.tuning)
                                      for backend in ('auto', 'vm'))
    np.testing.assert_allclose(state, expected, rtol=1e-6, atol=1e-9 * np.abs(expected).max())
    np.testing.assert_allclose(y, wanted, rtol=1e-6, atol=1e-9 * np.abs(wanted).max())


@pytest.mark.parametrize('name', FILTERS)
def test_a_filter_is_made_of_what_it_is_for(name: str) -> None:
    mechanism, machine = problem(four_bar(name, 'vm'), SENSORS.get(name, ('encoder',))), load_machine('patu655_lift')
    right, wrong = (machine, mechanism) if name in OF_MACHINES else (mechanism, machine)
    assert make_filter(name, right).name == name
    with pytest.raises(SettingError, match=f"estimator: got '{name}', expected {NEEDS[name]}; else one of"):
        make_filter(name, wrong)


@pytest.mark.parametrize('count', [0, -5, 0.5, 2.5, float('inf'), float('nan')])
@pytest.mark.parametrize('name, option', COUNTS)
def test_an_option_that_counts_is_a_whole_number(name: str, option: str, count: float) -> None:
    with pytest.raises(SettingError, match=f'{option}: got .*, expected a whole number from 1 on'):
        make_filter(name, problem(four_bar(name, 'vm'), ('encoder',)), **{option: count})
