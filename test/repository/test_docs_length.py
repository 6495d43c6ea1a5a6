# SPDX-License-Identifier: Apache-2.0
"""The pages stay short, and the README has the numbers of the pages that it names as evidence."""

import re

from source_tree import ROOT

DOCS = ROOT / 'docs'
LIMIT = 53_100      # words, of 121,000 that there were. The aim is 45,000
FIGURES, README = (DOCS / 'figures.md').read_text(), (ROOT / 'README.md').read_text()


def words(text: str) -> int:
    """Words of a page: what stands between blanks and has a letter or a digit, so rules and bars of tables are none."""
    return sum(bool(re.search(r'\w', word)) for word in text.split())


def row(text: str, begin: str) -> list[str]:
    """Cells of the first row of a table that begins so."""
    return [cell.strip() for cell in re.search(rf'^\| {re.escape(begin)} \|(.*)\|$', text, re.MULTILINE)[1].split('|')]


def test_a_bar_is_no_word():
    assert words('| a | 1.5 % |\n|---|---|\n- b – c') == 4


def test_the_pages_are_short():
    counted = {str(page.relative_to(DOCS)): words(page.read_text()) for page in DOCS.rglob('*.md')}
    longest = sorted(counted.items(), key=lambda item: -item[1])[:8]
    print(f'{sum(counted.values())} words of {len(counted)} pages; the longest: {longest}')
    assert len(counted) > 30 and sum(counted.values()) < LIMIT, longest


def test_the_readme_has_the_errors_of_the_figures():
    """Runs, share of intervals that hold and RMS error, kg, of three machines with wrong numbers."""
    rows = [row(FIGURES.partition('## Interval')[2], name) for name in ('patu655_lift', 'patu655', 'zx200')]
    runs, hold, rms = zip(*(cells[:3] for cells in rows))
    assert f'{rms[0]} and {rms[1]} kg (cranes), {rms[2]} kg (20 t excavator)' in README
    low, high = (f'{100 * bound(map(float, hold)):g}' for bound in (min, max))
    assert f'{low} to {high} % of the 95 % intervals hold' in README and f'{sum(map(int, runs))} logs' in README


def test_the_readme_has_the_errors_of_the_page_of_arms():
    draws, error = row((DOCS / 'arm.md').read_text(), 'MuJoCo')[:2]
    mean, largest = error.split(', ')
    assert f'{mean} of full scale in the mean, {largest} at most' in README and f'{draws} arms' in README


def test_the_measured_lift_is_one_number():
    """Wherever a page gives its mass with the interval."""
    pattern = re.compile(r'(209\.\d|210\.\d|211\.\d|212) kg,(?: 95 %)? interval ([\d.]+ to [\d.]+) kg')
    found = {page.name: pattern.findall(page.read_text()) for page in [ROOT / 'README.md', *DOCS.rglob('*.md')]}
    assert {'README.md', 'figures.md'} <= {name for name, masses in found.items() if masses}
    assert len({mass for masses in found.values() for mass in masses}) == 1, found
