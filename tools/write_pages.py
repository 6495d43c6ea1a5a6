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
Item = Field[Any]


def parameters_page() -> str:
    """All parameters of all nodes and the arguments of the graph, as Markdown. What several nodes have stands once."""
    shared = _shared()
    known = [_said(item) for entry in NODES.values() for group in entry.groups for item in fields(group)]
    parts = [GENERATED, '# Parameters\n', PARAMETERS]
    earlier: list[tuple[Any, ...]] = []
    for name, entry in NODES.items():
        parts.append(f'## {name}\n\n{entry.text}\n\n{_entry(entry, shared, earlier)}')
        earlier += [_said(item) for group in entry.groups for item in fields(group)]
    parts += [SHARED, *_groups(shared)]
    for text, arguments in ((ARGUMENTS, MachineArguments), (LINKAGE, LinkageArguments)):
        own, others = _parted(fields(arguments), known)
        parts += [text, _list(own), f'As elsewhere on this page: {", ".join(f"`{item.name}`" for item in others)}.\n']
        known += [_said(item) for item in own]
    return '\n'.join(parts)


def messages_page() -> str:
    """All messages and services of the package, as Markdown: the files say what fields mean, the site has them."""
    parts = [GENERATED, '# Messages\n', MESSAGES]
    for kind in ('msg', 'srv'):
        for path in sorted((share_directory() / kind).glob(f'*.{kind}')):
            first = path.read_text().splitlines()[0].lstrip('# ')
            file = f'../{kind}/{path.name}'
            parts.append(f'## mbse_ros/{kind}/{path.stem}\n\n[{path.name}]({file}): {first}\n\n'
                         f'```{{eval-rst}}\n.. literalinclude:: {file}\n   :language: text\n```\n')
            parts += [FAULT] * (path.stem == 'Fault')
    return '\n'.join(parts)


PAGES = {'parameters.md': parameters_page, 'messages.md': messages_page}

PARAMETERS = '''\
A wrong type, value or name is refused with the reason: at the start (exit status 2) and at run time (`ros2 param set`).
Tuning takes effect with the next message and keeps the state; what is read at the start is read-only. After a name come
the default with its unit, and in brackets the range. Each node also has `use_sim_time` and the
[shared parameters](#shared-parameters) of its group.
'''
SHARED = '''\
## Shared parameters

Read at the start.
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
The files say what each field means; `ros2 interface show mbse_ros/msg/PayloadEstimate` prints them, too. SI units:
m or rad and their rates, Pa, V, kg, N; time in ns. Matrices are stored row by row. NaN is a missing value. The stamp is
the instant of the last step, that of the last sensor sample in it; the covariance is that of this step.
'''
FAULT = 'How each kind is found, and what it does: [kinds of faults](safety.md#kinds-of-faults).\n'
FAULTS = '<!-- kinds of faults: written by tools/write_pages.py -->', '<!-- end of faults -->'
RECORDS = """\
- `state`, `payload` and `linkage_state` are the [topics](topics.md) whose `faults` have the bit.
- The mass is held while `state` is COASTING, STARTING or LOST. `payload` then has the faults of `state`.
- "Doubts": what the last {payload.joint.REMEMBERED} s, or up to twice that, said of the mass is forgotten, too.
"""
TUNED = {entry.tuned: name for name, entry in reversed(NODES.items()) if entry.tuned}
SETTINGS = {'interpolation': InterpolationSettings, 'observer': ObserverSettings, 'payload': PayloadSettings,
            'linkage': LinkageSettings}


def faults_list() -> str:
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
    return re.sub(f'{begin}.*?{end}', lambda _: f'{begin}\n{faults_list()}\n{end}', page, flags=re.DOTALL)


def _said(item: Item) -> tuple[Any, ...]:
    """What the page says of a parameter: equal for parameters that need one row."""
    return item.name, item.default, *({**item.metadata, 'text': _sentence(item.metadata['text'])}.values())


def _shared() -> list[Item]:
    """Parameters that three nodes and more have in the same words, read at their start."""
    items = [item for entry in NODES.values() if not entry.like for group in entry.fixed
             if group not in TUNED for item in fields(group)]
    said = [_said(item) for item in items]
    return [item for i, item in enumerate(items) if said.count(said[i]) > 2 and said[i] not in said[:i]]


def _parted(items: Iterable[Item], known: list[tuple[Any, ...]]) -> tuple[list[Item], list[Item]]:
    """Parameters that are not known yet, and those that are."""
    items = list(items)
    return [i for i in items if _said(i) not in known], [i for i in items if _said(i) in known]


def _groups(shared: list[Item]) -> list[str]:
    """Shared parameters below the nodes that have them."""
    found: dict[str, list[Item]] = {}
    for item in shared:
        having = [name for name, entry in NODES.items() if not entry.like and _said(item) in [
            _said(other) for group in entry.fixed for other in fields(group)]]
        without = [name for name, entry in NODES.items() if name not in having and not entry.like]
        nodes = f'all but {", ".join(without)}' if len(without) < len(having) else ', '.join(having)
        found.setdefault(nodes, []).append(item)
    return [f'{nodes[0].upper() + nodes[1:] if nodes.startswith("all") else nodes}:\n\n{_list(items)}'
            for nodes, items in found.items()]


def _entry(entry: Executable, shared: list[Item], earlier: list[tuple[Any, ...]]) -> str:
    """Parameters of a node; of what an earlier one has in the same words the names alone."""
    if entry.like:
        return f'Parameters: those of [{entry.like}](#{entry.like}).\n'
    own, _ = _parted((item for group in entry.fixed if group not in TUNED for item in fields(group)),
                     [_said(item) for item in shared])
    parts = [_list(fields(entry.tuned))] if entry.tuned else []
    own, others = _parted(own, earlier)
    parts += [f'Read at the start:\n\n{_list(own)}'] if own else []
    parts += [f'As above, read at the start: {", ".join(f"`{item.name}`" for item in others)}.\n'] if others else []
    parts += [f'As tuning of [{TUNED[group]}](#{TUNED[group]}), read at the start.\n'
              for group in entry.fixed if group in TUNED]
    return '\n'.join(parts)


def _list(items: Iterable[Item]) -> str:
    """One line a parameter, which a phone shows, too."""
    return ''.join(f'- `{item.name}`: {_numbers(item)}. {_sentence(item.metadata["text"])}\n' for item in items)


def _sentence(text: str) -> str:
    """With a capital, unless it begins with one of the parameter's words."""
    return text if re.match(r'\w+:', text) else text[0].upper() + text[1:]


def _numbers(item: Item) -> str:
    """Default, unit, range or words of a parameter."""
    meta = item.metadata
    default = f'`{word(item.default)}`' if item.default != '' else 'empty'
    if meta['choices']:
        others = [f'`{choice}`' for choice in meta['choices'] if choice != item.default]
        return f'{default}; {", ".join(others)}' if isinstance(item.default, str) and len(others) < 9 else default
    limits = '..'.join(f'{meta[key]:g}' for key in ('low', 'high') if meta[key] is not None)
    return ' '.join(part for part in (default, meta['unit'], f'({limits})' if limits else '') if part)


def main(folder: str) -> None:
    """Write all pages into a folder, and the table of faults into its page."""
    for name, page in PAGES.items():
        (Path(folder) / name).write_text(page())
    safety = Path(folder) / 'safety.md'
    if safety.exists():
        safety.write_text(with_faults(safety.read_text()))


if __name__ == '__main__':
    main(sys.argv[1])
