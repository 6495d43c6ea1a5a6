# SPDX-License-Identifier: Apache-2.0
"""What all tests share: the environment of DDS, a domain of one's own, data outside the repository, hypothesis."""

from __future__ import annotations

import fcntl
import gc
import importlib.util
import os
import re
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import cache, wraps
from inspect import signature
from pathlib import Path
from typing import Any

import domains
import hypothesis
import pytest

os.environ.setdefault('OPENBLAS_NUM_THREADS', '1')     # before NumPy: as the command line and the nodes have it
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # in the background of a shell; what tests start inherits it
    signal.signal(signal.SIGINT, signal.default_int_handler)

from mbse_ros.compiled import have_compiler
from mbse_ros.description import load
from mbse_ros.description.model import MechanismDescription
from mbse_ros.dynamics import model
from mbse_ros.filters import observer_step
from mbse_ros.filters.filters import FILTERS, OF_MECHANISMS
from mbse_ros.filters.hydraulic_dekf import HydraulicFilter
from mbse_ros.filters.parts import step as steps
from mbse_ros.machine import machine
from mbse_ros.nodes.graphs.run_graph import dds_profile
from mbse_ros.simulation import three_simulations
from mbse_ros.simulation.plant import Plant

ROOT = Path(__file__).resolve().parent.parent
MODELS, MADE = 12, 40       # machines and mechanisms, and filters of mechanisms, that a process keeps
PLAIN = bool, int, float, str
# They take longest: first, so that none of them is left alone at the end.
LONGEST = ('test_nodes_demo', 'test_nodes_linkage', 'test_nodes_sensors', 'test_nodes_machine', 'test_nodes_graph',
           'test_nodes_smoother', 'test_nodes_doctor', 'test_nodes_benchmark', 'test_nodes_display')
DDS = {
    'ROS_PYTHON_CHECK_FIELDS': '1',                 # a wrong scalar type raises instead of aborting the process
    'ROS_AUTOMATIC_DISCOVERY_RANGE': 'LOCALHOST',
    'FASTDDS_BUILTIN_TRANSPORTS': 'UDPv4',          # a killed process leaves no shared memory behind
    **dds_profile({'ROS_DISTRO': os.environ.get('ROS_DISTRO', '')}),
}
if os.environ.get('ROS_DISTRO') == 'humble':
    DDS['ROS_LOCALHOST_ONLY'] = '1'                 # its way of saying LOCALHOST
os.environ.update(DDS)

hypothesis.settings.register_profile('local', deadline=None)
hypothesis.settings.register_profile('ci', deadline=None, derandomize=True)
hypothesis.settings.load_profile('ci' if os.environ.get('CI') else 'local')


def pytest_configure(config: pytest.Config) -> None:
    """In the project's own environment a missing ROS 2 is an error, not a reason to skip. The second worker begins with
    the last folders: what it imports there the first one need not compile again, and the other way round."""
    if os.environ.get('MBSE_ROS_ENVIRONMENT') and importlib.util.find_spec('rclpy') is None:
        raise pytest.UsageError('rclpy cannot be imported in ' + os.environ['MBSE_ROS_ENVIRONMENT'])
    if os.environ.get('PYTEST_XDIST_WORKER') == 'gw1' and config.args == ['test']:
        config.args = sorted((str(folder) for folder in (ROOT / 'test').iterdir() if folder.is_dir()), reverse=True)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """With ``-m ros`` files that have no such test are not imported, with ``-m 'not ros'`` files that have no other:
    that takes longer than many of the tests."""
    if collection_path.suffix != '.py':
        return None
    chosen = config.getoption('markexpr')
    if chosen == 'ros' and not _may_need_ros(collection_path) or chosen == 'not ros' and _of_nodes(collection_path):
        return True
    return None


def _of_nodes(path: Path) -> bool:
    return path.name.startswith('test_nodes_')


@cache
def _may_need_ros(path: Path) -> bool:
    says_so = re.search(r'\b(mark\.ros|ros_domain)\b', path.read_text())
    return _of_nodes(path) or says_so is not None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests of the nodes carry the marker ros, without ROS 2 all that carry it are skipped; the longest files first."""
    without_ros = importlib.util.find_spec('rclpy') is None
    for item in items:
        if _of_nodes(item.path) or 'ros_domain' in getattr(item, 'fixturenames', ()):
            item.add_marker('ros')
        if item.get_closest_marker('ros') and not _may_need_ros(item.path):
            raise pytest.UsageError(f'{item.nodeid} needs ROS 2 and its file does not say so: -m ros would miss it')
        if without_ros and item.get_closest_marker('ros'):
            item.add_marker(pytest.mark.skip(reason='ROS 2 (rclpy) cannot be imported'))
    ranks = {name: rank for rank, name in enumerate(LONGEST)}
    items.sort(key=lambda item: (ranks.get(item.path.stem, len(ranks)), item.path))


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """Some hundred MB of tests and modules stay to the end: the garbage collector need not look at them again."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 50)


def shared(make: Callable[..., Any], key_of: Callable[..., object], most: int = MODELS) -> Callable[..., Any]:
    """What ``make`` gives for the same key, made once while its compiler, backend and the constants of the package are
    the same; ``most`` of them, the last that were asked for. None is a key of nothing: what is made is not kept."""
    made: dict[object, Any] = {}

    @wraps(make)
    def found(*args: Any, **options: Any) -> Any:
        if (given := key_of(*args, **options)) is None:
            return make(*args, **options)
        key = given, tuple(map(os.environ.get, ('MBSE_BACKEND', 'MBSE_CACHE_DIR', 'CC', 'PATH'))), constants()
        made[key] = made.pop(key) if key in made else make(*args, **options)
        if len(made) > most:
            del made[next(iter(made))]
        return made[key]
    return found


def constants() -> tuple[tuple[str, str, object], ...]:
    """Numbers and words in capitals of the rooms that make functions: tests set some of them."""
    rooms = tuple(f'mbse_ros.{room}.' for room in ('dynamics', 'filters', 'mechanism', 'compiled'))
    return tuple((name, key, value) for name, module in list(sys.modules.items()) if name.startswith(rooms)
                 for key, value in list(vars(module).items()) if key.isupper() and isinstance(value, PLAIN))


def model_key(description: object, *others: Any) -> object:
    """All that a model is made of."""
    coordinates, independent, free, backend = (*others, *(None, None, (), 'auto')[len(others):])
    return repr(description), coordinates, repr(independent), tuple(free), backend


def locked(*given: Any) -> model.Model:
    """A model whose parameters nobody changes for others: ``with_parameters`` gives one with its own."""
    made = model.Model(*given)
    made.parameters.setflags(write=False)
    return made


model_of = shared(locked, model_key)


@wraps(model.load_model)
def load_model(mechanism: str | Path | MechanismDescription, *others: Any, **options: Any) -> model.Model:
    given = signature(load_model).bind(mechanism, *others, **options)
    given.apply_defaults()
    description, *others = given.args
    return model_of(description if isinstance(description, MechanismDescription) else load.load_mechanism(description),
                    *others)


model.load_model = load_model       # here, before the tests import it


def filter_key(name: str) -> Callable[..., object]:
    """Of a problem, which its filters keep, and options that their text says wholly."""
    return lambda of, **options: (name, id(of), repr(sorted(options.items()))) if all(
        isinstance(part, PLAIN) for value in options.values()
        for part in (value if isinstance(value, (tuple, list)) else [value])) else None


@pytest.fixture(scope='session', autouse=True)
def models() -> Iterator[None]:
    """The package's files are read once. Machines and mechanisms of one file share their model; observers of machines
    of the same numbers, and of one mechanism, share their compiled step. None of it changes; those of an excavator take
    0.3 and 0.2 s. Simulated machines run in C also where ``vm`` is asked for: an excavator's compiles for 1 s, and in
    the virtual machine 3 s of its motion take 4 s."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(load, 'parse_mechanism', shared(load.parse_mechanism, lambda text, file='text': (
            text, file) if Path(file).is_relative_to(ROOT / 'config') else None, MADE))
        patch.setattr(machine, 'Model', model_of)
        patch.setattr(three_simulations, 'Model', model_of)
        for name in OF_MECHANISMS:
            patch.setitem(FILTERS, name, shared(FILTERS[name], filter_key(name), MADE))
        made = steps.Filter.step     # with its filter, whose id is then no other's
        of_mechanism = shared(lambda of, keep: (of, made(of, keep)), lambda of, keep: (id(of), tuple(keep)), MADE)
        patch.setattr(steps.Filter, 'step', lambda of, keep=(): of_mechanism(of, keep)[1])
        step = shared(HydraulicFilter.step, lambda of, keep=(): (
            of.machine.made_of, of.name, of.model.weighs, of.order, of.noise, of.halvings, observer_step.LARGE,
            tuple(keep)))
        patch.setattr(HydraulicFilter, 'step', lambda of, keep=(): step(of, keep))
        scan = steps.Scan     # with its function, whose id is then no other's
        scans = shared(lambda function, backend: (function, scan(function, backend)), lambda function, backend: (
            id(function), backend), MADE)
        patch.setattr(steps, 'Scan', lambda function, backend: scans(function, backend)[1])
        plant = Plant.__init__
        patch.setattr(Plant, '__init__', lambda of, machine, backend='auto', *more: plant(
            of, machine, 'c' if backend == 'auto' and have_compiler() else backend, *more))
        yield


@pytest.fixture
def vm(monkeypatch: pytest.MonkeyPatch) -> None:
    """Functions in CasADi's virtual machine: to compile one takes longer than its first 10,000 steps.

    That C gives the same is tested with each kind of filter in test_filters_linkage_defaults.py.
    """
    monkeypatch.setenv('MBSE_BACKEND', 'vm')


@pytest.fixture
def few_frames(monkeypatch: pytest.MonkeyPatch) -> None:
    """Animations of five frames: those of full length are tested in test_report_page.py and test_report_linkage.py."""
    from mbse_ros.api.results import simulations  # here, because pictures take their time to import
    from mbse_ros.report import crane, linkage_drawing
    monkeypatch.setattr(crane, '_GIF_FRAMES', 5)
    monkeypatch.setattr(linkage_drawing, '_GIF_FRAMES', 5)
    monkeypatch.setattr(simulations, '_FRAMES', 5)


@pytest.fixture(scope='module')
def blank_pictures() -> Iterator[None]:
    """Figures are made, but their files are blank: to paint them takes longer than what is tested. They are painted in
    test/report, and once by each command that has a report."""
    from matplotlib.figure import Figure  # here, because it takes its time to import
    from PIL import Image
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Figure, 'savefig', lambda figure, path: Image.new('RGB', (8, 8)).save(path))
        yield


@pytest.fixture
def ros_domain(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """A ROS_DOMAIN_ID from 1 to 101 that no other test on this machine holds, set in the environment."""
    for domain in domains.domains():
        with open(Path(tempfile.gettempdir()) / f'mbse_ros_domain_{domain}.lock', 'w') as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                continue
            monkeypatch.setenv('ROS_DOMAIN_ID', str(domain))
            yield domain
            return
    pytest.fail('all ROS domains from 1 to 101 are taken by other tests')


@pytest.fixture(scope='session')
def shared_data() -> Path:
    """The folder of measured data beside the repository (not part of it)."""
    folder = ROOT.parent / 'shared' / 'data'
    if not folder.is_dir():
        pytest.skip('no measured data: ../shared/data is not there')
    return folder
