# SPDX-License-Identifier: Apache-2.0
"""CHANGELOG.rst has the form of a ROS package's (REP-132), and a section for what is under way or released."""

import re

import pytest
from source_tree import ROOT

import mbse_ros

TEXT = (ROOT / 'CHANGELOG.rst').read_text()
LONGEST = 200       # characters of an entry: what changes for a user, the page of docs/ says the rest
SECTION = re.compile(r'^(Forthcoming|\d+\.\d+\.\d+ \(\d{4}-\d{2}-\d{2}\))\n(-+)$', re.MULTILINE)


def sections(text):
    """Heading -> its lines, the newest first."""
    parts = SECTION.split(text)
    return {parts[i]: [line for line in parts[i + 2].splitlines() if line] for i in range(1, len(parts), 3)}


def problems(text, version):
    """What is wrong with a changelog of a package of this version."""
    found = []
    if not re.match(r'(\^+)\nChangelog for package mbse_ros\n\1\n', text):
        found.append('title')
    for heading, line in SECTION.findall(text):
        if len(line) < len(heading):
            found.append(f'underline of {heading}')
    for heading, lines in sections(text).items():
        if not lines or not lines[0].startswith('* '):
            found.append(f'{heading} has no entries')
        found += [f'{heading}: {line}' for line in lines if not line.startswith(('* ', '  '))]
        entries = [line for line in lines if line.startswith('* ')]
        whole = re.split(r'\n(?=\* )', '\n'.join(lines))
        found += [f'{heading}: longer than {LONGEST}: {entry[:40]}' for entry in whole if len(entry) > LONGEST]
        found += [f'{heading}: twice: {entry}' for entry in set(entries) if entries.count(entry) > 1]
    headings = list(sections(text))
    numbers = [tuple(map(int, heading.split()[0].split('.'))) for heading in headings if heading != 'Forthcoming']
    if numbers != sorted(numbers, reverse=True) or 'Forthcoming' in headings[1:]:
        found.append('order of the sections')
    if 'Forthcoming' not in headings[:1] and (not numbers or '.'.join(map(str, numbers[0])) != version):
        found.append(f'no section for {version}, nor Forthcoming')
    return found


def test_the_changelog_is_sound():
    assert problems(TEXT, mbse_ros.__version__) == []


HEAD = '^^^\nChangelog for package mbse_ros\n^^^\n\n'


@pytest.mark.parametrize(('text', 'found'), [
    (HEAD + '0.2.0 (2026-12-01)\n------------------\n* a\n  on\n\n0.1.0 (2026-01-01)\n------------------\n* b\n', []),
    (HEAD + '0.1.0 (2026-01-01)\n------------------\n* b\n', ['no section for 0.2.0, nor Forthcoming']),
    (HEAD + 'Forthcoming\n-----------\n* a\nb\n* a\n', ['Forthcoming: b', 'Forthcoming: twice: * a']),
    (HEAD + 'Forthcoming\n---\n', ['underline of Forthcoming', 'Forthcoming has no entries']),
    (HEAD + 'Forthcoming\n-----------\n* ' + 99 * 'a ' + '\n  b\n* c\n', [
        'Forthcoming: longer than 200: * ' + 19 * 'a ']),
    ('Forthcoming\n-----------\n* a\n', ['title']),
    (HEAD + '0.1.0 (2026-01-01)\n------------------\n* b\n\n0.2.0 (2026-12-01)\n------------------\n* a\n',
     ['order of the sections', 'no section for 0.2.0, nor Forthcoming'])])
def test_what_is_wrong_with_a_changelog_is_found(text, found):
    assert problems(text, '0.2.0') == found
