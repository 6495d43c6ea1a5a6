# SPDX-License-Identifier: Apache-2.0
"""One element of an XML file while it is read: its key path and the questions that may be asked of it."""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path
from xml.etree.ElementTree import Element, ParseError

from ...errors import DescriptionError
from ...resources import regular, said_of

MAX_BYTES = 10_000_000
NEARLY = 0.66       # likeness (difflib) from which a name is a misspelled one of URDF
_NUMBER = re.compile(r'[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?')
_XACRO = 'plain URDF; this is xacro, expand it first: xacro FILE > robot.urdf'


@dataclass
class UrdfReading:
    """Of one file: the ``version`` that it states, and its ``foreign`` names.

    These mean nothing here: as urdfdom, the reader leaves them out. One that is nearly a name of URDF is refused, since
    what it says would be lost.
    """

    version: str = ''
    foreign: set[str] = field(default_factory=set)


class Tag:
    """An element with the file and dotted key path that lead to it, such as ``robot.joint[elbow].axis``."""

    def __init__(self, file: str, key: str, element: Element, reading: UrdfReading) -> None:
        self.file, self.key, self.element, self.reading = file, key, element, reading

    def inner(self, key: str, element: Element) -> Tag:
        """An element within this one."""
        return Tag(self.file, f'{self.key}.{key}', element, self.reading)

    def unknown(self, name: str, known: Collection[str], what: str) -> None:
        """A foreign name; raises DescriptionError where it is nearly a known one."""
        if '}' not in name and difflib.get_close_matches(name.lower(), known, 1, NEARLY):
            raise self.error(f'one of the {what} ' + ', '.join(known), name)
        self.reading.foreign.add(name.rpartition('}')[2])

    def error(self, expected: str, value: object = None, key: str = '') -> DescriptionError:
        """The error to raise about this element, or about the part ``key`` of it."""
        return DescriptionError(self.file, f'{self.key}.{key}' if key else self.key, value, expected)

    def attributes(self, required: Collection[str], optional: Collection[str] = ()) -> None:
        """Refuse attributes that are missing or nearly known ones."""
        for name in self.element.attrib:
            if name not in required and name not in optional:
                self.unknown(name, [*required, *optional], 'attributes')
        for name in required:
            if name not in self.element.attrib:
                raise self.error('this attribute, which is missing', None, name)

    def leaf(self, required: Collection[str], optional: Collection[str] = ()) -> None:
        """As ``attributes``, of an element in which nothing is looked for."""
        self.attributes(required, optional)
        self.reading.foreign.update(child.tag.rpartition('}')[2] for child in self.element)

    def children(self, required: Collection[str] = (), optional: Collection[str] = (),
                 ignored: Collection[str] = ()) -> dict[str, Tag]:
        """Children that appear at most once, by tag; refuses missing and nearly known ones; ``ignored`` may repeat."""
        found: dict[str, Tag] = {}
        for child in self.element:
            if child.tag in ignored:
                continue
            if child.tag not in required and child.tag not in optional:
                self.unknown(child.tag, [*required, *optional], 'tags')
                continue
            if child.tag in found:
                raise self.error('this tag once', 'a second one', child.tag)
            found[child.tag] = self.inner(child.tag, child)
        for name in required:
            if name not in found:
                raise self.error('this tag, which is missing', None, name)
        return found

    def named(self, tag: str) -> dict[str, Tag]:
        """Children of one tag by their attribute ``name``; refuses a missing and a repeated name."""
        found: dict[str, Tag] = {}
        for number, child in enumerate(self.element.findall(tag), 1):
            name = child.get('name')
            if not name:
                raise self.error('a name', name, f'{tag}[{number}].name')
            if name in found:
                raise self.error('another name, this one is in use', name, f'{tag}[{number}].name')
            found[name] = self.inner(f'{tag}[{name}]', child)
        return found

    def text(self, attribute: str) -> str:
        """An attribute as it is written."""
        return self.element.get(attribute, '')

    def numbers(self, attribute: str, count: int, low: float, high: float, unit: str) -> tuple[float, ...]:
        """An attribute as ``count`` numbers between ``low`` and ``high``."""
        text = self.text(attribute)
        words = text.split()
        values = [float(word) if _NUMBER.fullmatch(word) else math.nan for word in words]
        if len(values) != count or not all(low <= value <= high for value in values):
            what = 'a number' if count == 1 else f'{count} numbers with blanks between them,'
            raise self.error(_XACRO if '$' in text else f'{what} from {low:g} to {high:g} {unit}'.rstrip(),
                             text[:200], attribute)
        return tuple(values)

    def number(self, attribute: str, low: float, high: float, unit: str, default: float = 0.0) -> float:
        """An attribute as a number between ``low`` and ``high``; ``default`` where it is left out."""
        if attribute not in self.element.attrib:
            return default
        return self.numbers(attribute, 1, low, high, unit)[0]


def read_tags(path: Path, file: str, key: str, root: str) -> Tag:
    """The root element of an XML file.

    Raises DescriptionError: about ``key`` of ``file`` (which names the path) where the path cannot be read, about
    the XML file where it is not XML, has a document type, is not yet expanded by xacro or has another root.
    """
    # Python's own parser expands entities; defusedxml refuses them and all else a document type can do.
    from defusedxml.ElementTree import fromstring  # here: slow to import
    try:
        with regular(path).open('rb') as stream:
            content = stream.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        raise DescriptionError(file, key, str(path), f'a file that can be read ({said_of(error)})') from error
    if len(content) > MAX_BYTES:
        raise DescriptionError(str(path), root, f'more than {MAX_BYTES} bytes', f'at most {MAX_BYTES} bytes')
    try:
        try:
            element = fromstring(content, forbid_dtd=True)
        except ParseError:      # urdfdom's parser knows no namespaces, and takes undeclared ones
            element = fromstring(_declared(content, root), forbid_dtd=True)
        _without_namespace(element)
    except ParseError as error:
        expected = _XACRO if b'xacro:' in content else 'correct XML'
        raise DescriptionError(str(path), f'line {error.position[0]}', str(error), expected) from error
    except (ValueError, LookupError) as error:      # what defusedxml forbids; encodings that expat does not know
        raise DescriptionError(str(path), root, str(error), 'XML in UTF-8 without a document type') from error
    if path.suffix == '.xacro' or any('xacro' in item.tag for item in element.iter()):
        raise DescriptionError(str(path), root, 'xacro', _XACRO)
    if element.tag != root:
        raise DescriptionError(str(path), element.tag, element.tag, f'the root tag {root}')
    return Tag(str(path), root, element, UrdfReading(element.get('version', '')))


def _declared(content: bytes, root: str) -> bytes:
    """XML with the namespaces declared that its names use, but for those of xacro."""
    used = set(re.findall(rb'[<\s/]([A-Za-z_][\w.-]*):[A-Za-z_]', content)) - {b'xml', b'xmlns', b'xacro'}
    missing = sorted(name for name in used if b'xmlns:' + name not in content)
    own = b''.join(b' xmlns:%s="%s"' % (name, name) for name in missing)
    return re.sub(rb'<%s\b' % root.encode(), b'<%s%s' % (root.encode(), own), content, count=1)


def _without_namespace(element: Element) -> None:
    """Names of the default namespace become plain ones."""
    own = element.tag.rpartition('}')[0]
    for item in element.iter() if own else ():
        item.tag = item.tag.removeprefix(own + '}')
