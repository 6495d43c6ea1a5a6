# SPDX-License-Identifier: Apache-2.0
"""Commands that the pages show: each ``mbse`` command and option exists, each ``make`` target, each file of ours."""

import re
import shlex
from pathlib import Path

import pytest
import typer
from source_tree import ROOT

from mbse_ros.cli.app import command_line

COMMAND = typer.main.get_command(command_line())
PAGES = [ROOT / 'README.md', ROOT / 'CONTRIBUTING.md', ROOT / 'SECURITY.md', *sorted((ROOT / 'docs').rglob('*.md'))]
TARGETS = set(re.findall(r'^([a-z]+):', (ROOT / 'Makefile').read_text(), re.MULTILINE))


def lines(page: Path) -> list[str]:
    """Lines of a page's blocks of shell commands, long ones joined, without comments; and what is code in its text."""
    inside, found = None, []
    for line in page.read_text().splitlines():
        if line.startswith('```'):
            inside = line.removeprefix('```') if inside is None else None
        elif inside in ('', 'sh', 'bash'):
            found.append(line)
    joined = re.sub(r'\\\n\s*', ' ', '\n'.join(found))
    text = re.findall(r'`((?:\./)?mbse [^`\n]+)`', page.read_text())
    return [*(re.sub(r'\s+#\s.*', '', line).strip() for line in joined.splitlines()), *text]


def wrong(line: str) -> list[str]:
    """What a line names that does not exist."""
    found = []
    for part in re.split(r'\s*(?:&&|;|\|)\s*', line):
        part = re.sub(r'^(?:[A-Z_]+=\S*\s+)+', '', part)
        words = shlex.split(part.partition(' > ')[0]) if re.match(r'(\./)?(mbse|make|python)\s', part) else []
        if words[:1] == ['make']:
            found += [word for word in words[1:] if '=' not in word and word not in TARGETS]
        elif words[:1] == ['python'] and words[1:] and words[1].endswith('.py') and '/' in words[1]:
            found += [] if (ROOT / words[1]).is_file() else [words[1]]
        elif words[:1] in (['./mbse'], ['mbse']):
            found += unknown(words[1:])
    return found


def unknown(words: list[str]) -> list[str]:
    """Commands and options of a call of mbse that it does not have."""
    command, words = COMMAND, list(words)
    while hasattr(command, 'commands') and words and not words[0].startswith('-'):
        if words[0] not in command.commands:
            return [] if words[0] == 'COMMAND' else words[:1]
        command = command.commands[words.pop(0)]
    known = {name for item in command.params for name in (*item.opts, *item.secondary_opts)} | {'--help'}
    return [word for word in words if re.match(r'--?[a-z]', word) and word.partition('=')[0] not in known]


@pytest.mark.parametrize('page', PAGES, ids=lambda page: page.name)
def test_commands_of_a_page_exist(page):
    assert [(line, found) for line in lines(page) if (found := wrong(line))] == []


def test_many_commands_are_looked_at():
    assert sum(line.startswith(('./mbse ', 'mbse ')) for page in PAGES for line in lines(page)) > 80


@pytest.mark.parametrize(('line', 'found'), [
    ('./mbse simulate zx200 --payload 1200 -o out/boom', []), ('./mbse simulat zx200', ['simulat']),
    ('mbse estimate BAG --machin zx200', ['--machin']), ('./mbse benchmark energy -o out', []),
    ('./mbse benchmark energi', ['energi']), ('make docs && make dcos', ['dcos']),
    ('ROS=kilted ./mbse demo --offlin', ['--offlin']), ('python benchmarks/no.py --runs 3', ['benchmarks/no.py'])])
def test_what_does_not_exist_is_found(line, found):
    assert wrong(line) == found
