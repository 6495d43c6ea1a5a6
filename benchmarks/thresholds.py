# SPDX-License-Identifier: Apache-2.0
"""Which numbers that decide do tests hold? Each is doubled and halved, one at a time, and its module's tests must fail.

    tools/environment.sh python benchmarks/thresholds.py --json out/thresholds.json
    tools/environment.sh python benchmarks/thresholds.py monitor/bounds monitor/mass.FAR --json out/thresholds.json

A number is a constant in capitals at the top of a module of ``TESTS``. The tests run in a copy of the source tree, so
the tree itself may change meanwhile. ``--json`` keeps what was found: such a change is not tried again while its line
stays the same, unless it survived and ``--survivors`` is given.
"""

from __future__ import annotations

import argparse
import ast
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FACTORS = 2.0, 0.5
LONGEST = 300.0         # s of the tests of one change: what takes longer counts as found
# Modules and the test files that should hold their numbers, the quickest first.
TESTS = {
    'monitor/steps': 'monitor_channels monitor_step_check monitor_pressure_steps streams_machine_recovery',
    'monitor/units': 'monitor_unit_check', 'streams/machine_monitor': 'streams_machine_recovery streams_stages',
    'monitor/clocks': 'monitor_ages offline_time_rules monitor_clocks monitor_elapsed monitor_gaps',
    'monitor/rates': 'streams_rates', 'streams/records': 'streams_rates', 'streams/mass_monitor': 'streams_stages',
    'monitor/mass': 'monitor_mass monitor_trust',
    'streams/regular': 'streams_regular',
    'streams/channel_buffer': 'streams_interpolation streams_late',
    'streams/segment_grid': 'streams_interpolation streams_order',
    'monitor/bounds': 'monitor_channels monitor_range_check streams_linkage_recovery',
    'monitor/channels': ('monitor_channels streams_linkage_recovery streams_machine_recovery '
                                'streams_linkage'),
    'monitor/mechanism': 'streams_linkage_recovery streams_linkage',
    'streams/history': 'streams_linkage', 'streams/linkage': 'streams_linkage',
    'streams/active_filter': 'streams_linkage', 'streams/start': 'streams_linkage streams_linkage_recovery',
    'streams/lagged': 'streams_linkage_lagged',
    'monitor/exchanged': 'monitor_exchanged', 'payload/gates': 'payload_gates',
    'payload/joint': 'payload_estimator filters_weighing',
    'filters/mass_information': 'filters_weighing streams_rates',
    'payload/steps': 'payload_steps',
    'payload/common_errors': 'payload_common_errors', 'payload/mass': 'monitor_mass',
    'scale/detection': 'scale_detection monitor_elapsed', 'scale/load': 'scale_detection',
    **{f'offline/checks/{name}': 'offline_sensor_rules offline_plausibility' for name in (
        'force_fit', 'pressure_rules', 'sensor_rules', 'value_rules')},
    'offline/log_samples': 'offline_sensor_rules offline_plausibility',
    'offline/checks/plausibility': 'offline_findings offline_plausibility',
    'offline/checks/command_rules': 'offline_command_rules offline_plausibility',
    'offline/checks/log_verdict': 'offline_findings cli_parts', 'offline/checks/check_bag': 'cli_check_data',
    'offline/checks/remedies': 'offline_remedies offline_plausibility',
    'offline/checks/offset_rules': 'offline_time_rules',
    'offline/checks/time_rules': 'offline_stamps offline_time_rules'}


def numbers(text: str) -> Iterator[tuple[str, ast.expr]]:
    """Names in capitals of a module's text, and the expressions of their numbers; of tuples each by its place."""
    for node in ast.parse(text).body:
        if not isinstance(node, ast.Assign | ast.AnnAssign) or node.value is None:
            continue
        target = node.targets[0] if isinstance(node, ast.Assign) else node.target
        values = node.value.elts if isinstance(node.value, ast.Tuple) else [node.value]
        names = ([item.id for item in target.elts if isinstance(item, ast.Name)] if isinstance(target, ast.Tuple) else
                 [getattr(target, 'id', '')] if len(values) == 1 else
                 [f'{getattr(target, "id", "")}[{k}]' for k in range(len(values))])
        for name, value in zip(names, values):
            if name.partition('[')[0].isupper() and _is_number(value):
                yield name, value


def _is_number(node: ast.expr) -> bool:
    if not isinstance(node, ast.Constant | ast.UnaryOp | ast.BinOp):
        return False
    constants = [item.value for item in ast.walk(node) if isinstance(item, ast.Constant)]
    return bool(constants) and all(type(item) in (int, float) for item in constants)


def moved(text: str, node: ast.expr, factor: float) -> str:
    """A module's text with one expression changed by a factor; whole numbers stay whole."""
    lines = text.splitlines(keepends=True)
    start = sum(map(len, lines[:node.lineno - 1])) + len(lines[node.lineno - 1].encode()[:node.col_offset].decode())
    source = ast.get_source_segment(text, node) or ''
    return f'{text[:start]}(lambda v: type(v)(v * {factor}))({source}){text[start + len(source):]}'


def tested(tree: Path, files: list[str]) -> tuple[str, float]:
    """``killed`` by which test, ``survived``, or ``killed: too slow``; s that it took."""
    began = time.monotonic()
    command = [sys.executable, '-m', 'pytest', '-x', '-q', '-p', 'no:cacheprovider', '--no-header', '--tb=no', *files]
    try:
        done = subprocess.run(command, cwd=tree, capture_output=True, text=True, timeout=LONGEST, check=False)
    except subprocess.TimeoutExpired:
        return 'killed: too slow', LONGEST
    took = round(time.monotonic() - began, 1)
    if done.returncode == 0:
        return 'survived', took
    failed = next((line for line in done.stdout.splitlines() if line.startswith(('FAILED', 'ERROR'))), 'no test ran')
    return f'killed: {failed.partition(" ")[2].partition(" - ")[0]}', took


def copy_of_tree(folder: str) -> Path:
    """The source tree in a folder, without what builds and runs leave behind."""
    return Path(shutil.copytree(ROOT, Path(folder) / 'tree', symlinks=True, ignore=shutil.ignore_patterns(
        '.git', '.env', 'out', 'build', 'install', 'log', '__pycache__', '.*_cache')))


def run(only: list[str], path: Path | None, survivors: bool) -> dict[str, str]:
    """What became of each change, by ``module.NAME x factor | the line``."""
    found: dict[str, str] = json.loads(path.read_text()) if path and path.exists() else {}
    with tempfile.TemporaryDirectory() as folder:
        tree = copy_of_tree(folder)
        for module, tests in TESTS.items():
            source = tree / f'mbse_ros/{module}.py'
            text = source.read_text()
            files = [str(file.relative_to(tree)) for name in tests.split()
                     for file in tree.glob(f'test/*/test_{name}.py')]
            chosen = [item for item in numbers(text) if not only or module in only or f'{module}.{item[0]}' in only]
            keys = {f'{module}.{name} x {factor:g} | {ast.unparse(node)}': (node, factor)
                    for name, node in chosen for factor in FACTORS}
            keys = {key: change for key, change in keys.items() if key not in found or
                    survivors and found[key] == 'survived'}
            if keys and (sound := tested(tree, files))[0] != 'survived':
                print(f'{module}: its tests fail as it is: {sound[0]}', flush=True)
                continue
            for key, (node, factor) in keys.items():
                source.write_text(moved(text, node, factor))
                found[key], took = tested(tree, files)
                print(f'{took:6.1f} s  {key}: {found[key]}', flush=True)
                if path:
                    path.parent.mkdir(parents=True, exist_ok=True)
                    path.write_text(json.dumps(found, indent=1))
            source.write_text(text)
    return found


if __name__ == '__main__':
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('only', nargs='*', help='modules, as monitor/bounds, or numbers, as monitor/bounds.NOISE')
    parser.add_argument('--json', type=Path, help='file that keeps what was found')
    parser.add_argument('--survivors', action='store_true', help='try again what survived')
    arguments = parser.parse_args()
    results = run(arguments.only, arguments.json, arguments.survivors)
    print('\n'.join(key for key, state in sorted(results.items()) if state == 'survived'))
    print(dict(Counter(state.partition(':')[0] for state in results.values())))
