# SPDX-License-Identifier: Apache-2.0
"""`mbse benchmark`: the fixed JSON forms; no figure is judged here."""

import json

import pytest
import typer
from cli_support import mbse, refused

from mbse_ros.cli import benchmark
from mbse_ros.compiled import have_compiler
from mbse_ros.errors import MbseError
from mbse_ros.machine import load_machine
from mbse_ros.simulation.work import frame_count, working_machine
from studies import kernels, pipeline, startup
from studies.kernels import CASES, model_of


def test_kernels(tmp_path, monkeypatch):
    """The lift crane in all backends, without and with its load; to build the excavator from nothing takes long."""
    monkeypatch.setattr(kernels, 'BATCH', 50)
    cases = 'crane_observer_step', 'crane_weighing_step'
    done = mbse('benchmark', 'kernels', '--rounds', 1, '--case', ','.join(cases), '--json', tmp_path / 'k.json')
    assert done.status == 0 and all(case in done.out for case in cases)
    result = json.loads((tmp_path / 'k.json').read_text())
    assert set(result) == {'machine', 'cases'} and isinstance(result['machine'], str)
    compiled = ['vm', *(['c'] if have_compiler() else [])]
    expected = [('crane_observer_step', 6, backend) for backend in [*compiled, 'numpy']]
    expected += [('crane_weighing_step', 7, backend) for backend in compiled]
    assert [(case['name'], case['states'], case['backend']) for case in result['cases']] == expected
    for case in result['cases']:
        assert set(case) == {'name', 'backend', 'states', 'online_us', 'batch_us', 'first_step_s'}
        assert case['online_us'] > 0.0 and case['batch_us'] > 0.0
        assert (case['first_step_s'] is None) == (case['backend'] == 'numpy')


def test_all_cases_of_kernels_are_machines_of_ours():
    """The excavator: 4 coordinates, 6 volumes, 3 spools, load."""
    sizes = {case: len(model_of(case, load_machine(machine)).names) for case, (machine, _) in CASES.items()}
    assert sizes == {'crane_observer_step': 6, 'crane_weighing_step': 7, 'zx200_observer_step': 3 * 4 + 6 + 3 + 1}


def test_an_unknown_case_of_kernels_is_refused():
    assert 'one of crane_observer_step' in refused('benchmark', 'kernels', '--case', 'crane')


def test_startup(tmp_path, monkeypatch):
    """The cases in processes of their own, cold and warm, without ROS; each cold start has an empty cache."""
    monkeypatch.setattr(startup, 'find_spec', lambda name: None)
    assert frame_count(working_machine(load_machine('patu655_lift'))) == 2401, 'the case is named after its 24 s'
    monkeypatch.setattr(startup, 'frame_count', lambda crane: 200)
    done = mbse('benchmark', 'startup', '--rounds', 1, '--json', tmp_path / 's.json')
    result = json.loads((tmp_path / 's.json').read_text())
    assert done.status == 0 and 'node_ready: not measured' in done.out
    assert [case['name'] for case in result['cases']] == ['estimate_24s_bag', 'check', 'simulate']
    for case in result['cases']:
        assert {'name', 'cold_s', 'warm_s'} <= set(case) and min(case['cold_s'], case['warm_s']) > 0.0


def test_a_case_of_startup_that_fails_is_an_error(tmp_path):
    with pytest.raises(MbseError, match='check: ended with status 3: no luck'):
        startup.run('check', "import sys; print('no luck', file=sys.stderr); sys.exit(3)", tmp_path)


def test_bags(tmp_path):
    done = mbse('benchmark', 'bags', '--machine', 'patu655_lift', '--seconds', 12, '--storage', 'sqlite3', '--json',
                tmp_path / 'b.json')
    result = json.loads((tmp_path / 'b.json').read_text())
    assert done.status == 0 and '4800 samples' in done.out
    assert {'samples', 'read_s', 'estimate_s', 'peak_mb', 'samples_per_s'} <= set(result)
    assert (result['samples'], result['dropped'], result['log_s']) == (4800, 0, 12.0)
    assert result['steps'] > 11000 and min(result['read_s'], result['estimate_s'], result['peak_mb']) > 0.0


@pytest.mark.parametrize('words, said', [(('--seconds', 0.5), 'from 1 s'), (('--seconds', 5, '--hours', 1), '--hours'),
                                         (('--hours', 1e6), 'to 100 h')])
def test_a_length_of_bags_that_cannot_be_is_refused(words, said):
    assert said in refused('benchmark', 'bags', *words)


def test_pipeline(tmp_path, monkeypatch):
    """Of the first seconds of its log: the time of a step is the same."""
    assert pipeline.LOG_S == 23.5, 'as the help says'
    monkeypatch.setattr(pipeline, 'LOG_S', 2.5)
    done = mbse('benchmark', 'pipeline', '--runs', 1, '--json', tmp_path / 'new' / 'p.json')
    result = json.loads((tmp_path / 'new' / 'p.json').read_text())
    assert done.status == 0 and '2.5 s of samples, 2500 steps' in done.out
    assert {'log_s', 'steps', 'real_time_share', 'peak_mb'} <= set(result)
    assert (result['log_s'], result['steps']) == (2.5, 2500)
    assert result['real_time_share'] > 0.0 and result['peak_mb'] > 20.0


def test_a_folder_is_no_file(tmp_path):
    for name in ('kernels', 'pipeline'):
        assert refused('benchmark', name, '--json', tmp_path).endswith('expected a file, not a folder')


def test_what_is_not_installed_says_where_it_is(tmp_path):
    """An installed package has no folder `benchmarks` beside it."""
    app = typer.Typer()
    benchmark.add_studies(app, tmp_path)
    with pytest.raises(MbseError, match=r'mbse benchmark kernels .*git clone'):
        typer.main.get_command(app)(['kernels', '--rounds', '1', '--json', 'x.json'], standalone_mode=False)
    assert {command.name for command in app.registered_commands} == set(benchmark.IN_SOURCES)
