# SPDX-License-Identifier: Apache-2.0
"""Sphinx: the site of `make docs`, out of the files that one reads on GitHub, each where it is.

The source folder is the root of the repository, so that relative links hold in both.
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from mbse_ros import __version__  # noqa: E402, the path comes first

project, author, release, version = 'mbse_ros', 'mbse_ros authors', __version__, __version__
copyright = f'{author}, Apache-2.0'
extensions = ['myst_nb', 'sphinx.ext.autodoc', 'sphinx.ext.viewcode']
root_doc = 'docs/index'
include_patterns = ['docs/**', 'examples/README.md', 'examples/notebooks/*.py', '*.md', 'CHANGELOG.rst']
exclude_patterns = ['docs/conf.py', 'out', '.env', 'build', 'install', 'log']

html_theme, html_title = 'furo', f'mbse_ros {__version__}'
html_theme_options = {'navigation_with_keys': True}
html_extra_path = ['site/index.html']       # beside the pages: leads from the top to docs/index.html
html_copy_source = False

myst_heading_anchors = 4                    # as GitHub names them
myst_enable_extensions = ['dollarmath']
nb_custom_formats = {'.py': ['jupytext.reads', {'fmt': 'py:percent'}]}
nb_execution_mode, nb_execution_raise_on_error, nb_execution_timeout = 'force', True, 300
suppress_warnings = ['misc.highlighting_failure']       # of blocks that show part of a file

autodoc_default_options = {'members': True, 'member-order': 'bysource', 'show-inheritance': True}
autodoc_typehints = 'signature'
autodoc_preserve_defaults = True
python_use_unqualified_type_names = True
nitpicky = True         # but for names of other packages, of what is imported for type checkers alone, and of rooms
                        # below `api`, which have no page: they may be renamed
nitpick_ignore_regex = [
    (r'py:.*', r'(numpy|np|casadi|pandas|xarray|matplotlib|collections\.abc|enum|pathlib)\..*'
               r'|Path|(dict|Mapping)\[str|tuple\[~?[\w.]+'),
    (r'py:class', r'[A-Z]\w+'),
    (r'py:(class|obj)', r'mbse_ros\.(?!api\.)\w+\..*'),
]


def setup(app):
    """Links to Python files, which are pages only in the folder of the notebooks."""
    app.connect('source-read', _files_as_downloads)


def _files_as_downloads(_app, _docname, source):
    source[0] = re.sub(r'\]\((?!https?:)(?![^)]*notebooks/)([^)\s]+\.py)\)', r'](path:\1)', source[0])
