# SPDX-License-Identifier: Apache-2.0
"""Writes the pages of docs/ that repeat what the code says: `tools/environment.sh python tools/write_pages.py docs`."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from dataclasses import Field, fields
from importlib import import_module
from pathlib import Path
from typing import Any

from mbse_ros.filters.linkage_settings import LinkageSettings
from mbse_ros.filters.observer_settings import ObserverSettings
from mbse_ros.monitor.faults import KINDS
from mbse_ros.nodes.graphs.catalogue import NODES, Executable
from mbse_ros.nodes.graphs.graph import word
from mbse_ros.nodes.graphs.linkage_graph import LinkageArguments
from mbse_ros.nodes.graphs.machine_graph import MachineArguments
from mbse_ros.payload.mass import PayloadSettings
from mbse_ros.resources import share_directory
from mbse_ros.streams.interpolation import InterpolationSettings

GENERATED = '<!-- Written by tools/write_pages.py: change the code, not this page. -->\n'
HEAD = ('name', 'default', 'unit', 'range', 'meaning')


def parameters_page() -> str:
    """All parameters of all nodes and the arguments of the graph, as Markdown."""
    parts = [GENERATED, '# Parameters\n', PARAMETERS]
    parts += [f'## {name}\n\n{entry.text}\n\n{_entry(entry)}' for name, entry in NODES.items()]
    return '\n'.join([*parts, ARGUMENTS, _table(fields(MachineArguments)), LINKAGE, _table(fields(LinkageArguments))])


def messages_page() -> str:
    """All messages and services of the package, as Markdown."""
    parts = [GENERATED, '# Messages\n', MESSAGES]
    for kind in ('msg', 'srv'):
        for path in sorted((share_directory() / kind).glob(f'*.{kind}')):
            parts.append(f'## mbse_ros/{kind}/{path.stem}\n\n```\n{path.read_text().strip()}\n```\n')
            parts += [FAULT] * (path.stem == 'Fault')
    return '\n'.join(parts)


PAGES = {'parameters.md': parameters_page, 'messages.md': messages_page}

PARAMETERS = '''\
A value of the wrong type, out of its range or not among the words is refused with the reason, at the start (the
process ends with status 2) as at run time (`ros2 param set` says why). A parameter that no node of the package has is
refused at the start as well. Tuning takes effect from the next message on and keeps the state; what can only be chosen
at the start is read-only. Every node has `use_sim_time` too.
'''
ARGUMENTS = '''\
## Arguments of a machine's graph

`ros2 launch mbse_ros machine.launch.py name:=value` and `./mbse up machine`; `crane.launch.py` and `up crane` are the
same.
'''
LINKAGE = '''\
## Arguments of the linkage's graph

`ros2 launch mbse_ros linkage.launch.py name:=value` and `./mbse up linkage`.
'''
MESSAGES = '''\
SI units throughout: m or rad and their rates, Pa, V, kg, N; time in nanoseconds. Matrices travel row by row. NaN is a
missing value. The covariance of the state is that of its last step. The stamp of a message is the instant of its last
step, that of the last sensor sample in it: the age of a message on arrival is the delay of the estimation. Linear
interpolation needs the sample after each step, so an estimate of an instant comes one sensor period after it at most.
'''
FAULT = 'How each kind is found, and what it does: [kinds of faults](safety.md#kinds-of-faults).\n'
FAULTS = '<!-- kinds of faults: written by tools/write_pages.py -->', '<!-- end of faults -->'
RECORDS = """\
- `state`, `payload` and `linkage_state` are the [topics](topics.md) whose `faults` have the bit.
- The mass is held while `state` is COASTING, STARTING or LOST. `payload` then has the faults of `state`.
- "Doubts": what the last {payload.joint.REMEMBERED} s, or up to twice that, said of the mass is forgotten, too.
"""
SETTINGS = {'interpolation': InterpolationSettings, 'observer': ObserverSettings, 'payload': PayloadSettings,
            'linkage': LinkageSettings}


def faults_table() -> str:
    """Kinds of faults: how they are found, with the numbers that decide, what they do and where one reads them."""
    rows = [f'| `{fault.name}` | {kind.means} | {kind.found} | {kind.does}{"; doubts" if kind.doubts else ""} | '
            f'{", ".join(f"`{record}`" for record in kind.records)} |' for fault, kind in KINDS.items()]
    return _filled('\n'.join([RECORDS, '| fault | meaning | found by | what it does | read in |',
                              '|---|---|---|---|---|', *rows]))


def _filled(text: str) -> str:
    """A text with the value of each ``{module.NAME}`` or ``{settings.name}``; what ends in _NS in s."""
    def value(found: re.Match[str]) -> str:
        owner, name = found[1].rpartition('.')[::2]
        number = getattr(SETTINGS.get(owner) or import_module(f'mbse_ros.{owner}'), name)
        return f'{number * 1e-9 if name.endswith("_NS") else number:.10g}'
    return re.sub(r'\{([\w.]+)\}', value, text)


def with_faults(page: str) -> str:
    """A page with the table between its two marks."""
    begin, end = FAULTS
    return re.sub(f'{begin}.*?{end}', lambda _: f'{begin}\n{faults_table()}\n{end}', page, flags=re.DOTALL)


def _entry(entry: Executable) -> str:
    if entry.like:
        return f'Parameters: those of [{entry.like}](#{entry.like}).\n'
    text = ''
    if entry.tuned:
        text += 'Tuning, changeable at run time:\n\n' + _table(fields(entry.tuned)) + '\n'
    fixed = [item for group in entry.fixed for item in fields(group)]
    return text + 'Read at the start:\n\n' + _table(fixed)


def _table(items: Iterable[Field[Any]]) -> str:
    rows = [HEAD, ('---',) * len(HEAD), *((f'`{i.name}`', f'`{word(i.default)}`' if i.default != '' else 'empty',
                                           i.metadata['unit'], _range(i), i.metadata['text']) for i in items)]
    return ''.join('| ' + ' | '.join(row) + ' |\n' for row in rows)


def _range(item: Field[Any]) -> str:
    meta = item.metadata
    if meta['choices']:
        return ', '.join(f'`{choice}`' for choice in meta['choices'])
    if meta['low'] is None and meta['high'] is None:
        return ''
    limits = ((end, meta[key]) for end, key in (('from', 'low'), ('to', 'high')))
    return ' '.join(f'{end} {limit:g}' for end, limit in limits if limit is not None)


def main(folder: str) -> None:
    """Write all pages into a folder, and the table of faults into its page."""
    for name, page in PAGES.items():
        (Path(folder) / name).write_text(page())
    safety = Path(folder) / 'safety.md'
    if safety.exists():
        safety.write_text(with_faults(safety.read_text()))


if __name__ == '__main__':
    main(sys.argv[1])
