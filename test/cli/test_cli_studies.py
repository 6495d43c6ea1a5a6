# SPDX-License-Identifier: Apache-2.0
"""`mbse benchmark energy, simulation, formulations, scaling` on small sizes: forms, and numbers found another way."""

import json
import math

import pytest
from cli_support import mbse, refused
from four_bar_by_hand import forward_euler_error

from mbse_ros.dynamics.model import load_model
from mbse_ros.resources import share_directory
from studies import peers, simulation
from studies import scaling as benchmark_scaling
from studies.energy import run_case

pytestmark = pytest.mark.usefixtures('blank_pictures')


def studied(tmp_path, *words):
    done = mbse('benchmark', *words, '--json', tmp_path / 'new' / 'x.json')
    assert done.status == 0, done
    return json.loads((tmp_path / 'new' / 'x.json').read_text()), done


@pytest.fixture(scope='module')
def energy(tmp_path_factory, blank_pictures):
    folder = tmp_path_factory.mktemp('energy')
    result, done = studied(folder, 'energy', '--duration', '0.4', '--rounds', '1', '-o', folder / 'plots')
    return result, done, folder / 'plots'


def row(result, example, dt, scheme):
    return next(r for r in result['rows'] if (r['example'], r['dt_ms'], r['scheme']) == (example, dt, scheme))


def test_the_rows_of_the_energy_study(energy):
    result, done, plots = energy
    assert set(result) == {'machine', 'duration_s', 'rows', 'orders', 'f_and_A_us'} and len(result['rows']) == 28
    for item in result['rows']:
        assert set(item) == {'example', 'dt_ms', 'scheme', 'largest_energy_error_J', 'final_energy_error_J',
                             'rmse_angle', 'rmse_relative_angle', 'step_us', 'blew_up_at_s'}
        assert math.isfinite(item['step_us'])
        assert item['example'] == 'four_bar_spring' or item['rmse_relative_angle'] is None
    assert {path.name for path in plots.glob('*.png')} == {
        'fig4_energy_four_bar.png', 'fig5_energy_four_bar_spring.png', 'fig6_relative_angle.png', 'fig7_cost.png'}
    assert 'exponential exact' in done.out and all(value > 0 for value in result['f_and_A_us'].values())


def test_forward_euler_by_hand(energy):
    for dt in (1.0, 10.0):
        error = row(energy[0], 'four_bar', dt, 'forward Euler')['largest_energy_error_J']
        assert error == pytest.approx(forward_euler_error(0.4, 1e-3 * dt), rel=1e-4)


def test_what_the_paper_concludes(energy):
    """Second order and far better than both Euler schemes; with the spring these blow up, the exponential does not."""
    result = energy[0]
    orders = {(item['example'], item['scheme']): item['order'] for item in result['orders']}
    assert orders['four_bar', 'exponential exact'] == pytest.approx(2.0, abs=0.15)
    assert orders['four_bar', 'forward Euler'] == pytest.approx(1.0, abs=0.15)
    best, augmented = (row(result, 'four_bar', 1.0, scheme)['largest_energy_error_J']
                       for scheme in ('exponential exact', 'augmented Euler'))
    assert augmented > 100 * best
    for scheme in ('forward Euler', 'augmented Euler'):
        failed = row(result, 'four_bar_spring', 10.0, scheme)
        assert 0.02 < failed['blew_up_at_s'] < 0.4 and failed['final_energy_error_J'] is None
    for scheme in ('exponential n=2', 'exponential n=3', 'exponential n=4', 'exponential exact'):
        assert row(result, 'four_bar_spring', 10.0, scheme)['blew_up_at_s'] is None


def test_the_spring_follows_the_reference(energy):
    exact, coarse = (row(energy[0], 'four_bar_spring', dt, 'exponential exact') for dt in (1.0, 10.0))
    assert exact['rmse_relative_angle'] < 1e-4 < coarse['rmse_relative_angle'] < 1e-2
    assert row(energy[0], 'four_bar_spring', 1.0, 'forward Euler')['rmse_relative_angle'] > 0.005


def test_a_motion_that_cannot_go_on_is_a_row():
    """Its energy is in order up to there: a dead point of the chosen coordinates."""
    model = load_model('slider_crank', independent=['stroke'], backend='vm')
    run = run_case(model, 'slider_crank', 5.0, 'exponential n=2', 2.0, 1e9)
    assert run.motion.failure is not None and 0.0 < run.motion.t[-1] < 2.0
    assert run.blew_up_at == pytest.approx(run.motion.t[-1] + 0.005)


@pytest.fixture(scope='module')
def formulations(tmp_path_factory, blank_pictures):
    folder = tmp_path_factory.mktemp('formulations')
    names = ('four_bar', 'three_rrr', 'four_bar_adams_driven')
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv('MBSE_BACKEND', 'vm')
        return *studied(folder, 'formulations', '--rounds', '1', '-o', folder / 'plots',
                        *(word for name in names for word in ('--mechanism', name))), folder / 'plots'


def test_formulations_and_coordinates_agree(formulations):
    result, done, plots = formulations
    exact = [r for r in result['rows'] if not r['formulation'].startswith('penalty')]
    assert {(r['mechanism'], r['coordinates']) for r in exact} == {
        (name, kind) for name in ('four_bar', 'three_rrr', 'four_bar_adams_driven')
        for kind in ('natural', 'reference_point', 'relative')}
    assert all(r['failure'] is None and r['difference'] < 1e-8 and r['evaluation_us'] > 0 for r in exact)
    assert all(r['difference_of_coordinates'] < 1e-9 for r in exact if r['degrees_of_freedom'])
    assert 'projection_inverse, 3 levels' in {r['formulation'] for r in exact if r['mechanism'] == 'three_rrr'}
    assert not done.warnings and len(list(plots.glob('*.png'))) == 6


def test_the_penalty_formulation_converges(formulations):
    """A hundred times the penalty, a hundredth of the difference."""
    found = {(r['mechanism'], r['coordinates'], r['formulation']): r['difference'] for r in formulations[0]['rows']}
    for (name, kind, label), first in found.items():
        if label == 'penalty 1e5':
            assert first / found[name, kind, 'penalty 1e7'] == pytest.approx(100, rel=0.1)
            assert first / found[name, kind, 'penalty 1e9'] == pytest.approx(1e4, rel=0.15)


def test_scaling(tmp_path, monkeypatch):
    """All ways give the acceleration of the chain as of one crank with the inertia of all."""
    monkeypatch.setenv('MBSE_BACKEND', 'vm')
    result, done = studied(tmp_path, 'scaling', '--largest', '2', '--rounds', '1', '-o', tmp_path)
    assert {r['loops'] for r in result['rows']} == {1, 2} and len(result['rows']) == 16
    for r in result['rows']:
        n = r['loops']
        by_hand = -9.81 * math.cos(1.0) * ((n + 1) / 2 + n) / ((n + 1) / 3 + n)
        assert r['zdd'] == pytest.approx(by_hand, rel=1e-10) and r['zdd_us'] > 0 and r['coordinates'] == 2 * n + 3
    assert (tmp_path / 'scaling.png').is_file() and 'blocks (C)' in done.out


def test_growth(tmp_path):
    """A double pendulum: a row for each question, with what was built and compiled for it."""
    result, done = studied(tmp_path, 'growth', '--sizes', '2', '--mechanism', 'chain')
    assert [(r['mechanism'], r['n'], r['what']) for r in result['rows']] == [
        ('chain', 2, 'f'), ('chain', 2, 'f_and_A'), ('chain', 2, 'rk4')]
    for r in result['rows']:
        assert r['us'] > 0 and r['compile_s'] > 0 and r['peak_mb'] > 10
        assert r['peer'] is None or r['peer_us'] > 0 and r['error'] < 1e-9
    assert 'f_and_A' in done.out


def test_growth_and_crossover():
    """Found again where they are known: a N, b N^2 with the crossing at N = 16."""
    costs = {benchmark_scaling.DENSE: lambda n: n * n / 2, 'sparse KKT (SuperLU)': lambda n: 8 * n,
             benchmark_scaling.SCALAR: lambda n: n * n / 10, benchmark_scaling.SPARSE: lambda n: 8 * n,
             benchmark_scaling.BLOCKS: lambda n: n}
    rows = [{'way': way, 'loops': n, 'zdd_us': cost(n)} for n in (1, 5, 10, 20, 40) for way, cost in costs.items()]
    powers = benchmark_scaling.exponents(rows)
    assert powers[benchmark_scaling.DENSE] == pytest.approx(2) and powers[benchmark_scaling.BLOCKS] == pytest.approx(1)
    found = {(item['from'], item['to']): (item['loops'], item['extrapolated'])
             for item in benchmark_scaling.crossovers(rows)}
    assert found[benchmark_scaling.DENSE, 'sparse KKT (SuperLU)'] == (20, None)
    assert found[benchmark_scaling.BLOCKS, benchmark_scaling.SPARSE] == (None, None)
    assert found[benchmark_scaling.SCALAR, benchmark_scaling.SPARSE] == (None, pytest.approx(80))


@pytest.mark.parametrize('words, text', [
    (['energy', '--duration', '0.015'], 'expected a step that divides the duration'),
    (['energy', '--duration', '-1'], 'duration, dt'),
    (['formulations', '--mechanism', 'six_bar'], 'one of the mechanisms'),
    (['growth', '--mechanism', 'rope'], 'one of chain, chain_3d, arm_6r, n_four_bar'),
    (['scaling', '--largest', '0'], '--largest: got 0, expected a number of loops from 1 to 100'),
    (['energy', '--json', '{folder}'], 'a file, not a folder'), (['scaling', '-o', '{file}'], 'a folder, not a file')])
def test_bad_input(words, text, tmp_path):
    (tmp_path / 'file').write_text('')
    assert text in refused('benchmark', *(w.format(folder=tmp_path, file=tmp_path / 'file') for w in words))


def test_the_rows_of_the_simulation_study(tmp_path):
    """1,000 steps of 5 ms: the error is that of the same scheme step by step."""
    result, done = studied(tmp_path, 'simulation', '--mechanism', 'four_bar', '--dt', '5e-3', '--rounds', '1',
                           '--runs', '3')
    rows = {item['scheme']: item for item in result['rows']}
    assert set(rows) == {'exponential', 'trapezoid', 'rk4', 'ali3p', 'dop853', 'cvodes'}
    assert rows['dop853']['error'] < 1e-8 and result['batch']['runs'] == 3 and result['batch']['failed'] == 0
    assert 'runs of four_bar' in done.out
    assert set(rows['ali3p']) == {'mechanism', 'scheme', 'dt', 'duration_s', 'us_per_step', 'error'}
    assert rows['exponential']['error'] == pytest.approx(5.746931e-3, rel=1e-4)
    assert rows['rk4']['error'] < rows['exponential']['error'] / 1000
    assert all(item['us_per_step'] > 0 for item in result['rows'])
    assert [item['peer'] for item in result['peers']] == peers.installed()
    assert 'four_bar' in done.out


def test_all_mechanisms_that_move_freely_are_simulated():
    shipped = {path.stem for path in (share_directory() / 'config' / 'mechanisms').glob('*.yaml')}
    others = {'n_four_bar', 'four_bar_adams_driven', 'chaplygin_sleigh', 'rolling_disc'}   # the last two: nonholonomic
    assert set(simulation.MECHANISMS) == shipped - others


@pytest.mark.parametrize('words, expected', ((('--mechanism', 'square'), "--mechanism: got 'square'"),
                                             (('--dt', '1'), '--dt: got 1.0')))
def test_simulation_refuses(words, expected):
    assert expected in refused('benchmark', 'simulation', *words)
