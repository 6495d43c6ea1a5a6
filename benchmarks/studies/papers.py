# SPDX-License-Identifier: Apache-2.0
"""``mbse benchmark papers``: each row of the pages of the papers and of the pipeline (docs/papers.md), with what shows
it: tests and measurements of ``papers.yaml``. A row has the status of its page only if all of them ran and none
failed."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache
from importlib.util import find_spec
from math import isfinite
from pathlib import Path
from typing import Any

import typer
import yaml
from rich.progress import track

from mbse_ros.errors import MbseError, SettingError, check_choice
from mbse_ros.report.files import check_file, write_json
from mbse_ros.report.text import number, print_table, wide_console
from mbse_ros.studies.many import machine_name

from .papers_measured import MEASURED, Figure

ROOT = Path(__file__).resolve().parents[2]
PAGES = ROOT / 'docs' / 'papers'
CHECKS = Path(__file__).with_name('papers.yaml')
SHOWN = ('works', 'better', 'precision', 'departs')             # by a test or a measurement each
NEEDS_ROS = 'test/nodes/test_nodes_'
TOLD = ('not built', 'not reproduced', 'cited only', 'drawings', 'notation')
MEASURE = 'measure:'
_ROW = re.compile(r'^\| (.+) \|$', re.MULTILINE)


@dataclass
class Row:
    """A row of a page. ``claim``: the word with which its status begins, ``status``: the claim where all that should
    show it did, else failed or skipped; ``said``: status with its reason; ``where``: files; ``checks``: names;
    ``command`` that runs them."""

    paper: str
    part: str
    claim: str
    said: str
    where: list[str]
    checks: list[str]
    command: str = ''
    status: str = ''
    tests: list[dict[str, str]] = field(default_factory=list)
    measured: list[dict[str, Any]] = field(default_factory=list)


def run_papers(json_file: Path | None, papers: Sequence[str], part: str) -> None:
    """Run, print, write; exit status 1 where a row failed."""
    check_file(json_file)
    known = tuple(yaml.safe_load(CHECKS.read_text()))
    for name in papers:
        check_choice('paper', name, known)
    rows = [row for name in papers or known for row in rows_of(name) if part.lower() in row.part.lower()]
    if not rows:
        raise SettingError('part', part, 'text in the first cell of a row of a page')
    console, begin = wide_console(), time.perf_counter()
    outcomes = run_tests(sorted({check for row in rows for check in row.checks if not check.startswith(MEASURE)}))
    names = sorted({check for row in rows for check in row.checks if check.startswith(MEASURE)})
    figures = {name: MEASURED[name.removeprefix(MEASURE)]()
               for name in track(names, 'measuring', transient=True, disable=not console.is_terminal)}
    for row in rows:
        judge(row, outcomes, figures)
    seconds = time.perf_counter() - begin
    write_json(json_file, {'machine': machine_name(), 'seconds': seconds, 'rows': [asdict(row) for row in rows]})
    for paper in dict.fromkeys(row.paper for row in rows):
        print_table(console, paper, ('part', 'status', 'shown by, or why not'), [
            (row.part, row.status, shown_by(row) or row.said) for row in rows if row.paper == paper])
    counted = Counter(row.status for row in rows)
    typer.echo(f'{len(rows)} rows in {seconds:.0f} s: '
               + ', '.join(f'{count} {status}' for status, count in counted.most_common()))
    for row in rows:
        for item in row.tests + row.measured:
            if item['outcome'] != 'passed':
                typer.echo(f'{row.paper}: {row.part}: {item["outcome"]}: {item["name"]} {item["text"]}')
    if counted['failed']:
        raise typer.Exit(1)


def rows_of(paper: str) -> list[Row]:
    """Rows of all tables of a page that have a status; raises MbseError for a row without what shows it, for what
    shows no row, and for tests that are not there."""
    wanted: dict[str, str] = yaml.safe_load(CHECKS.read_text())[paper]
    rows, used = [], set()
    for cells in table_rows(page_of(paper).read_text()):
        keys = [key for key in wanted if cells[0].startswith(key)]
        claim = next((word for word in SHOWN + TOLD if cells[1].startswith(word)), '')
        files = re.findall(r'`(test/(?:\w+/)+\w+\.py)`', cells[-1])
        if not claim or len(keys) != (claim in SHOWN):
            raise MbseError(f'{paper}.md, {cells[0]}: status {cells[1]!r} with {len(keys)} entries of {CHECKS.name}; '
                            f'expected one of {", ".join(SHOWN)} with one, or of {", ".join(TOLD)} without')
        checks = [check for key in keys for word in wanted[key].split() for check in found(word, files)]
        used.update(keys)
        where = [name for cell in cells[2:] for name in re.findall(r'`((?:\w+/)+\w+\.\w+)`', cell)]
        rows.append(Row(paper, cells[0], claim, cells[1], [name for name in where if name not in files], checks,
                        f'./mbse benchmark papers --paper {paper} --part {shlex.quote(cells[0])}' if checks else ''))
    if used != set(wanted):
        raise MbseError(f'{CHECKS.name}: {paper}: no row begins with {", ".join(sorted(set(wanted) - used))}')
    return rows


def page_of(paper: str) -> Path:
    """File of a page; ``papers``: the one above those of the papers."""
    return (PAGES if paper != PAGES.name else PAGES.parent) / f'{paper}.md'


def table_rows(page: str) -> list[list[str]]:
    """Cells of all tables whose second column is the status."""
    found_, header = [], False
    for line in page.splitlines():
        match = _ROW.match(line)
        cells = [cell.strip() for cell in match[1].split(' | ')] if match else []
        if not match:
            header = header and set(line) <= set('|- ') and bool(line)
        elif len(cells) > 1 and cells[1] == 'status':
            header = True
        elif header:
            found_.append(cells)
    return found_


def found(word: str, files: Sequence[str]) -> list[str]:
    """A measurement, file, or file::function as it is; a function in those files of the row that have it."""
    if word.startswith(MEASURE):
        check_choice(CHECKS.name, word.removeprefix(MEASURE), MEASURED)
        return [word]
    file, _, function = word.partition('::') if '/' in word else ('', '', word)
    places = [name for name in ([file] if file else files) if not function or function in functions(name)]
    if not places:
        raise MbseError(f'{CHECKS.name}: {word} is not in {file or ", ".join(files) or "a file, which the row names"}')
    return [f'{name}::{function}' if function else name for name in places]


@cache
def functions(file: str) -> frozenset[str]:
    """Names of the tests of a file."""
    return frozenset(re.findall(r'^def (test_\w+)', (ROOT / file).read_text(), re.MULTILINE))


def run_tests(tests: Sequence[str]) -> dict[str, list[dict[str, str]]]:
    """All of them in one process of pytest: by file::function name, outcome and text of each of its cases."""
    cases: dict[str, list[dict[str, str]]] = {}
    if find_spec('rclpy') is None:
        cases = {test: [{'name': test, 'outcome': 'skipped', 'text': 'needs ROS 2: run it by ./mbse'}]
                 for test in tests if test.startswith(NEEDS_ROS)}
    tests = [test for test in tests if test not in cases]
    if not tests:
        return cases
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / 'report.xml'
        done = subprocess.run([sys.executable, '-m', 'pytest', '-q', '-p', 'no:cacheprovider', f'--junitxml={report}',
                               *tests], cwd=ROOT, capture_output=True, text=True, check=False)
        if done.returncode not in (0, 1):       # others than "some failed"
            raise MbseError('pytest: ' + (done.stdout + done.stderr).strip()[-2000:])
        for case in ElementTree.parse(report).iter('testcase'):
            name = case.get('name', '')
            key = f'{case.get("classname", "").replace(".", "/")}.py::{name.partition("[")[0]}'
            bad = next((child for child in case if child.tag in ('failure', 'error', 'skipped')), None)
            outcome = 'passed' if bad is None else 'skipped' if bad.tag == 'skipped' else 'failed'
            cases.setdefault(key, []).append({'name': f'{key.partition("::")[0]}::{name}', 'outcome': outcome,
                                              'text': '' if bad is None else (bad.get('message') or '')[:300]})
    return cases


def judge(row: Row, outcomes: Mapping[str, list[dict[str, str]]], figures: Mapping[str, Sequence[Figure]]) -> None:
    """Fill in what ran, and the status that follows from it."""
    ran = set()
    for check in row.checks:
        shown = [{'name': figure.name, 'outcome': 'passed' if figure.holds else 'failed', 'text': figure.text,
                  **asdict(figure)} for figure in figures.get(check, ())]
        cases = [case for key, found_ in outcomes.items() if key == check or key.startswith(f'{check}::')
                 for case in found_]
        row.measured += shown
        row.tests += cases
        ran |= {item['outcome'] for item in shown + cases} or {'failed'}      # it did not run
    row.status = next((word for word in ('failed', 'skipped') if word in ran), row.claim)


def shown_by(row: Row) -> str:
    """What ran, in words: figures as they are, tests by their number."""
    passed = sum(item['outcome'] == 'passed' for item in row.tests)
    words = [f'{item["name"]} ' + (f'{number(item["ours"])} {item["unit"]}' if isfinite(item['ours']) else 'never')
             for item in row.measured]
    return ', '.join(words + ([f'{passed} of {len(row.tests)} tests'] if row.tests else []))
