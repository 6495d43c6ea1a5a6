# SPDX-License-Identifier: Apache-2.0
"""One element of an XML file while it is read: its key path and the questions that may be asked of it."""

from __future__ import annotations

import math
import re
from collections.abc import Collection
from pathlib import Path
from xml.etree.ElementTree import Element, ParseError

from ...errors import DescriptionError
from ...resources import regular

MAX_BYTES = 10_000_000
_NUMBER = re.compile(r'[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?')
_XACRO = 'plain URDF; this is xacro, expand it first: xacro FILE > robot.urdf'


class Tag:
    """An element with the file and dotted key path that lead to it, such as ``robot.joint[elbow].axis``."""

    def __init__(self, file: str, key: str, element: Element) -> None:
        self.file, self.key, self.element = file, key, element

    def error(self, expected: str, value: object = None, key: str = '') -> DescriptionError:
        """The error to raise about this element, or about the part ``key`` of it."""
        return DescriptionError(self.file, f'{self.key}.{key}' if key else self.key, value, expected)

    def attributes(self, required: Collection[str], optional: Collection[str] = ()) -> None:
        """Refuse attributes that are missing or not known."""
        for name in self.element.attrib:
            if name not in required and name not in optional:
                raise self.error('one of the attributes ' + ', '.join([*required, *optional]), name)
        for name in required:
            if name not in self.element.attrib:
                raise self.error('this attribute, which is missing', None, name)

    def leaf(self, required: Collection[str], optional: Collection[str] = ()) -> None:
        """Refuse attributes that are missing or not known, and all children."""
        self.attributes(required, optional)
        for child in self.element:
            raise self.error('no tag in here', child.tag)

    def children(self, required: Collection[str] = (), optional: Collection[str] = (),
                 ignored: Collection[str] = ()) -> dict[str, Tag]:
        """Children that appear at most once, by tag; refuses unknown and missing ones; ``ignored`` may repeat."""
        found: dict[str, Tag] = {}
        for child in self.element:
            if child.tag in ignored:
                continue
            if child.tag not in required and child.tag not in optional:
                raise self.error('one of the tags ' + ', '.join([*required, *optional, *ignored]), child.tag)
            if child.tag in found:
                raise self.error('this tag once', 'a second one', child.tag)
            found[child.tag] = Tag(self.file, f'{self.key}.{child.tag}', child)
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
            found[name] = Tag(self.file, f'{self.key}.{tag}[{name}]', child)
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
        raise DescriptionError(file, key, str(path), f'a file that can be read ({error})') from error
    if len(content) > MAX_BYTES:
        raise DescriptionError(str(path), root, f'more than {MAX_BYTES} bytes', f'at most {MAX_BYTES} bytes')
    try:
        element = fromstring(content, forbid_dtd=True)
    except ParseError as error:
        expected = _XACRO if b'xacro:' in content else 'correct XML'
        raise DescriptionError(str(path), f'line {error.position[0]}', str(error), expected) from error
    except (ValueError, LookupError) as error:      # what defusedxml forbids; encodings that expat does not know
        raise DescriptionError(str(path), root, str(error), 'XML in UTF-8 without a document type') from error
    if path.suffix == '.xacro' or any('xacro' in item.tag for item in element.iter()):
        raise DescriptionError(str(path), root, 'xacro', _XACRO)
    if element.tag != root:
        raise DescriptionError(str(path), element.tag, element.tag, f'the root tag {root}')
    return Tag(str(path), root, element)
