# SPDX-License-Identifier: Apache-2.0
"""Words of pages, docstrings and messages: none of the worst that CONTRIBUTING.md says to avoid."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from source_tree import ROOT

ROOMS = 'calibration', 'cli', 'doctor', 'filters', 'machine', 'offline', 'payload', 'scale', 'sources'
PAGES = [*ROOT.glob('*.md'), *(ROOT / 'docs').rglob('*.md'), ROOT / 'examples' / 'README.md']
MODULES = [path for room in ROOMS for path in (ROOT / 'mbse_ros' / room).rglob('*.py')]
AVOIDED = re.compile(
    r'\b(?:told (?:apart|from|by)|anew|of late|at hand|whence|thrice|nobody|whoever|for want of|next to nothing'
    r'|but for|mend(?:s|ed)?|says? nothing of'
    r'|(?<!there )is no (?:file|time|unit|sample|mass|order|screen|number|load|measurement|entry))\b', re.IGNORECASE)

# Parts of names that say nothing to a colleague of the field, and what stands for them; rooms where they are still.
INVENTED = {'feeder': 'publisher', 'ghost': 'measured', 'judge': 'classify, assess', 'judged': 'status_of',
            'judgement': 'assessment', 'parcel': 'message', 'quarantine': 'guard interval', 'sight': 'observability',
            'spare': 'standby', 'tells': 'identifiability', 'thrown': 'fuzzed',
            'whereabouts': 'location', 'workshop': 'cache'}
REWRITTEN = re.compile(r'(?:monitor|offline|payload|scale)/|streams/[^/]*$')


def prose(text: str) -> str:
    """A page without its code and without the table of words to avoid."""
    text = re.sub(r'^( *)(```+).*?^ *\2`*$', '', text, flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r'^\| not \| but \|\n(?:\|.*\n)+', '', text, flags=re.MULTILINE)
    return re.sub(r'`[^`\n]*`', 'code', text)


def texts(source: str) -> Iterator[str]:
    """Docstrings and messages of a module: its strings of several words."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and ' ' in node.value:
            yield ' '.join(prose(node.value).split())


def invented(name: str, source: str) -> list[str]:
    """Names of a module, its classes and its functions that have such a word, in one number."""
    names = [name, *(node.name for node in ast.walk(ast.parse(source))
                     if isinstance(node, ast.ClassDef | ast.FunctionDef))]
    words = {item: re.findall(r'[A-Z]?[a-z]+', item) for item in names}
    return [item for item, parts in words.items()
            if any(word in INVENTED for part in parts for word in (part.lower(), part.lower().removesuffix('s')))]


def avoided(text: str) -> list[str]:
    """What is found, each with the words around it."""
    return [' '.join(text[max(0, found.start() - 30):found.end() + 30].split()) for found in AVOIDED.finditer(text)]


@pytest.mark.parametrize('page', PAGES, ids=lambda page: page.name)
def test_pages(page: Path) -> None:
    assert avoided(prose(page.read_text())) == []


def test_docstrings_and_messages() -> None:
    found = {str(path.relative_to(ROOT)): words for path in MODULES
             if (words := [word for text in texts(path.read_text()) for word in avoided(text)])}
    assert len(MODULES) > 150 and found == {}


def test_names() -> None:
    room = ROOT / 'mbse_ros'
    found = {name: names for path in room.rglob('*.py') if not REWRITTEN.match(name := str(path.relative_to(room)))
             and (names := invented(path.stem, path.read_text()))}
    assert found == {}
    assert invented('sight', 'class CellJudge: pass\ndef _parcels(): pass\ndef prejudged(): pass') == [
        'sight', 'CellJudge', '_parcels']


@pytest.mark.parametrize('text', [
    'Two errors are told apart.', 'It begins anew.', 'But for friction', 'Nobody knows', 'the path is no file',
    'by what mends it'])
def test_such_a_word_would_be_found(text: str) -> None:
    assert avoided(prose(text)) and avoided(next(texts(f'"""{text}"""')))


@pytest.mark.parametrize('text', ['there is no file', 'a code `mend` of JSON', 'all but four', '```\nanew\n```\n'])
def test_what_is_right_is_left(text: str) -> None:
    assert avoided(prose(text)) == []


def test_no_page_holds_a_conflict_of_a_merge():
    """Both versions of a paragraph, between their marks, were shown to readers."""
    marks = re.compile(r'^(?:<{7}|>{7}|\|{7}) ', re.MULTILINE)
    assert marks.search('a\n<<<<<<< HEAD\nb') and len(PAGES) > 20
    assert [path.name for path in [*PAGES, ROOT / 'CHANGELOG.rst'] if marks.search(path.read_text())] == []
