# SPDX-License-Identifier: Apache-2.0
"""Outputs of every command on fixed bags and seeds, recorded before a change of the code and compared after it.

`python benchmarks/recorded_outputs.py FOLDER` writes what the commands say and their files into a new folder, as text,
JSON and CSV, with a list of SHA-256; `--against RECORDED` compares it with an earlier folder, lists each difference
(file, field, first difference) and ends with 1 if there are any. `--compare RECORDED FOLDER` compares alone.

All machines of config/machines with both weighings, four mechanisms with all filters, and the Python API; `--quick`: a
crane and a four-bar. `--live` adds the nodes (`mbse demo`), of which only what does not depend on the clock is kept.
`--only CASE` runs one case. Not recorded: what depends on the computer (`doctor`, times), `view`, `replay`.

Bags become a table of messages (topic, stamp, hash), pictures their hash; times of the computer become `#`.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import hashlib
import io
import json
import math
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

MACHINES = {'patu655_lift': (50, 'lift_hold_lower'), 'lut_simple_crane': (50, 'boom'), 'patu655': (60, 'random'),
            'patu655_measured': (50, 'lift_hold_lower'), 'zx200': (800, 'dig'), 'zx200_can': (500, 'boom')}
MECHANISMS = ('four_bar', 'five_bar', 'slider_crank', 'spatial_four_bar')
QUICK = ('patu655_lift', 'four_bar')
DRIVEN = 'four_bar_adams_driven'
FEW = ('errorEKF_FE', 'UKF', 'DEKF')          # filters of a mechanism that is not the first, and of --quick
FILTERS = (*FEW, 'ADEKF', 'errorEKF', 'errorEKF_EJ', 'AerrorEKF_FE', 'errorEKF_FE_SH', 'SCKF', 'DIEKFpm', 'direct_EJ',
           'direct_FE', 'kinematic', 'CEKF', 'CEKF_published', 'CEKF_penalty', 'SSUKF', 'UKF_acceleration',
           'SSUKF_acceleration', 'joint', 'dual')
SUMS = 'SHA256SUMS'
TREE = str(Path(__file__).resolve().parents[1])
TEXT = {'.txt', '.csv', '.yaml', '.c', '.h', '.svg', '.xml', '.md', ''}
# keys of JSON, and what stands in text, that say how long this computer took, or how much of it was taken
TIMES = re.compile(r'(^|_)(us|cpu|wall|elapsed|memory|real_time|processor|peak)(_|$)|took|^seconds$')
CLOCK = re.compile(r'\d+\.\d+ s \(\d+\.\d+ % of real time\)|\d+(\.\d+)?(e[-+]?\d+)?(?= (us|ms|MB|GB)\b)'
                   r'|(?<=\bin )\d+(\.\d+)?(?= (s|ms|us)\b)')
BY_PLACE = re.compile(r'-[0-9a-f]{12}(?=\.)')        # in the name of a fleet's file: hash of where its bag is
OF_FILES = {'size', 'checksum', 'table'}            # of a fleet's summary: they depend on times of files
Step = tuple[str, list[str]]        # name, words of the command


def machine_steps(name: str, quick: bool) -> list[Step]:
    """Commands of a machine, each with a name for its output."""
    payload, cycle = MACHINES[name]
    of = ['--machine', name]
    steps: list[Step] = [
        ('check', ['check', name, '-o', 'start.png']),
        ('simulate', ['simulate', name, '-o', 'bag', '--payload', str(payload), '--cycle', cycle, '--seed', '3']),
        ('joint', ['estimate', 'bag', *of, '--json', 'joint.json', '--full', '-o', 'joint', '--report', 'report']),
        ('apart', ['estimate', 'bag', *of, '--json', 'apart.json', '--full', '-o', 'apart',
                   '--set', 'observer.weighing=apart']),
        ('unknown', ['estimate', 'bag', *of, '--json', 'unknown.json', '--valve', 'unknown', '--every', '0.1']),
        ('vm', ['estimate', 'bag', *of, '--json', 'vm.json', '--every', '0.1', '--backend', 'vm']),
        ('refused', ['estimate', 'bag', *of, '--set', 'observer.no_such=1']),
        ('loads', ['loads', 'bag', *of, '--json', 'loads.json', '-o', 'loads.csv', '--report', 'loads_report']),
        ('check_data', ['check-data', 'bag', *of, '--json', 'check_data.json']),
        ('topics', ['topics', 'bag', *of, '-o', 'map.yaml']),
        ('calibrate', ['calibrate', 'bag', *of, '--json', 'calibrate.json', '--payload', f'bag={payload}+-1']),
        ('plan', ['calibrate', '--plan', name]),
        ('export_estimator', ['export-c', name, '--estimator', '-o', 'export', '--set', 'observer.weighing=apart'])]
    if not quick:
        steps += [
            ('simulate_sqlite', ['simulate', name, '-o', 'sqlite', '--storage', 'sqlite3', '--rate', '50']),
            ('fleet', ['fleet', 'bag', 'sqlite', *of, '-o', 'tables.csv', '--jobs', '1']),
            ('smooth', ['smooth', 'sqlite', *of, '--json', 'smooth.json', '-o', 'smooth']),
            ('smooth_lag', ['smooth', 'sqlite', *of, '--lag', '0.5', '--json', 'smooth_lag.json'])]
    return steps


def mechanism_steps(name: str, quick: bool) -> list[Step]:
    """The same of a mechanism; its bag is written by the Python API."""
    of, sensors = ['--mechanism', name], ','.join(sensors_of(name))
    filters = FILTERS if name == MECHANISMS[0] and not quick else FEW
    steps: list[Step] = [
        ('check', ['check', name, '-o', 'start.png']),
        ('check_relative', ['check', name, '--coordinates', 'relative']),
        *((f'estimate_{filter_}', ['estimate', 'bag', *of, '--estimator', filter_, '--json', f'{filter_}.json',
                                   '--full']) for filter_ in filters),
        ('estimate_bag', ['estimate', 'bag', *of, '-o', 'estimates', '--step', '0.01']),
        ('smooth', ['smooth', 'bag', *of, '--json', 'smooth.json', '-o', 'smooth', '--step', '0.02']),
        ('smooth_lag', ['smooth', 'bag', *of, '--lag', '0.1', '--json', 'smooth_lag.json', '--step', '0.02']),
        *((f'simulate_{scheme}', ['simulate', name, '-o', scheme, '--scheme', scheme, '--duration', '0.3', '--json',
                                  f'{scheme}.json', '--no-pictures'])
          for scheme in ('exponential', 'forward_euler', 'augmented_euler', 'trapezoid', 'rk4', 'ali3p', 'dop853')),
        ('runs', ['simulate', name, '-o', 'runs', '--runs', '4', '--duration', '0.2', '--jobs', '1', '--states',
                  '--vary', ('theta1' if name == 'five_bar' else 'theta') + '=1 deg']),
        ('graph', ['graph', name, '-o', 'graph.svg']),
        ('observability', ['observability', name, '--sensors', sensors, '--json', 'observability.json',
                           '--duration', '0.5']),
        ('export', ['export-c', name, '-o', 'export'])]
    if name == MECHANISMS[0]:
        steps += [('inverse', ['inverse', DRIVEN, '-o', 'inverse', '--json', 'inverse.json', '--duration', '1']),
                  ('graph_inverse', ['graph', name, '--kind', 'inverse', '-o', 'graph_inverse.svg']),
                  ('tune', ['tune', name, '--estimator', 'errorEKF_FE', '--sensors', sensors.split(',')[0],
                            '--duration', '2', '--skip', '0.5', '--json', 'tune.json'])]
    return steps


def sensors_of(name: str) -> list[str]:
    """Sensors of a mechanism."""
    import mbse_ros as mbse
    return list(mbse.load(name).description.mechanical_sensors)     # type: ignore[union-attr]


def api(folder: Path, quick: bool) -> None:
    """What the names of the Python API give, as JSON."""
    import mbse_ros as mbse
    motion, crane = mbse.simulate('four_bar', 0.5, seed=2), mbse.simulate('patu655_lift', 6.0, payload=80.0, seed=2)
    calls: dict[str, Callable[[], Any]] = {
        'motion': lambda: motion, 'samples': lambda: motion.samples, 'crane': lambda: crane.samples,
        'batch': lambda: mbse.simulate_batch('four_bar', 0.1, starts={'theta': [0.5, 0.6, 0.7]}),
        'filter': lambda: mbse.estimate(motion.samples, 'four_bar'),
        'inverse': lambda: mbse.inverse_dynamics(DRIVEN, np.linspace(0.0, 0.2, 5)),
        'observability': lambda: mbse.observability('four_bar', ['encoder'], duration=1.0),
        **{weighing: partial(mbse.estimate, crane.samples, 'patu655_lift', tuning={'observer.weighing': weighing})
           for weighing in ('joint', 'apart')}}
    if not quick:
        calls['smooth'] = lambda: mbse.smooth(motion.samples, 'four_bar')
    found = {}
    for name, work in calls.items():
        try:
            found[name] = members(work())
        except Exception as error:
            found[name] = {'failed': f'{type(error).__name__}: {error}'}
    (folder / 'api.json').write_text(json.dumps(found, default=plain))


def members(result: Any) -> dict[str, Any]:
    """Public numbers of a result, arrays as lists; what fails says so."""
    found = {}
    for key in dir(result):
        if not key.startswith('_'):
            try:
                value = getattr(result, key)
            except Exception as error:
                value = f'{type(error).__name__}: {error}'
            if isinstance(value, (bool, int, float, str, list, tuple, dict, np.ndarray)):
                found[key] = value
    return found


def plain(value: Any) -> Any:
    """For JSON."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    if dataclasses.is_dataclass(value):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    return value.item() if isinstance(value, np.generic) else 'an object'


def live(folder: Path, _: bool) -> None:
    """The demo through ROS 2; its messages depend on the scheduler, so only status and headings are kept."""
    status, said = call(['demo', '-o', 'demo', '--duration', '6'])
    (folder / 'demo.txt').write_text(f'status {status}\n' + re.sub(r'\d+(\.\d+)?', '#', said))
    shutil.rmtree('demo', ignore_errors=True)


SPECIAL = {'api': api, 'live': live}


def call(words: list[str]) -> tuple[int, str]:
    """A command in this process: its status and all that it printed, a traceback's last line included."""
    from mbse_ros.cli.app import main as command
    said, status, argv = io.StringIO(), 0, sys.argv
    sys.argv = ['mbse', *words]
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        try:
            command()
        except SystemExit as end:
            status = int(end.code or 0)
        except Exception as error:
            status = -1
            print(f'{type(error).__name__}: {error}')
        finally:
            sys.argv = argv
    return status, said.getvalue()


def run_case(item: tuple[str, str, bool]) -> str:
    """One case into its folder of the recording."""
    name, output, quick = item
    target = Path(output) / name
    target.mkdir(parents=True)
    with TemporaryDirectory(prefix='recorded_') as place, working_in(place):
        here = Path(place)
        if name in SPECIAL:
            SPECIAL[name](here, quick)
        else:
            if name in MECHANISMS:
                import mbse_ros as mbse
                mbse.write_bag('bag', mbse.simulate(name, 1.0, seed=3))
            for step, words in machine_steps(name, quick) if name in MACHINES else mechanism_steps(name, quick):
                status, said = call(words)
                (here / f'{step}.said.txt').write_text(f'$ mbse {" ".join(words)}\nstatus {status}\n{said}')
        for path in sorted(here.rglob('*')):
            if path.is_file():
                keep(path, target, path.relative_to(here))
            elif (path / 'metadata.yaml').is_file():
                keep_bag(path, target / f'{path.relative_to(here)}.bag.csv')
    return name


@contextlib.contextmanager
def working_in(place: str) -> Iterator[None]:
    """There meanwhile: names of files in outputs are short and always the same."""
    before = Path.cwd()
    os.chdir(place)
    try:
        yield
    finally:
        os.chdir(before)


def keep(path: Path, target: Path, name: Path) -> None:
    """A file in a form that is the same in the next run; of a bag nothing, ``keep_bag`` has its messages."""
    if (path.parent / 'metadata.yaml').is_file():
        return
    here = target / BY_PLACE.sub('-#', str(name))
    here.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == '.json':
        here.write_text(json.dumps(without_times(json.loads(path.read_text())), indent=1))
    elif path.suffix in TEXT:
        here.write_text(plain_text(path.read_text()))
    elif path.suffix == '.npz':
        with np.load(path) as arrays:
            here.with_suffix('.npz.json').write_text(json.dumps({key: arrays[key].tolist() for key in arrays.files}))
    elif path.suffix == '.html':
        here.with_suffix('.html.sha256').write_text(digest(plain_text(path.read_text()).encode()) + '\n')
    else:
        here.with_suffix(f'{path.suffix}.sha256').write_text(digest(path.read_bytes()) + '\n')


def keep_bag(folder: Path, target: Path) -> None:
    """The messages of a bag: topic, stamp, hash of the bytes."""
    from rosbags.rosbag2 import Reader
    target.parent.mkdir(parents=True, exist_ok=True)
    with Reader(folder) as reader, target.open('w') as file:
        for connection, stamp, data in reader.messages():
            file.write(f'{connection.topic},{connection.msgtype},{stamp},{digest(bytes(data))[:16]}\n')


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def without_times(value: Any, key: str = '') -> Any:
    """The same with # for what depends on the computer."""
    if isinstance(value, dict):
        hidden = OF_FILES if OF_FILES <= set(value) else ()
        return {name: '#' if name in hidden else without_times(item, name) for name, item in value.items()}
    if isinstance(value, list):
        return [without_times(item, key) for item in value]
    if TIMES.search(key) and isinstance(value, (int, float)):
        return '#'
    return plain_text(value) if isinstance(value, str) else value


def plain_text(text: str) -> str:
    """Without times of the computer, and without the places of this source tree and of the outputs."""
    return CLOCK.sub('#', text.replace(TREE, 'TREE').replace(str(Path.cwd()), 'HERE'))


def write_sums(folder: Path) -> None:
    """The list of SHA-256, as sha256sum reads it."""
    files = sorted(path for path in folder.rglob('*') if path.is_file() and path.name != SUMS)
    (folder / SUMS).write_text(''.join(f'{digest(path.read_bytes())}  {path.relative_to(folder)}\n' for path in files))


def differences(before: Path, after: Path) -> list[str]:
    """One line a file that differs: name, field, first difference."""
    names = [{str(path.relative_to(folder)) for path in folder.rglob('*') if path.is_file()} - {SUMS}
             for folder in (before, after)]
    cases = {path.name for path in after.iterdir() if path.is_dir()}
    found = [f'{name}: {"only before" if name in names[0] else "only after"}'
             for name in sorted(names[0] ^ names[1]) if name.split('/')[0] in cases]
    for name in sorted(names[0] & names[1]):
        one, other = (folder / name for folder in (before, after))
        if one.read_bytes() != other.read_bytes():
            found.append(f'{name}: {first_difference(one, other)}')
    return found


def first_difference(before: Path, after: Path) -> str:
    """Where two files first differ, and in how many fields or lines."""
    if before.suffix == '.json':
        fields = list(differing(*(json.loads(path.read_text()) for path in (before, after)), ''))
        return f'{fields[0]} ({len(fields)} fields)' if fields else 'the order of the keys'
    lines = [path.read_text().splitlines() for path in (before, after)]
    many = [k for k, (one, other) in enumerate(zip(*lines)) if one != other]
    if not many:
        return f'{len(lines[0])} lines before, {len(lines[1])} after'
    return f'line {many[0] + 1}: {lines[0][many[0]]!r} -> {lines[1][many[0]]!r} ({len(many)} lines)'


def differing(one: Any, other: Any, where: str) -> Iterator[str]:
    """Fields that differ, with both values."""
    if isinstance(one, dict) and isinstance(other, dict):
        for key in [*one, *(key for key in other if key not in one)]:
            if key not in one or key not in other:
                yield f'{where}.{key}: only {"before" if key in one else "after"}'
            else:
                yield from differing(one[key], other[key], f'{where}.{key}')
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for k, pair in enumerate(zip(one, other)):
            yield from differing(*pair, f'{where}[{k}]')
    elif one != other and not all(isinstance(value, float) and math.isnan(value) for value in (one, other)):
        yield f'{where}: {str(one)[:60]} -> {str(other)[:60]}'


def main() -> int:
    """The command line; 1 where outputs differ."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('folder', type=Path, help='new folder for the outputs; with --compare, an earlier one')
    parser.add_argument('--against', type=Path, help='compare with this folder afterwards')
    parser.add_argument('--compare', type=Path, metavar='RECORDED', help='run nothing, compare two folders')
    parser.add_argument('--quick', action='store_true', help='a crane and a four-bar, under a minute')
    parser.add_argument('--live', action='store_true', help='the nodes too')
    parser.add_argument('--only', metavar='CASE', action='append', help='this case alone; repeat it')
    parser.add_argument('--jobs', type=int, default=2, help='processes; the outputs do not depend on it [2]')
    given = parser.parse_args()
    if not given.compare:
        from mbse_ros.studies.many import many
        given.folder.mkdir(parents=True)
        os.environ.update(COLUMNS='120', NO_COLOR='1')
        cases = given.only or [*(QUICK if given.quick else (*reversed(MACHINES), *MECHANISMS)), 'api',
                               *['live'] * given.live]
        many(run_case, [(name, str(given.folder.resolve()), given.quick) for name in cases], given.jobs)
        write_sums(given.folder)
    recorded = given.compare or given.against
    if not recorded:
        return 0
    found = differences(recorded, given.folder)
    print(*found, f'{len(found)} of {len(list(given.folder.rglob("*")))} outputs differ', sep='\n')
    return 1 if found else 0


if __name__ == '__main__':
    raise SystemExit(main())
