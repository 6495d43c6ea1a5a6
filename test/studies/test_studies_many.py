# SPDX-License-Identifier: Apache-2.0
"""Independent runs by one process or by several: the same results in the same order."""

from __future__ import annotations

import os
import subprocess
import sys
from argparse import ArgumentParser
from operator import neg
from pathlib import Path

import numpy as np
import pytest
from cli_support import mbse, recorded, refused

from mbse_ros.api import simulate_batch
from mbse_ros.machine import load_machine
from mbse_ros.offline.calibration.calibration_bags import recorded as read_bags
from mbse_ros.studies.many import add_workers, kept, many

BENCHMARKS = Path(__file__).resolve().parents[2] / 'benchmarks'


@pytest.mark.parametrize('jobs', [1, 3])
def test_results_come_in_the_order_of_the_items(jobs: int) -> None:
    assert many(neg, range(20), jobs) == [-k for k in range(20)] and many(neg, [], jobs) == []


def test_they_are_made_by_others_and_their_errors_come_through() -> None:
    """By functions of Python alone: others begin sooner without this file's imports."""
    who = 3 * ["__import__('os').getpid()"]
    assert os.getpid() not in many(eval, who, 2) and many(eval, who) == 3 * [os.getpid()]
    with pytest.raises(ValueError, match='nought'):
        many(int, ['1', 'nought', '2'], 2)


def test_a_cluster_makes_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs of a mechanism in parts, bit for bit; with the same draws."""
    distributed = pytest.importorskip('distributed', reason='dask.distributed is not installed')
    words = ['four_bar', '--runs', 5, '--vary', 'theta=2 deg', '--vary', 'crank=1%', '--duration', 0.05, '--states']
    monkeypatch.setattr(simulate_batch, 'PART', 2)
    with distributed.LocalCluster(n_workers=1, threads_per_worker=1, processes=False,
                                  dashboard_address=None) as cluster:
        address = cluster.scheduler_address
        assert many(neg, range(5), cluster=address) == [-k for k in range(5)]
        assert mbse('simulate', *words, '-o', tmp_path / 'there', '--cluster', address).status == 0
    assert mbse('simulate', *words, '-o', tmp_path / 'here').status == 0
    for file in 'ends.csv', 'quantiles.csv':
        assert (tmp_path / 'there' / file).read_bytes() == (tmp_path / 'here' / file).read_bytes(), file
    there, here = (np.load(tmp_path / name / 'runs.npz', allow_pickle=False) for name in ('there', 'here'))
    assert there.files == here.files
    for name in here.files:
        np.testing.assert_array_equal(there[name], here[name], name)
    assert '--jobs' in refused('simulate', *words, '-o', tmp_path / 'x', '--cluster', address, '--jobs', 2)


def test_options_of_a_benchmark() -> None:
    parser = ArgumentParser()
    add_workers(parser, 2)
    assert vars(parser.parse_args([])) == {'jobs': 2, 'cluster': None}
    assert vars(parser.parse_args(['--jobs', '4', '--cluster', 'tcp://x:1'])) == {'jobs': 4, 'cluster': 'tcp://x:1'}


def test_a_benchmark_by_two_processes_prints_the_same() -> None:
    """Its functions are those of a script."""
    words = [sys.executable, str(BENCHMARKS / 'scale_shifts.py'), '--shifts', '6', '--loads', '2', '--day', '3']
    one, two = (subprocess.run([*words, '--jobs', jobs], capture_output=True, text=True, check=True).stdout
                for jobs in ('1', '2'))
    assert one == two and '6 shifts, ' in one


def test_runs_that_are_in_the_file_are_not_done_again(tmp_path: Path) -> None:
    done, file = [], tmp_path / 'out' / 'rows.jsonl'

    def work(number: int) -> dict[str, object]:
        done.append(number)
        if number == 3:
            raise ValueError('ended here')
        return {'name': 'a', 'number': number, 'square': number ** 2}
    items = {('a', number): number for number in range(5)}
    with pytest.raises(ValueError, match='ended here'):
        kept(work, items, ('name', 'number'), file)
    assert done == [0, 1, 2, 3]
    rows = kept(work, {key: number for key, number in items.items() if number != 3}, ('name', 'number'), file)
    assert done == [0, 1, 2, 3, 4] and [row['square'] for row in rows] == [0, 1, 4, 16]
    assert kept(work, {}, ('name', 'number'), file) == rows


def test_every_benchmark_has_processes_by_the_same_way() -> None:
    """No other pool of processes; ``mutations`` has threads that wait for processes of their own."""
    for path in BENCHMARKS.glob('*.py'):
        assert 'ProcessPoolExecutor' not in path.read_text(), path.name


def test_bags_that_others_read(tmp_path: Path) -> None:
    """Samples, dates and warnings as read one after the other, and on the command line the same file."""
    bags = [recorded(tmp_path / name, until=until) for name, until in (('a', 2.0), ('b', 2.5))]
    machine = load_machine('patu655_lift')
    by = [read_bags(bags, machine), read_bags(bags, machine, by=lambda work, items: many(work, items, 2))]
    for one, other in zip(*by):
        assert (one.name, one.date, one.warnings) == (other.name, other.date, other.warnings)
        assert list(one.series) == list(other.series)
        for name, series in one.series.items():
            np.testing.assert_array_equal(series, other.series[name])
    files = [tmp_path / f'{jobs}.json' for jobs in (1, 2)]
    for jobs, file in enumerate(files, 1):
        done = mbse('calibrate', *bags, '--jobs', jobs, '--json', file)
        assert done.status == 0, done
    assert files[0].read_text() == files[1].read_text()
