# SPDX-License-Identifier: Apache-2.0
"""The licences in SECURITY.md: of every package that ours asks for or vendors, as the installed metadata say."""

import re
from importlib import metadata

import pytest
from source_tree import ROOT

REQUIREMENTS = ROOT / 'tools' / 'requirements'
TABLE = (ROOT / 'SECURITY.md').read_text().partition('## Licences of what it stands on')[2]
LISTED = {name: licence for licence, row in re.findall(r'(?m)^\| ([A-Z]\w+) \| (.*) \|$', TABLE)
          for name in re.findall(r'(?:^|[,;] )([a-z][\w-]+)', row.split(':')[0])}
# as metadata say it: expression, free text and classifiers together
WORDS = {'BSD': 'BSD', 'MIT': 'MIT', 'Apache': 'Apache', 'PSF': 'PSF|Python Software Foundation',
         'LGPL': 'Lesser General', 'MPL': 'MPL', 'ISC': 'ISC', 'OSI': 'OSI'}


def wanted():
    """All names in the lists of what a user, a build or the tests install."""
    lists = [path for path in REQUIREMENTS.glob('*.in') if path.stem not in ('docs', 'lint', 'ros-jazzy', 'ros-kilted')]
    return {match[0].lower() for path in lists for match in re.finditer(r'(?m)^[A-Za-z][\w.-]*', path.read_text())}


def told(name):
    """What the metadata of an installed distribution say of its licence; None where it is not installed."""
    try:
        found = metadata.metadata(name)
    except metadata.PackageNotFoundError:
        return None
    classifiers = [line for line in found.get_all('Classifier') or () if line.startswith('License')]
    return ' '.join([found.get('License-Expression') or '', (found.get('License') or '')[:400], *classifiers])


def test_every_package_is_listed_and_no_other():
    assert LISTED.keys() == wanted()


@pytest.mark.parametrize('name', sorted(LISTED))
def test_the_licence_is_that_of_what_is_installed(name):
    licence = told(name)
    if licence is None:
        pytest.skip('not installed')
    assert re.search(WORDS[LISTED[name]], licence), licence


def test_most_of_them_are_installed_here():
    assert sum(told(name) is not None for name in LISTED) > 0.8 * len(LISTED)
