# SPDX-License-Identifier: Apache-2.0
"""Figures of the papers that ``mbse benchmark papers`` measures, each in seconds, with the bounds in which it holds."""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import redirect_stdout
from dataclasses import dataclass
from functools import cache
from io import StringIO
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from mbse_ros.api.estimate import estimate
from mbse_ros.api.simulate import simulate as simulate_any
from mbse_ros.dynamics.model import load_model
from mbse_ros.dynamics.motion import simulate
from mbse_ros.simulation.energy_balance import SchemeRun, largest_kinetic, run_case
from mbse_ros.simulation.estimator_benchmark import BenchmarkCase
from mbse_ros.simulation.estimator_benchmark import run_case as run_filter

from .energy import evaluation_cost, rmse
from .formulations import mechanism_rows
from .graphs import FOUR_BAR, table_1
from .pipeline import run_pipeline

SEEDS = 20          # as on the pages
WITHIN = 0.02       # of a figure of the pages: room for another compiler


@dataclass(frozen=True)
class Figure:
    """Ours, between ``low`` and ``high`` where it holds; ``paper``: what the paper has, in words."""

    name: str
    ours: float
    low: float
    high: float
    unit: str
    paper: str

    @property
    def holds(self) -> bool:
        return self.low <= self.ours <= self.high

    @property
    def text(self) -> str:
        return f'{self.ours:.4g} {self.unit}, expected {self.low:.4g} to {self.high:.4g}; paper: {self.paper}'


def near(name: str, ours: float, stated: float, unit: str, paper: str, within: float = WITHIN) -> Figure:
    """A figure that the pages state."""
    return Figure(name, float(ours), (1 - within) * stated, (1 + within) * stated, unit, paper)


@cache
def scheme(example: str, dt_ms: float, name: str) -> SchemeRun:
    model = load_model(example)
    return run_case(model, example, dt_ms, name, 10.0, largest_kinetic(model, 10.0))


def energy() -> list[Figure]:
    """Pyrhönen et al., state transition, Fig. 4a: largest energy error over 10 s, steps of 1 ms."""
    return [near(name, np.max(np.abs(scheme('four_bar', 1.0, name).motion.balance)), stated, 'J', 'the same order')
            for name, stated in (('forward Euler', 4.26), ('augmented Euler', 1.45), ('exponential n=1', 0.0099))]


def energy_spring() -> list[Figure]:
    """Fig. 5b: when the schemes blow up at 10 ms; infinity where they do not."""
    found = {name: scheme('four_bar_spring', 10.0, name).blew_up_at for name in
             ('forward Euler', 'augmented Euler', 'exponential n=1', 'exponential n=2', 'exponential exact')}
    stated = {'forward Euler': 0.12, 'augmented Euler': 0.20, 'exponential n=1': 0.73}
    paper = {'exponential n=1': 'bounded', 'exponential n=2': 'bounded', 'exponential exact': 'bounded'}
    return [near(name, np.inf if end is None else end, stated.get(name, np.inf), 's', paper.get(name, '10 steps'))
            for name, end in found.items()]


def angle_spring() -> list[Figure]:
    """Fig. 6: RMSE of the relative angle over 1 s at 1 ms against DOP853."""
    reference = simulate(load_model('four_bar_spring'), 1.0, 1e-3, 'dop853')
    stated = {'exponential exact': 5.16e-5, 'exponential n=2': 7.24e-5, 'exponential n=1': 9.76e-4,
              'forward Euler': 0.128}
    found = {name: rmse(scheme('four_bar_spring', 1.0, name).motion, reference, 'bend') for name in stated}
    return [near(name, np.inf if error is None else error, stated[name], 'rad',
                 'leaves ode45' if 'Euler' in name else 'on ode45') for name, error in found.items()]


def evaluation() -> list[Figure]:
    """Fig. 7: f with its exact Jacobian; not more than the paper's, on any computer of today."""
    cost = evaluation_cost({name: load_model(name) for name in ('four_bar', 'four_bar_spring')}, 10)
    return [Figure(name, cost[name], 0.0, paper, 'us', f'{paper:g} us in MATLAB')
            for name, paper in (('four_bar', 140.0), ('four_bar_spring', 260.0))]


@cache
def windows() -> list[dict[str, Any]]:
    return table_1(load_model(FOUR_BAR), 5.0, [2, 10])      # of both forms


def window(form: str) -> list[Figure]:
    """Blanco-Claraco et al., factor graphs, Table 1: RMSE of q over 5 s at 1 ms, windows of 2 and 10."""
    stated = {'dependent': 2.09e-5, 'independent': 3.0e-6}
    return [near(f'window {row["window"]}', row['rmse_q'], stated[form], 'm', f'{row["paper_rmse_q_m"]:.3g} m')
            for row in windows() if row['form'] == form]


@cache
def filtered(name: str, sensor: str, mechanism: str = 'four_bar', options: str = '') -> dict[str, Any]:
    return run_filter(BenchmarkCase(mechanism, name, sensor, SEEDS, options=options)).row


def position(sensor: str, key: str, groups: dict[str, tuple[float, float, str]]) -> list[Figure]:
    """Position errors of filters by the groups of Naya et al., review, Fig. 6: (low, high, the paper's words)."""
    return [Figure(name, float(filtered(name, sensor)[key]), low, high, 'rad', paper)
            for names, (low, high, paper) in groups.items() for name in names.split()]


def encoder() -> list[Figure]:
    return position('encoder', 'rmse_pos', {
        'DEKF errorEKF errorEKF_FE UKF SCKF DIEKFpm': (0.0045, 0.0062, '0.0050 to 0.0057'),
        'CEKF_published': (0.0234, 0.0256, '0.0246')})


def encoder_settled() -> list[Figure]:
    return position('encoder', 'rmse_pos_after_2s', {'CEKF_published': (0.0150, 0.0168, '0.0159')})


def crank_gyro() -> list[Figure]:
    return position('gyro_crank', 'rmse_pos_after_2s', {
        'DEKF errorEKF SCKF DIEKFpm': (0.19, 0.21, 'keep the start'),
        'errorEKF_EJ errorEKF_FE UKF': (0.0, 0.003, 'find the position')})


def coupler_gyro() -> list[Figure]:
    return position('gyro_coupler', 'rmse_pos_after_2s', {
        'DEKF SCKF DIEKFpm': (0.006, 0.008, 'not better than the encoder'),
        'errorEKF errorEKF_EJ errorEKF_FE': (0.0, 0.001, 'better than the encoder')})


TOOLBOX = {     # position over 10 s, rad, of the authors' toolbox: ALI3P, one seed or three
    ('four_bar', 'encoder', 'errorEKF'): 0.0053, ('four_bar', 'gyro_coupler', 'errorEKF'): 0.0477,
    ('four_bar', 'gyro_crank', 'errorEKF_EJ'): 0.0301, ('four_bar', 'accelerometers', 'errorEKF_FE'): 0.0026,
    ('five_bar', 'encoder', 'errorEKF'): 0.0070, ('five_bar', 'gyro_coupler', 'errorEKF'): 0.0234,
    ('five_bar', 'gyro_coupler', 'errorEKF_FE'): 0.0062}


def all_coordinates() -> list[Figure]:
    """The error filters by ALI3P: positions over 10 s, from those of the toolbox, by the seeds' standard deviation."""
    found = []
    for (mechanism, sensor, name), theirs in TOOLBOX.items():
        row = filtered(name, sensor, mechanism, 'motion=ali3p')
        found.append(Figure(f'{mechanism} {sensor} {name}', (row['rmse_pos'] - theirs) / row['rmse_pos_stddev'],
                            -2.0, 2.0, 'sd', f'toolbox {theirs} rad, ours {row["rmse_pos"]:.4f}'))
    return found


def shaping() -> list[Figure]:
    """Fig. 5: force and autocorrelation of the innovations of errorEKF_FE_SH over those of errorEKF_FE."""
    found = []
    for mechanism, sensor in (('four_bar', 'accelerometers'), ('five_bar', 'gyro_coupler')):
        plain, shaped = (filtered(name, sensor, mechanism) for name in ('errorEKF_FE', 'errorEKF_FE_SH'))
        found += [Figure(f'{mechanism} {key}', abs(shaped[key] / plain[key]), 0.0, high, 'of FE', 'smaller (picture)')
                  for key, high in (('force_rmse', 0.95), ('autocorrelation', 0.5))]
    return found


def cost(name: str, options: str = '') -> float:
    """Of a compiled step with the encoder, us."""
    return float(filtered(name, 'encoder', options=options)['step_us'])


def order_of_cost() -> list[Figure]:
    """Fig. 6: SCKF takes longer here than errorEKF, in the paper about as long; so it does where each call costs and
    not each operation, as in MATLAB: the print in NumPy, errorEKF by ALI3P as there."""
    sys.path.insert(0, str(Path(__file__).resolve().parents[2] / 'test' / 'support'))
    import naya_by_hand as by_hand  # here: not in the package
    samples = by_hand.SIGMA['encoder'] * np.random.default_rng(1).normal(size=(100, 1)) + np.pi / 3
    runs = {'SCKF': lambda: by_hand.dependent_ekf(samples, ('encoder',), np.pi / 3, 9.81, by_hand.sckf),
            'errorEKF': lambda: by_hand.error_ekf_ali3p(samples, ('encoder',), np.pi / 3, 9.81)}
    best = dict.fromkeys(runs, np.inf)
    for _, (name, run) in product(range(5), runs.items()):
        begin = time.process_time()
        run()
        best[name] = min(best[name], time.process_time() - begin)
    paper = 'both the fastest'
    return [Figure('SCKF over errorEKF, compiled', cost('SCKF') / cost('errorEKF'), 1.5, np.inf, '', paper),
            Figure('SCKF over errorEKF, print in NumPy', best['SCKF'] / best['errorEKF'], 0.4, 1.5, '', paper)]


def cost_of_points() -> list[Figure]:
    """Table 1, section 4.2: fewer points, and an explicit integrator, are cheaper."""
    return [Figure('SSUKF over UKF', cost('SSUKF') / cost('UKF'), 0.0, 1.0, '', 'fewer evaluations'),
            Figure('heun over trapezoid', cost('SSUKF', 'transition=heun') / cost('SSUKF'), 0.0, 1.0, '',
                   'explicit integrators suffice')]


@cache
def crane() -> list[Figure]:
    """Pyrhönen et al., mass estimation, Fig. 12: 50 kg on the stand-in, by both ways and with the paper's noise."""
    lift: Any = simulate_any('patu655_lift', payload=50.0)
    found = []
    for name, tuning, stated in (('joint', {}, 50.04), ('apart', {'observer.weighing': 'apart'}, 49.96), (
            'apart, noise=paper', {'observer.weighing': 'apart', 'observer.noise': 'paper'}, 49.96)):
        of: Any = estimate(lift.samples, 'patu655_lift', tuning=tuning)
        found.append(near(name, of.mass[np.isfinite(of.mass)][-1], stated, 'kg', 'converges to 50 kg', 0.002))
    return found


def crane_cost() -> list[Figure]:
    """Section 5.4: share of real time; not more than the paper's, on any computer of today."""
    with tempfile.TemporaryDirectory() as folder, redirect_stdout(StringIO()):
        run_pipeline(Path(folder) / 'found.json', 1)
        share = json.loads((Path(folder) / 'found.json').read_text())['real_time_share']
    return [Figure('observer and payload', 100 * share, 0.0, 26.2, '% of real time', '3.6 and 22.6 % in MATLAB')]


def formulations() -> list[Figure]:
    """Orsino, modular modelling: accelerations of all formulations, relative to KKT's; penalties are approximate."""
    return [Figure(name, max(row['difference'] for row in mechanism_rows(name, 1)
                             if row['failure'] is None and not row['formulation'].startswith('penalty')),
                   0.0, 1e-10, '', 'equal') for name in ('four_bar', 'three_rrr')]


MEASURED: dict[str, Callable[[], list[Figure]]] = {
    'window_dependent': lambda: window('dependent'), 'window_independent': lambda: window('independent'),
    **{function.__name__: function for function in (
        energy, energy_spring, angle_spring, evaluation, encoder, encoder_settled, crank_gyro, coupler_gyro, shaping,
        order_of_cost, cost_of_points, all_coordinates, crane, crane_cost, formulations)}}
