# SPDX-License-Identifier: Apache-2.0
"""One place of the file while it is read: its key path, its value, and the questions that may be asked of it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from ...errors import DescriptionError, closest, did_you_mean
from .problems import KNOWN, Problems

MOST_NAMES = 100     # in one message
T = TypeVar('T')
_NAME = re.compile(r'[A-Za-z][A-Za-z0-9]*(?:_[A-Za-z0-9]+)*')


@dataclass(frozen=True)
class Entry:
    """A value of the YAML tree with the file and dotted key path that lead to it; ``problems`` collects its errors, and
    those of its parts, where reading goes on after them."""

    file: str
    key: str
    value: Any
    problems: Problems | None = field(default=None, compare=False, repr=False)

    def error(self, expected: str, value: object = ..., key: str = '') -> DescriptionError:
        """The error to raise about this entry, or about the part `key` of it."""
        path = '.'.join(part for part in (self.key, key) if part)
        found = self.value if value is ... or self.value is KNOWN else value
        if self.problems is not None:
            found = self.problems.about(found)
        return DescriptionError(self.file, path, _short(found), expected)

    def refuse(self, error: DescriptionError) -> None:
        """Keep an error where errors are collected, else raise it."""
        if self.problems is None:
            raise error
        self.problems.add(error)

    @contextmanager
    def kept(self) -> Iterator[None]:
        """Errors inside are collected, if any are; what names this entry then only follows from them."""
        try:
            yield
        except DescriptionError as error:
            if self.problems is None:
                raise
            self.problems.add(error)
        except (LookupError, ArithmeticError, ValueError):
            if self.problems is None or not self.problems.found:
                raise       # else computed with what an error is kept of
        else:
            return
        section, _, name = self.key.rpartition('.')
        self.problems.broken.update([name] if section else ())

    def wrong(self, expected: str, value: object = ..., key: str = '') -> None:
        """``refuse`` the error of this entry: for what can still be read."""
        self.refuse(self.error(expected, value, key))

    def tried(self, read: Callable[[], T], default: T) -> T:
        """What ``read`` gives; the default after an error that is collected."""
        try:
            return read()
        except DescriptionError as error:
            self.refuse(error)
            return default

    def whole(self, read: Callable[[Entry, Problems], T]) -> T:
        """What ``read`` makes of this entry, with the problems that are kept; raises all errors of it and its parts at
        once, DescriptionErrors of several."""
        problems = Problems()
        entry = replace(self, problems=problems)
        with entry.kept():
            found = read(entry, problems)
            problems.check()
            return found
        problems.check()
        raise AssertionError('an error was kept')

    @property
    def sound(self) -> bool:
        """Whether no error of this entry and its parts is kept."""
        return self.problems is None or not any(f'{error.key}.'.startswith(f'{self.key}.')
                                                for error in self.problems.found)

    @property
    def file_sound(self) -> bool:
        """Whether no error of the file is kept, so that it can be looked at as a whole."""
        return self.problems is None or not self.problems.found

    def part(self, name: str, value: Any) -> Entry:
        """The part of a mapping of this name."""
        return Entry(self.file, f'{self.key}.{name}' if self.key else name, value, self.problems)

    def each(self, what: str, read: Callable[[str, Entry], T]) -> dict[str, T]:
        """What ``read`` makes of the entries of ``named``, by name, without those that are broken."""
        found = {}
        for name, item in self.named(what).items():
            with item.kept():
                found[name] = read(name, item)
        return found

    def mapping(self, required: Iterable[str], optional: Iterable[str] = ()) -> dict[str, Entry]:
        """Entries of a mapping with known keys; refuses unknown and missing ones, and reads a misspelt one as meant."""
        required = list(required)
        known = [*required, *optional]
        children = self._children('a mapping with the keys ' + ', '.join(known))
        for name in [name for name in children if name not in known]:
            child = children.pop(name)
            self.refuse(child.error(_suggestion(name, known, 'one of the keys '), name))
            children.setdefault(closest(name, known) or '', child)
        children.pop('', None)
        for name in required:
            if name not in children:
                self.refuse(self.error('this key, which is missing', None, name))
                children[name] = self.part(name, KNOWN)
        return children

    def named(self, what: str) -> dict[str, Entry]:
        """Entries of a mapping from names that the file chooses, at least one, to `what`."""
        children = self._children(f'a mapping from names to {what}')
        if not children:
            raise self.error(f'at least one of {what}')
        for name, child in children.items():
            child.tried(lambda child=child, name=name: child._name(name), name)     # type: ignore[misc]
        return children

    def items(self, what: str, length: int | None = None) -> list[Entry]:
        """Entries of a list, of a given length where it is fixed."""
        if not isinstance(self.value, list) or length not in (None, len(self.value)):
            raise self.error(f'a list of {what}')
        return [Entry(self.file, f'{self.key}[{index}]', item, self.problems)
                for index, item in enumerate(self.value)]

    def text(self, what: str = 'text') -> str:
        """The value as text that is not empty."""
        if not isinstance(self.value, str) or not self.value.strip():
            raise self.error(what)
        return self.value.strip()

    def name(self) -> str:
        """The value as a name fit for a topic."""
        return self._name(self.text('a name'))

    def choice(self, known: Iterable[str], what: str, word: str | None = None) -> str:
        """The value, or a part `word` of it, as one of the known words or names."""
        known = list(known)
        word = self.text(what) if word is None else word
        if word not in known:
            raise self.error(_suggestion(word, known, f'{what}: '))
        return word

    def flag(self) -> bool:
        """The value as a truth value."""
        return self.choice(('true', 'false'), 'true or false') == 'true'

    def one_of(self, keys: Iterable[str]) -> str:
        """The one of these keys that is in the mapping."""
        found = [key for key in keys if key in self.value]
        if len(found) != 1:
            raise self.error('exactly one of the keys ' + ', '.join(keys))
        return found[0]

    def _children(self, expected: str) -> dict[str, Entry]:
        if not isinstance(self.value, dict):
            raise self.error(expected)
        return {name: self.part(name, value) for name, value in self.value.items()}

    def _name(self, name: str) -> str:
        if not _NAME.fullmatch(name) or len(name) > 60:
            raise self.error('a name of letters, digits and single underscores that starts with a letter', name)
        return name


def _suggestion(word: str, known: list[str], text: str) -> str:
    more = f', ... ({len(known)} in all)' if len(known) > MOST_NAMES else ''
    return text + (', '.join(known[:MOST_NAMES]) or 'none') + more + did_you_mean(word, known)


def _short(value: object) -> object:
    """Containers as a short phrase, so that a message stays one line."""
    if isinstance(value, dict):
        return 'a mapping with the keys ' + ', '.join(list(value)[:8]) if value else 'an empty mapping'
    if isinstance(value, list) and (len(value) > 6 or any(isinstance(item, (dict, list)) for item in value)):
        return f'a list of {len(value)}'
    return value[:200] if isinstance(value, str) else value
