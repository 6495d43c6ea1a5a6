# SPDX-License-Identifier: Apache-2.0
"""benchmarks/estimators_table.py: which rows it calls met."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / 'benchmarks' / 'estimators_table.py'
spec = importlib.util.spec_from_file_location('estimators_table', SCRIPT)
table = importlib.util.module_from_spec(spec)
spec.loader.exec_module(table)
ERRORS = ('rmse_pos', 'rmse_pos_after_2s', 'rmse_vel', 'rmse_acc')


def ours(value: float = 1.0, **others: object) -> dict:
    row = {'mechanism': 'four_bar', 'estimator': 'DEKF', 'sensor': 'encoder', 'seeds': 20, 'diverged': 0,
           'cpu_per_s': 0.005, 'force_rmse': None, **{name: 0.01 * value for name in ERRORS}}
    return row | {f'{name}_stddev': 0.0004 for name in ERRORS} | others


def theirs(*values: float, **others: object) -> list[dict]:
    return [{'mechanism': 'four_bar', 'estimator': 'DEKF', 'sensor': 'encoder', 'seed': seed, 'variant': 'toolbox',
             'cpu_per_s': 1.0, 'force_rmse_dof': [3.0], 'diverged': False, 'offset_not_corrected': False,
             **{name: 0.01 * value for name in ERRORS}, **others} for seed, value in enumerate(values)]


@pytest.mark.parametrize('value, missed', [(0.5, 0), (1.0, 0), (1.04, 0), (1.10, 1)])
def test_a_figure_is_met_within_the_spread(value, missed):
    """Twice sqrt(0.0004^2 / 20 + 0.0004^2 / 3) is 0.0005: 5 %."""
    assert len(table.compare([ours(value)], theirs(1.0, 1.01, 0.99))[1]) == missed


def test_cost_is_met_at_a_hundredth():
    text, missed = table.compare([ours(cpu_per_s=0.02)], theirs(1.0, 1.0))
    assert 'cost 50' in missed[0]
    failed_early = theirs(1.0, cpu_per_s=0.01, **dict.fromkeys(ERRORS))
    assert not table.compare([ours()], failed_early)[1]


def test_lost_rows():
    lost = dict.fromkeys(ERRORS)
    assert 'lost' in table.compare([ours(diverged=20, **lost)], theirs(1.0))[1][0]
    assert not table.compare([ours(diverged=20, **lost)], theirs(1.0, **lost))[1]
    assert '3 of 20 seeds lost' in table.compare([ours(diverged=3)], theirs(1.0))[1][0]


def test_forces_are_compared_where_the_filter_estimates_them():
    row, others = ours(estimator='errorEKF_FE', force_rmse=4.0), theirs(1.0, estimator='errorEKF_FE')
    assert 'force 1.33' in table.compare([row], others)[1][0]
    assert not table.compare([ours(force_rmse=4.0)], theirs(1.0))[1]


def test_the_command_says_what_is_not_met(tmp_path):
    figures, reference = tmp_path / 'a.json', tmp_path / 'b.json'
    figures.write_text(json.dumps({'rows': [ours(), ours(2.0, sensor='gyro_crank')]}))
    blind = theirs(1.0, sensor='gyro_crank', offset_not_corrected=True)
    reference.write_text(json.dumps({'rows': [*theirs(1.0), *blind]}))
    done = subprocess.run([sys.executable, str(SCRIPT), str(figures), '--against', str(reference)],
                          capture_output=True, text=True)
    assert done.returncode == 1 and 'Not met: 1 of 2' in done.stdout and 'blind, position 2.00' in done.stdout
