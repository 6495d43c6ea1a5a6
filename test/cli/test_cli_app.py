# SPDX-License-Identifier: Apache-2.0
"""The entry point: help, exit status, one line for an error, imports only where they are needed."""

import os
import subprocess
import sys

import pytest
import typer
from cli_support import mbse, recorded, refused
from source_tree import ROOT

from mbse_ros import __version__, cli
from mbse_ros.cli import app as module
from mbse_ros.cli.arguments import hand_over
from mbse_ros.report.result import Answer

COMMANDS = ('new', 'simulate', 'inverse', 'import', 'estimate', 'smooth', 'check', 'check-data', 'topics', 'doctor',
            'convert', 'export-c', 'graph', 'observability', 'tune', 'calibrate', 'loads', 'fleet', 'view', 'up',
            'replay', 'demo', 'benchmark')
STUDIES = ('kernels', 'pipeline', 'energy', 'simulation', 'formulations', 'scaling', 'estimators', 'graphs', 'faults')


def test_version():
    assert mbse('--version') == (0, f'mbse_ros {__version__}\n', '')


def test_a_command_alone_is_as_among_all(monkeypatch):
    """Its help and what it refuses, whether it is built alone or with all."""
    words = [['estimate', '--help'], ['benchmark', 'kernels', '--help'], ['up'], ['check'], ['check', 'x', 'y']]
    alone, whole = [mbse(*line) for line in words], module.command_line
    monkeypatch.setattr(module, 'command_line', lambda *_: whole())
    assert alone == [mbse(*line) for line in words]


def test_help_names_every_command_in_whole_sentences():
    done = mbse('--help')
    listed = done.out.partition('Commands:\n')[2].splitlines()
    assert done.status == 0 and tuple(line.split()[0] for line in listed) == COMMANDS
    assert all(line.endswith('.') and not line.endswith('...') for line in listed)     # not cut off


def test_a_file_is_a_command(tmp_path, monkeypatch):
    """Nothing else names it: with a dash for each underscore, a word of Python with one behind it."""
    for name in ('say_so', 'while_'):
        (tmp_path / f'{name}.py').write_text(f'def {name}(what: str = "x") -> None:\n    """Say it."""\n    '
                                             f'print("{name}", what)\n')
        monkeypatch.delitem(sys.modules, f'mbse_ros.cli.{name}', raising=False)
    monkeypatch.setattr(cli, '__path__', [*cli.__path__, str(tmp_path)])
    assert mbse('say-so', '--what', 'this') == (0, 'say_so this\n', '')
    assert mbse('while').out == 'while_ x\n'
    assert module.commands() == (*COMMANDS, 'say-so', 'while')


@pytest.mark.parametrize('words, said', [
    ('mbse est', ['estimate']), ('mbse estimate --mac', ['--machine']), ('mbse estimate --machine zx', ['zx200',
                                                                                                      'zx200_can'])])
def test_the_shell_completes_commands_options_and_machines(words, said):
    place = str(len(words.split()) - 1)
    environment = {**os.environ, '_MBSE_COMPLETE': 'complete_bash', 'COMP_WORDS': words, 'COMP_CWORD': place}
    done = subprocess.run([sys.executable, '-m', 'mbse_ros.cli'], env=environment, capture_output=True, text=True,
                          check=False)
    assert done.stdout.split() == said, done


@pytest.mark.parametrize('command', [*COMMANDS, *(f'benchmark {study}' for study in STUDIES)])
def test_help_of_a_command(command):
    done = mbse(*command.split(), '--help')
    assert done.status == 0 and f'mbse {command}' in done.out and not done.err


def test_every_command_is_documented_and_every_option_explained():
    """The page has the commands, and what of their options needs more words than their `--help` has."""
    page, group = (ROOT / 'docs' / 'command_line.md').read_text(), typer.main.get_command(module.command_line())
    count = 0
    for command in (*COMMANDS[:-1], *(f'benchmark {study}' for study in STUDIES)):
        assert f'mbse {command}' in page, command
        found = group
        for word in command.split():
            found = found.commands[word]
        unexplained = [item.name for item in found.params if item.opts[0].startswith('-') and not item.help]
        assert not unexplained, (command, unexplained)
        count += len(found.params)
    assert count > 250


@pytest.mark.parametrize('words, text', [
    (['dig'], "No such command 'dig'"), (['check'], 'Missing argument'),
    (['estimate', 'x', '--speed', '3'], 'No such option'), (['simulate', 'patu655_lift'], 'Missing option'),
    (['simulate', 'patu655_lift', '-o', 'x', '--seed', 'much'], '--seed'),
    (['benchmark', 'kernels', '--rounds', '0'], '--rounds')])
def test_usage_errors(words, text):
    done = mbse(*words)
    assert done.status == 2 and done.err.startswith('Usage: mbse ') and text in done.err
    assert 'Traceback' not in done.err and not done.out


@pytest.mark.parametrize('error, status, text', [
    (FileNotFoundError(2, 'No such file', 'x/y'), 2, 'mbse: x/y: No such file\n'),
    (OSError('disk full'), 2, 'mbse: files: disk full\n'), (KeyboardInterrupt(), 130, 'mbse: interrupted\n')])
def test_how_it_ends(error, status, text, monkeypatch):
    def app(**_):
        raise error
    monkeypatch.setattr(module, 'command_line', lambda *_: app)
    assert mbse('anything') == (status, '', text)


def test_a_fault_of_the_program_is_not_hidden(monkeypatch):
    def app(**_):
        raise ZeroDivisionError
    monkeypatch.setattr(module, 'command_line', lambda *_: app)
    with pytest.raises(ZeroDivisionError):
        mbse('anything')


def modules_of(*words):
    """Modules that a process of the command line has imported."""
    code = ('import atexit, sys; sys.argv[0] = "mbse"; atexit.register(lambda: print("@", *sys.modules)); '
            'from mbse_ros.cli import main; main()')
    done = subprocess.run([sys.executable, '-c', code, *words], env={**os.environ, 'PYTHONPATH': str(ROOT)},
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return set(done.stdout.rpartition('@')[2].split())


def test_the_command_line_starts_at_once():
    """Help needs no numbers, and a check no bags, plots or ROS."""
    slow = {'numpy', 'casadi', 'scipy', 'matplotlib', 'plotly', 'rosbags', 'mcap', 'rclpy', 'pint', 'rich.console'}
    assert not modules_of('--help') & slow
    assert modules_of('check', 'patu655_lift') & slow == {'numpy', 'casadi', 'rich.console'}


@pytest.mark.parametrize('words, text', [
    (['digger'], "graph: got 'digger', expected machine, crane or linkage"),
    (['crane', 'payload'], "argument: got 'payload', expected name:=value"),
    (['crane', '--payload', '3'], 'expected name:=value'),
    (['crane', 'weight:=3'], "weight: got '3', expected one of the arguments simulate, seed, duration, namespace, "
     'use_sim_time, rviz, autostart, record, sensor_reliability, frame, preset, params_file, '
     'thread_priority, cpu_affinity, '
     'lock_memory, latency_budget, remap, machine, valve, attachment, estimator, sources, payload, cycle, '
     'visualization, composed, compiled, compiled_rate, outputs, trajectory, predict_rate, scale, scale_records, '
     'scale_file, display, display_host, display_port, display_token_file, cycles'),
    (['crane', 'estimator:=UKF'], "estimator: got 'UKF', expected one of hydraulic"),
    (['linkage', 'estimator:=hydraulic'], "estimator: got 'hydraulic', expected a machine with hydraulics; else one"),
    (['crane', 'payload:=much'], "payload: got 'much'"),
    (['crane', 'machine:=excavator'], 'expected a path to a .yaml file or one of')])
def test_up_refuses(words, text):
    assert text in refused('up', *words)


def test_replay_refuses(tmp_path):
    for words in ([], ['--all']):
        assert refused('replay', tmp_path / 'none', *words) == f'{tmp_path}/none: does not exist'
    bag = recorded(tmp_path / 'bag', lambda topic, t, message: message if topic == '/truth' else None, 0.1, truth=True)
    assert refused('replay', bag) == f'{bag}: no sensors to replay; there are /truth (--all plays them)'
    assert refused('replay', bag, '--rate', '0') == '--rate: got 0.0, expected a number above 0'


def test_what_is_not_trusted_is_said_once(capsys):
    """In the answer, not as a warning besides; what else was odd is a warning."""
    class Doubted(Answer):
        warnings, doubts = ('a pause', 'in bar', 'old'), ('in bar',)

        def summary(self) -> list[str]:
            return self._distrust

    hand_over(Doubted(), None)
    said = capsys.readouterr()
    assert said.out == 'not trusted: in bar\n' and 'bar' not in said.err
    assert said.err.splitlines()[:2] == ['warning: a pause', 'warning: old']
