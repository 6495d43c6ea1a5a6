# SPDX-License-Identifier: Apache-2.0
"""The sections `modules` and `levels`: the hierarchy of Orsino, modular modelling."""

from __future__ import annotations

from graphlib import CycleError, TopologicalSorter

from ..language.entry import Entry
from ..language.references import References
from ..model import Level

ALL = 'all'


def read_modules(entry: Entry, references: References) -> dict[str, tuple[str, ...]]:
    """Names of bodies or other modules, by module; each in no circle."""
    entries = entry.named('modules')
    for name, item in entries.items():
        if name in references.bodies or name == ALL:
            raise item.error('another name of the module, this one is taken', name)
    modules = {name: tuple(part.choice([*references.bodies, *entries], 'a body or a module')
                           for part in item.items('bodies or modules')) for name, item in entries.items()}
    try:
        TopologicalSorter(modules).prepare()
    except CycleError as error:
        name = next(name for name in modules if name in error.args[1])
        raise entries[name].error('modules that do not contain themselves') from None
    for name, parts in modules.items():
        if not parts or len(set(parts)) < len(parts):
            raise entries[name].error('at least one body or module, each once')
        _check_disjoint(entries[name], parts, modules)
    return modules


def read_levels(entry: Entry, modules: dict[str, tuple[str, ...]]) -> tuple[Level, ...]:
    """From the lowest upwards; the last one is `all`, so that no joint is forgotten."""
    items = entry.items('levels, each a list of modules, the last one `all`')
    if not items or items[-1].value != ALL:
        raise entry.error('levels of which the last one is `all`, else joints between modules would be left out')
    levels = []
    for item in items[:-1]:
        names = tuple(part.choice(modules, 'a module') for part in item.items('modules, or `all` as the last level'))
        if not names:
            raise item.error('at least one module')
        _check_disjoint(item, names, modules)
        levels.append(Level(names))
    return (*levels, Level(()))


def bodies_of(name: str, modules: dict[str, tuple[str, ...]]) -> set[str]:
    """Bodies of a module, those of its modules included; a body is its own."""
    return set().union(*(bodies_of(part, modules) for part in modules[name])) if name in modules else {name}


def _check_disjoint(entry: Entry, names: tuple[str, ...], modules: dict[str, tuple[str, ...]]) -> None:
    taken: dict[str, str] = {}
    for name in names:
        for body in sorted(bodies_of(name, modules)):
            if body in taken:
                raise entry.error(f'modules that do not overlap: {body} belongs to {taken[body]} and to {name}')
            taken[body] = name
