# SPDX-License-Identifier: Apache-2.0
"""What is slow to import is imported only where needed: judged by the modules after a command, not by its time."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from mbse_ros.bags.writer import BagWriter

ROOT = Path(__file__).resolve().parents[2]
PICTURES = {'matplotlib', 'PIL', 'plotly'}
SCIPY = {'scipy', 'scipy.linalg', 'scipy.special', 'scipy.integrate', 'scipy.interpolate', 'scipy.optimize',
         'scipy.sparse', 'scipy.spatial', 'scipy.stats', 'scipy.signal'}
SELDOM = {'pint', 'gtsam', 'rclpy', 'pandas', 'defusedxml'}
PROGRAM = """
import sys
{}
print(*sorted(sys.modules), file=sys.stderr)
"""
COMMAND = """
from mbse_ros.cli import main
sys.argv = ['mbse', *{!r}]
try:
    main()
except SystemExit as end:
    assert not end.code, end.code
"""


def modules_after(program: str) -> set[str]:
    """Modules of a process of its own after a program."""
    environment = {**os.environ, 'PYTHONPATH': os.pathsep.join([str(ROOT), os.environ.get('PYTHONPATH', '')])}
    done = subprocess.run([sys.executable, '-c', PROGRAM.format(program)], env=environment, capture_output=True,
                          text=True, check=True)
    return set(done.stderr.splitlines()[-1].split())


def after(*words: object) -> set[str]:
    """Modules after a command."""
    return modules_after(COMMAND.format([str(word) for word in words]))


@pytest.fixture(scope='module')
def bag(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A second of samples of a crane that stands."""
    path = tmp_path_factory.mktemp('imports') / 'bag'
    with BagWriter(path) as writer:
        for k in range(100):
            writer.write_samples(k * 10_000_000, {'position/lift': 0.2, 'pressure/lift_piston': 5e6,
                                                  'pressure/lift_rod': 3e6}, {'command/lift_valve': 0.0})
    return path


def test_the_package_imports_nothing() -> None:
    found = modules_after('import mbse_ros')
    assert not found & (PICTURES | SCIPY | SELDOM | {'numpy', 'casadi', 'scipy', 'yaml', 'rosbags', 'mcap', 'typer'})


def test_help_needs_no_numbers() -> None:
    assert not after('--help') & (PICTURES | SCIPY | SELDOM | {'numpy', 'casadi', 'scipy', 'yaml', 'rosbags', 'mcap'})


def test_check_draws_only_where_it_is_asked_to() -> None:
    others = {'rosbags', 'mcap', 'transforms3d'}
    assert not after('check', 'four_bar') & (PICTURES | SCIPY | SELDOM | others)


def test_a_short_simulation_draws_nothing(tmp_path: Path) -> None:
    found = after('simulate', 'four_bar', '--duration', '0.01', '-o', tmp_path / 'x')
    assert not found & (PICTURES | SCIPY | SELDOM | {'rosbags', 'mcap', 'rich'})


def test_an_estimate_needs_neither_pictures_nor_the_filters_of_linkages(bag: Path) -> None:
    found = after('estimate', bag, '--machine', 'patu655_lift')
    assert 'mbse_ros.streams.pipeline' in found
    others = {'mcap.writer', 'rich', 'rosbags', 'mbse_ros.filters.filters'}
    assert not found & (PICTURES | SCIPY | SELDOM | others)


def test_smoothing_draws_and_calibrates_nothing_for_its_numbers(tmp_path: Path) -> None:
    """Of scipy it takes what judges the graph: linear algebra and the parts of a sparse matrix."""
    pytest.importorskip('gtsam', reason='GTSAM is not installed (extra "graph")')
    after('simulate', 'patu655_lift', '--duration', '3', '-o', tmp_path / 'lift')
    found = after('smooth', tmp_path / 'lift', '--json', tmp_path / 'found.json')
    assert 'mbse_ros.graph.machines.machine_smoother' in found and (tmp_path / 'found.json').exists()
    others = {'scipy.optimize', 'scipy.integrate', 'scipy.interpolate', 'scipy.stats', 'scipy.signal', 'pint', 'pandas',
              'rclpy', 'mbse_ros.calibration.fit'}
    assert not found & (PICTURES | others)


def test_smoothers_without_a_graph_to_judge_need_no_scipy() -> None:
    assert not modules_after('import mbse_ros.graph, mbse_ros.offline.smooth_machine') & (PICTURES | SCIPY | SELDOM)
