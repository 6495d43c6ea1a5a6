# SPDX-License-Identifier: Apache-2.0
"""`mbse fleet`: each bag once, whatever fails; the same tables for any number of workers; resumed, not repeated."""

from __future__ import annotations

import csv
import fcntl
import json
import os
import pickle
import random
import shutil
import signal
import subprocess
import sys
import threading
from concurrent.futures import BrokenExecutor, Future
from contextlib import suppress
from dataclasses import replace
from functools import partial
from operator import neg
from pathlib import Path
from time import sleep

import pytest
from cli_support import mbse, recorded, refused

from mbse_ros import __version__, workers
from mbse_ros.bags.writer import BagWriter
from mbse_ros.description.load import known_machines
from mbse_ros.errors import BagError, SettingError
from mbse_ros.machine import load_machine
from mbse_ros.offline import fleet as fleet_module
from mbse_ros.offline.fleet import ABOUT, LOCK, Done, Task, estimate_bag, held, known, unsealed
from mbse_ros.workers import _same_version, results


@pytest.fixture(scope='module')
def bags(tmp_path_factory) -> Path:
    """Three lifts, and a bag of something else."""
    folder = tmp_path_factory.mktemp('fleet') / 'bags'
    folder.mkdir()
    for name, until in (('one', 5.6), ('two', 4.6), ('three', 5.0)):
        recorded(folder / name, until=until)
    with BagWriter(folder / 'other') as writer:
        writer.write_pressure(0, 'pump', 1e6)
    return folder


@pytest.fixture(scope='module')
def done(bags) -> tuple[Path, object]:
    """All of them by two processes."""
    output = bags.parent / 'lifts.csv'
    return output, mbse('fleet', f'{bags}/*', '--jobs', 2, '-o', output, '--json', bags.parent / 'x.json')


def tables(output: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (output / 'loads').iterdir()}


def test_each_bag_has_its_table_and_what_fails_is_said(bags, done) -> None:
    output, said = done
    (assumed,), (failed,) = said.warnings, [line for line in said.err.splitlines() if line.startswith('failed: ')]
    assert said.status == 1 and 'none of the topics' in failed and 'other: no sample names the machine' in assumed
    assert '3 bags (0 of them done before), 1 failed, 0.00 h, 3 loads, total 1' in said.out
    found = json.loads((bags.parent / 'x.json').read_text())
    assert (found['bags'], found['loads'], found['done_before']) == (4, 3, 0)
    lower, upper = found['total_interval']      # errors of the machine's numbers are the same in all bags
    assert lower < 150.0 < upper and upper - lower > 2.5 * min(
        float(row['upper_kg']) - float(row['lower_kg']) for text in tables(output).values()
        for row in csv.DictReader(text.decode().splitlines())) and found['faults'] == []
    assert [Path(item['bag']).name for item in found['failures']] == ['other']
    rows = [row for text in tables(output).values() for row in csv.DictReader(text.decode().splitlines())]
    assert sorted(Path(row['bag']).name for row in rows) == ['one', 'three', 'two']
    assert sum(float(row['mass_kg']) for row in rows) == pytest.approx(found['total'])
    assert all(float(row['lower_kg']) < 50.0 < float(row['upper_kg']) for row in rows)
    (failure,) = (output / 'failures').iterdir()
    assert json.loads(failure.read_text())['error'] == found['failures'][0]['error']
    assert not list(output.rglob('*.part'))


def test_what_is_done_stays_and_what_is_missing_is_made(bags, done) -> None:
    """In this process, so that it is seen which bags are worked on; the same tables, so by one worker, too."""
    output, _ = done
    before = tables(output)
    text = Path(load_machine('patu655_lift').description.file).read_text()
    tasks = [Task(str(bags / name), text, 'patu655_lift', None, (), str(output), '.csv') for name in ('one', 'two')]
    assert all(known(task) is not None for task in tasks)
    gone = output / 'loads' / f'{tasks[0].key}.csv'
    gone.unlink()
    assert known(tasks[0]) is None and known(tasks[1]).loads == 1
    assert estimate_bag(tasks[0]).loads == 1 and tables(output) == before
    os.utime(next((bags / 'two').glob('*.mcap')), ns=(1, 1))       # another recording under the same name
    assert known(tasks[1]) is None
    with pytest.raises(SettingError, match='on the workers, too'):
        estimate_bag(replace(tasks[0], version='0.0'))
    with pytest.raises(SettingError, match='the workers see'):
        estimate_bag(Task(str(bags / 'one'), text, 'patu655_lift', None, (), str(bags / 'none.csv'), '.csv'))


def test_what_is_damaged_is_done_again_and_nothing_wrong_is_believed(bags, done, tmp_path) -> None:
    """150 mutations of a fleet's folder: fleet.json, a summary, its table."""
    output = Path(shutil.copytree(done[0], tmp_path / 'x.csv'))
    text = Path(load_machine('patu655_lift').description.file).read_text()
    task = Task(str(bags / 'one'), text, 'patu655_lift', None, (), str(output), '.csv')
    true, rng, about = known(task), random.Random(3), output / ABOUT
    assert true is not None
    files = [about, output / 'bags' / f'{task.key}.json', output / 'loads' / f'{task.key}.csv']
    for _ in range(150):
        file = rng.choice(files)
        content = file.read_bytes()
        some, at = bytearray(content), rng.randrange(len(content))
        kind = rng.choice(('bit', 'cut', 'digit', 'zeros', 'deep', 'list'))
        if kind == 'bit':
            some[at] ^= 1 << rng.randrange(8)
        elif kind == 'digit':
            at = rng.choice([k for k, letter in enumerate(some) if 48 <= letter < 58])
            some[at] = 48 + (some[at] - 47) % 10
        else:
            some = {'cut': some[:at], 'zeros': bytes(len(some)), 'deep': b'[' * 100_000, 'list': b'[1, 2]'}[kind]
        file.write_bytes(some)
        if file == about:
            with held(output, task.about) as warnings:
                assert known(task) == true and (kind == 'bit' or 'damaged' in warnings[0])
            assert unsealed(about) == task.about
        else:
            same = kind == 'bit' or kind == 'cut' and at == len(content) - 1       # a blank, the last line's end
            if kind == 'digit' and file.suffix == '.json':      # one that no double has
                same = json.loads(bytes(some)) == json.loads(content)
            assert known(task) is None or same and known(task) == true
        file.write_bytes(content)
    assert known(task) == true


def test_a_damaged_description_makes_no_other_fleet_ours(bags, done, tmp_path) -> None:
    """The summaries say of which tuning they are, though nothing else does any more."""
    output = Path(shutil.copytree(done[0], tmp_path / 'x.csv'))
    (output / ABOUT).write_text('')
    assert 'fleet.json is damaged' in refused('fleet', bags / 'three', '--set', 'scale.least_load=3', '-o', output)
    said = mbse('fleet', bags / 'three', '--jobs', 1, '-o', output)
    assert said.status == 0 and 'fleet.json: damaged' in said.warnings[0] and '(1 of them done before)' in said.out


def test_refusals(bags, done, tmp_path) -> None:
    output, _ = done
    assert 'machine_file' in refused('fleet', bags / 'one', '--machine', 'patu655', '-o', output)
    assert 'tuning []' in refused('fleet', bags / 'one', '--set', 'scale.least_load=3', '-o', output)
    assert '.parquet or .csv' in refused('fleet', bags / 'one', '-o', tmp_path / 'x')
    assert 'no folder of a bag has this name' in refused('fleet', tmp_path / '*', '-o', tmp_path / 'x.csv')
    (tmp_path / 'mine.csv').mkdir()
    (tmp_path / 'mine.csv' / 'notes.txt').touch()
    assert 'a new folder' in refused('fleet', bags / 'one', '-o', tmp_path / 'mine.csv')
    with open(output / LOCK) as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert 'no other fleet' in refused('fleet', bags / 'one', '-o', output)


DEADLY = """
import os, sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from mbse_ros.machine import load_machine
from mbse_ros.offline import fleet
weighed = fleet._weighed
fleet._weighed = lambda task: os._exit(1) if task.bag.endswith('two') else weighed(task)
text = open(load_machine('patu655_lift').description.file).read()
tasks = [fleet.Task(bag, text, 'patu655_lift', None, (), sys.argv[1], '.csv') for bag in sys.argv[2:]]
for done in fleet.run_fleet(tasks, lambda: ProcessPoolExecutor(1, mp_context=get_context('fork')), 2):
    print(os.path.basename(done.bag), bool(done.error))
"""


def test_a_bag_that_kills_its_worker_is_the_only_one_that_fails(bags, tmp_path) -> None:
    (tmp_path / ABOUT).write_text('{}')
    found = subprocess.run([sys.executable, '-c', DEADLY, str(tmp_path), *(str(bags / name) for name in (
        'one', 'two', 'three'))], capture_output=True, text=True)
    assert sorted(found.stdout.splitlines()) == ['one False', 'three False', 'two True'], found.stderr
    assert len(list((tmp_path / 'loads').iterdir())) == 2 and len(list((tmp_path / 'failures').iterdir())) == 1


def test_another_machine_is_named_with_its_file_and_what_is_no_bag_in_one_line(tmp_path) -> None:
    recorded(tmp_path / 'bag', until=4.6)
    for name in ('z', 'a'):
        (tmp_path / name).mkdir()
    own, text = tmp_path / 'own.yaml', known_machines()['patu655_lift'].read_text()
    own.write_text(text.replace('name: patu655_lift', 'name: own', 1).replace('1000 kg]', '900 kg]', 1))
    said = mbse('fleet', f'{tmp_path}/*', '--jobs', 1, '-o', tmp_path / 'x.csv', '--machine', own)
    assert said.warnings == [f'{tmp_path}/a, {own}, {tmp_path}/z: not folders of bags, left out'], said.err
    summary, = (tmp_path / 'x.csv' / 'bags').iterdir()
    assert f'read as own ({own})' in summary.read_text()


def test_a_map_of_sources_goes_to_the_workers(bags, tmp_path) -> None:
    """By one process; a fleet with another map has a folder of its own."""
    file = tmp_path / 'map.yaml'
    file.write_text('format: mbse/sources/1\nchannels:\n  pressure/lift_piston: {topic: sensors/pressure/lift_piston, '
                    'path: fluid_pressure, unit: Pa}\n')
    words = 'fleet', bags / 'three', '--jobs', 1, '-o', tmp_path / 'x.csv'
    done = mbse(*words, '--sources', file)
    assert done.status == 0 and '1 load, total ' in done.out, done
    assert mbse(*words, '--sources', file).out.startswith('1 bag (1 of them done before)')
    assert 'sources' in refused(*words)


def test_errors_pass_from_a_process_to_another() -> None:
    for error in (SettingError('--jobs', 3, 'less'), BagError('x', 'is none')):
        again = pickle.loads(pickle.dumps(error))
        assert type(again) is type(error) and str(again) == str(error) and again.__dict__ == error.__dict__


def of_workers(version: str = __version__, address: str | None = None) -> list[int]:
    return sorted(results(partial(_same_version, version, abs), [-3, 2, -1], 2, address))


def test_studies_by_processes() -> None:
    assert of_workers() == [1, 2, 3]
    with pytest.raises(SettingError, match='0.0 on the workers, too'):
        of_workers('0.0')


def test_a_worker_that_ends_before_its_work_is_done_is_an_error_of_ours() -> None:
    with pytest.raises(SettingError, match='jobs: got 2, expected processes that live'):
        list(results(os._exit, [1, 1], 2))


SCRIPT = """
import sys
import mbse_ros as mbse
print('script')
found = mbse.fleet(sys.argv[1], sys.argv[2], 'patu655_lift', jobs=2)
print(len(found.good), len(found.failed))
print(len(mbse.calibrate(sys.argv[1], 'patu655_lift', jobs=2).parameters) > 0, __file__ == sys.argv[0])
"""


def test_the_thread_of_a_pool_ends_quietly_with_its_processes(monkeypatch) -> None:
    """Also where many wait: before Python 3.12 it stumbles over what is cancelled meanwhile."""
    said = []
    monkeypatch.setattr(threading, 'excepthook', said.append)
    for _ in range(5):
        with pytest.raises(SettingError, match='processes that live'):
            list(results(os._exit, [1] * 3000, 2))
        stopped = results(neg, range(3000), 2)
        next(stopped)
        stopped.close()
    assert not said



def test_a_script_without_a_guard_runs_once(bags, tmp_path) -> None:
    """The workers do not import it, so that it does not start workers again, and it keeps its name."""
    script = tmp_path / 'script.py'
    script.write_text(SCRIPT)
    found = subprocess.run([sys.executable, str(script), str(bags / 'one'), str(tmp_path / 'x.csv')],
                           capture_output=True, text=True)
    assert found.stdout.splitlines() == ['script', '1 0', 'True True'], found.stderr


def test_a_cluster_that_does_not_answer(monkeypatch) -> None:
    pytest.importorskip('distributed', reason='dask.distributed is not installed')
    monkeypatch.setattr(workers, 'PATIENCE', 0.5)
    with pytest.raises(SettingError, match='a Dask scheduler that answers'):
        of_workers(address='tcp://127.0.0.1:1')


def test_a_cluster_makes_the_same(bags, done, tmp_path) -> None:
    distributed = pytest.importorskip('distributed', reason='dask.distributed is not installed')
    with distributed.LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=None) as cluster:
        words = [sys.executable, '-m', 'mbse_ros.cli', 'fleet', f'{bags}/*', '-o', str(tmp_path / 'lifts.csv'),
                 '--cluster', cluster.scheduler_address]
        assert subprocess.run(words, capture_output=True, text=True).returncode == 1       # one is no bag of ours
        assert of_workers(address=cluster.scheduler_address) == [1, 2, 3]
    assert tables(tmp_path / 'lifts.csv') == tables(done[0])


class Broken:
    """Workers that die of the first bags that are given, and do the others; ``given``: their names."""

    def __init__(self, given, dies):
        self.given, self.dies = given, dies

    def submit(self, work, task):
        self.given.append(Path(task.bag).name)
        future = Future()
        if len(self.given) <= self.dies:
            future.set_exception(BrokenExecutor('killed'))
        else:
            future.set_result(Done(task.bag, loads=1))
        return future

    def shutdown(self, wait):
        assert wait


def test_large_bags_come_first_and_what_was_done_is_not_done_again(tmp_path, monkeypatch) -> None:
    """Of a worker that died after it had written its results, and of another that had not."""
    tasks = []
    for name, size in (('small', 10), ('large', 1000), ('middle', 100)):
        (tmp_path / name).mkdir()
        (tmp_path / name / 'x.mcap').write_bytes(bytes(size))
        tasks.append(Task(str(tmp_path / name), '', 'm', None, (), str(tmp_path), '.csv'))
    given = []
    found = list(fleet_module.run_fleet(tasks, lambda: Broken(given, 1), 1))
    assert given == ['large', 'middle', 'small', 'large'] and {done.loads for done in found} == {1} and len(found) == 3
    given.clear()
    monkeypatch.setattr(fleet_module, 'known', lambda task: Done(task.bag, loads=7))
    found = list(fleet_module.run_fleet(tasks, lambda: Broken(given, 1), 1))
    assert given == ['large', 'middle', 'small'] and sorted(done.loads for done in found) == [1, 1, 7]


@pytest.mark.skipif(not Path('/proc').is_dir(), reason='children are found by /proc')
@pytest.mark.parametrize('command', ['fleet', 'calibrate'])
def test_ctrl_c_ends_it_with_one_line(bags, tmp_path, command) -> None:
    """As a terminal sends it, to the process and its workers at once, while these still import."""
    logs = [str(shutil.copytree(bags / 'one', tmp_path / f'bag_{i}')) for i in range(6)]
    words = {'fleet': ['-o', str(tmp_path / 'x.csv'), *logs],
             'calibrate': ['--machine', 'patu655_lift', '-o', str(tmp_path / 'x.yaml'), *logs]}
    place = tmp_path / 'temporary'
    place.mkdir()
    process = subprocess.Popen([sys.executable, '-m', 'mbse_ros.cli', command, '--jobs', '2', *words[command]],
                               stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True, start_new_session=True,
                               env={**os.environ, 'TMPDIR': str(place)})
    tasks = Path(f'/proc/{process.pid}/task')

    def workers_of() -> list[str]:
        with suppress(OSError):
            return [child for children in tasks.glob('*/children') for child in children.read_text().split()
                    if b'spawn_main' in Path(f'/proc/{child}/cmdline').read_bytes()]
        return []
    with process:
        while process.poll() is None and not workers_of():
            sleep(0.01)
        os.killpg(process.pid, signal.SIGINT)
        said = process.stderr.read()
    assert (process.returncode, said.splitlines()[-1:]) == (130, ['mbse: interrupted']), said
    assert 'Traceback' not in said and 'Error' not in said
    assert not list(tmp_path.rglob('*.part*')) and not list(place.iterdir())
