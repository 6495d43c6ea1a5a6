# SPDX-License-Identifier: Apache-2.0
"""Links between the pages: files exist, anchors are headings as GitHub names them, and the site reaches every page."""

import re
from functools import cache
from pathlib import Path

import pytest
from source_tree import ROOT, files

DOCS = ROOT / 'docs'
PAGES = sorted([*ROOT.glob('*.md'), *DOCS.rglob('*.md'), ROOT / 'examples' / 'README.md',
                *(ROOT / 'examples' / 'notebooks').glob('*.py')])
LINK = re.compile(r'!?\[(?:[^\[\]]|\[[^\[\]]*\])*\]\(\s*<?([^\s)>]+)>?(?:\s+"[^"]*")?\s*\)')


def prose(text: str) -> str:
    """A page without its code, in which brackets are no links."""
    text = re.sub(r'^( *)(```+|~~~+).*?^ *\2`*$', '', text, flags=re.MULTILINE | re.DOTALL)
    return re.sub(r'`[^`\n]*`', 'code', text)


@cache
def anchors(path: Path) -> frozenset[str]:
    """Anchors of a page's headings, numbered where they repeat, and those that it sets itself."""
    found: dict[str, int] = {}
    text = re.sub(r'^( *)(```+|~~~+).*?^ *\2`*$', '', path.read_text(), flags=re.MULTILINE | re.DOTALL)
    names = []
    for heading in re.findall(r'^#{1,6} +(.*?) *#*$', text, re.MULTILINE):
        slug = slug_of(heading)
        count = found.get(slug, 0)
        found[slug] = count + 1
        names.append(f'{slug}-{count}' if count else slug)
    return frozenset(names) | frozenset(re.findall(r'<a (?:id|name)="([^"]+)"', text))


def slug_of(heading: str) -> str:
    """What GitHub, and Sphinx with myst_heading_anchors, make of a heading."""
    heading = re.sub(r'\[([^\]]*)\]\([^)]*\)', r'\1', heading).replace('`', '')
    return re.sub(r'[^\w\- ]', '', heading.lower()).replace(' ', '-')


def broken(page: Path, text: str) -> list[str]:
    """Relative links of a page that lead nowhere."""
    found = []
    for target in LINK.findall(prose(text)):
        if re.match(r'[a-z]+:', target):
            continue
        name, _, anchor = target.partition('#')
        file = (page.parent / name).resolve() if name else page
        known = file.suffix != '.md' or anchor in anchors(file) if anchor and file.exists() else True
        if not file.exists() or not file.is_relative_to(ROOT) or not known:
            found.append(target)
    return found


@pytest.mark.parametrize('page', PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    assert broken(page, page.read_text()) == []


def test_a_broken_link_would_be_found():
    page = DOCS / 'architecture.md'
    assert broken(page, '[a](nothing.md) [b](#nothing) [c](papers.md#no-such) ![d](images/no.png)') == [
        'nothing.md', '#nothing', 'papers.md#no-such', 'images/no.png']
    assert broken(page, '[a](papers.md) [b](#rooms) [c](https://nothing.invalid) `[d](code)`') == []
    assert slug_of('The `mbse` command: what, and why') == 'the-mbse-command-what-and-why'


def test_the_site_reaches_every_page_once():
    index = (DOCS / 'index.md').read_text()
    entries = [line for block in re.findall(r'```\{toctree\}\n(.*?)```', index, re.DOTALL)
               for line in block.splitlines() if line and not line.startswith(':')]
    reached = [(DOCS / entry).resolve() for entry in entries]
    pages = {page.with_suffix('') for page in PAGES} - {DOCS / 'index'} | {ROOT / 'CHANGELOG'}
    assert len(reached) == len(set(reached)) and set(reached) == pages


def test_files_of_the_pages_of_papers_exist():
    """A file of the code is named from mbse_ros/ on."""
    named = [name for page in (DOCS / 'papers.md', *(DOCS / 'papers').glob('*.md'))
             for name in re.findall(r'`((?:\w+/)+\w+\.(?:py|yaml))`', page.read_text())]
    assert len(named) > 40
    assert [name for name in named if not (ROOT / name).exists() and not (ROOT / 'mbse_ros' / name).exists()] == []


def test_papers_have_names_not_numbers():
    """Whoever reads one line of code, a page, a message or a file of the configuration knows the paper."""
    numbered = re.compile(r'\bpaper 00\d', re.IGNORECASE)
    texts = [path for path in files() if path.suffix in {'.py', '.yaml', '.rst', '.md', '.msg', '.cff', '.html', '.js'}]
    assert len(texts) > 500
    assert [str(path.relative_to(ROOT)) for path in [*texts, *DOCS.rglob('*.md')] if numbered.search(path.read_text())
            ] == []
