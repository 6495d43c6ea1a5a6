# SPDX-License-Identifier: Apache-2.0
"""Every error the package raises on purpose: one base class, children that carry the data to investigate."""

from __future__ import annotations

import re
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from difflib import get_close_matches
from numbers import Real
from os import PathLike
from reprlib import Repr
from typing import Any

LONGEST = 160       # characters of a text from outside
MOST_ERRORS = 20    # of a file, in one message
MOST = 6_000        # characters of an error
_SHORT = Repr()
_SHORT.maxstring = _SHORT.maxother = LONGEST
_SHORT.maxtuple = _SHORT.maxlist = 12


def shown(text: str) -> str:
    """A name from outside as it may stand in a log: on one line, without control characters, cut where it is long."""
    text = text if len(text) <= LONGEST else text[:LONGEST] + '...'
    return text if text.isprintable() else repr(text)[1:-1]


def _again(kind: type[MbseError], args: tuple[Any, ...], values: dict[str, Any]) -> MbseError:
    error = kind.__new__(kind)
    error.args = args
    error.__dict__.update(values)
    return error


class MbseError(Exception):
    """Base class of all errors of this package; a text that quotes too much from outside is cut in its middle."""

    def __init__(self, text: str = '') -> None:
        super().__init__(text if len(text) <= MOST else f'{text[:MOST // 2]} ... {text[-MOST // 2:]}')

    def __reduce__(self) -> tuple[Any, ...]:
        return _again, (type(self), self.args, self.__dict__)      # from a process to another


class DescriptionError(MbseError):
    """A machine or map file says something that cannot be used.

    Attributes: ``file`` (path or name), ``key`` (dotted path of the key), ``value`` (what was there),
    ``expected`` (what should have been there).
    """

    def __init__(self, file: str, key: str, value: object, expected: str) -> None:
        self.file, self.key, self.value, self.expected = str(file), key, value, expected
        super().__init__(f'{file}: {self.finding}')

    @property
    def finding(self) -> str:
        """The text without the name of the file."""
        return f'{self.key + ": " * bool(self.key)}got {self.value!r}, expected {self.expected}'


class DescriptionErrors(DescriptionError):
    """A file has several errors: ``errors``, each a DescriptionError; the other attributes are those of the first."""

    def __init__(self, errors: Sequence[DescriptionError]) -> None:
        first, self.errors = errors[0], tuple(errors)
        self.file, self.key, self.value, self.expected = first.file, first.key, first.value, first.expected
        lines = _shared(errors)
        more = [f'and {len(lines) - MOST_ERRORS} more'] if len(lines) > MOST_ERRORS else []
        texts = ''.join(f'\n- {line}' for line in [*lines[:MOST_ERRORS], *more])
        MbseError.__init__(self, f'{first.file}: ' + (f'{len(errors)} errors{texts}' if len(lines) > 1 else lines[0]))


def _shared(errors: Sequence[DescriptionError]) -> list[str]:
    """What was found: a line for each error, or for those that only differ in where they are."""
    alike: dict[tuple[str, str, str], list[DescriptionError]] = {}
    for error in errors:
        alike.setdefault((error.key.rpartition('.')[2], repr(error.value), error.expected), []).append(error)
    return [DescriptionError('', ', '.join(error.key for error in group), group[0].value, group[0].expected).finding
            for group in alike.values()]


class SettingError(MbseError):
    """A tuning parameter, or an argument, has a value out of its type or range.

    Attributes: ``name`` of the parameter or argument, as Python and the nodes have it, with what of it is meant
    (``vary theta``), ``value``, ``expected``.
    """

    def __init__(self, name: str, value: object, expected: str) -> None:
        self.name, self.value, self.expected = name, value, expected
        found = str(value) if isinstance(value, PathLike) else value
        super().__init__(f'{name}: got {found!r}, expected {expected}')

    def renamed(self, names: Mapping[str, str]) -> SettingError:
        """The same with its arguments by other names, such as the options of a command."""
        name = re.sub(r'(^|(?<=, ))\w+(?![\w.])', lambda found: names.get(found[0], found[0]), self.name)
        return SettingError(name, self.value, self.expected)


def check_choice(name: str, value: object, known: Collection[str], needs: Mapping[str, str] | None = None) -> None:
    """Raise SettingError unless the value is one of the known words; ``needs``: of other words, what they are for."""
    if not isinstance(value, Hashable) or value not in known:
        other = f'{needs[value]}; else ' if needs and isinstance(value, str) and value in needs else ''
        raise SettingError(name, value, f'{other}one of ' + (', '.join(known) or 'none') + did_you_mean(value, known))


def did_you_mean(value: object, known: Iterable[str]) -> str:
    """The end of a message, '; did you mean ...?' with the known word that is most like the value; '' of none."""
    close = closest(value, known)
    return f'; did you mean {close}?' if close else ''


def closest(value: object, known: Iterable[str]) -> str | None:
    """The known word that is most like a value, if one is like it."""
    return next(iter(get_close_matches(str(value), list(known), 1, 0.6)), None)


def refuse_options(needs: str, options: Mapping[str, object]) -> None:
    """Raise SettingError for the first option that is not None, though it applies only to what ``needs`` says."""
    for option, value in options.items():
        if value is not None:
            raise SettingError(option, value, f'no such option here: it is for {needs}')


def check_names(**values: object) -> None:
    """Raise SettingError for the first value that is one text, where a list of names is expected."""
    for name, value in values.items():
        if isinstance(value, str):
            raise SettingError(name, value, f'a list of names, such as [{value!r}]')


def _is_number(value: object) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def check_positive(**values: float) -> None:
    """Raise SettingError for the first value, by its name, that is not a positive finite number."""
    for name, value in values.items():
        if not (_is_number(value) and 0 < value < float('inf')):
            raise SettingError(name, value, 'a positive number')


def check_count(**values: float) -> None:
    """Raise SettingError for the first value, by its name, that is not a whole number from 1 on."""
    for name, value in values.items():
        if not (_is_number(value) and value >= 1 and value % 1 == 0):
            raise SettingError(name, value, 'a whole number from 1 on')


class PositionProblemError(MbseError):
    """The constraints could not be satisfied for the given independent coordinates."""

    def __init__(self, residual: float, iterations: int, coordinates: Iterable[float], reason: str = '') -> None:
        self.residual, self.iterations = float(residual), iterations
        self.coordinates = tuple(float(value) for value in coordinates)
        why = reason or f'residual {residual:.3g} after {iterations} iterations'
        shown = ', '.join(f'{value:.6g}' for value in self.coordinates[:8])
        more = ', ...' if len(self.coordinates) > 8 else ''
        super().__init__(f'position problem: {why} at q = ({shown}{more})')


class SingularConfigurationError(MbseError):
    """The chosen independent coordinates do not determine the motion at this position (a dead point).

    ``alternatives``: choices of coordinates that would, best first.
    """

    def __init__(self, coordinates: Sequence[str], condition: float,
                 alternatives: Sequence[Sequence[str]] = ()) -> None:
        self.coordinates, self.condition = tuple(coordinates), condition
        self.alternatives = tuple(tuple(choice) for choice in alternatives)
        would_do = '; '.join(self._exchange(choice) for choice in self.alternatives)
        super().__init__(f'singular position: {", ".join(coordinates)} do not determine the motion '
                         f'(condition {condition:.3g})' + (f'; would do here: {would_do}' if would_do else ''))

    def _exchange(self, choice: Sequence[str]) -> str:
        """The difference of a choice: 'P2.x instead of theta'."""
        added = [name for name in choice if name not in self.coordinates]
        dropped = [name for name in self.coordinates if name not in choice]
        return f'{", ".join(added)} instead of {", ".join(dropped)}'


class SingularEquationsError(MbseError):
    """The constrained equations of motion have no solution, or not only one, at this position.

    Attributes: ``reason``; ``names`` of the constraint rows or of the coordinates that it is about.
    """

    def __init__(self, reason: str, names: Sequence[str]) -> None:
        self.reason, self.names = reason, tuple(names)
        super().__init__(f'equations of motion: {reason}: {", ".join(self.names)}')


class SampleError(MbseError):
    """A sample cannot be used: unknown channel, wrong length, repeated or backward stamp.

    The stream goes on after it: the sample is dropped, nothing else is lost.
    """

    def __init__(self, channel: str, stamp_ns: int, value: object, expected: str) -> None:
        self.channel, self.stamp_ns, self.value, self.expected = channel, stamp_ns, value, expected
        super().__init__(f'{shown(channel)} at {stamp_ns} ns: got {_SHORT.repr(value)}, expected {expected}')


class StrangerError(SampleError):
    """A name in a message, ``value``, is that of no sensor; ``channel``: its topic and it."""


class StampError(SampleError):
    """The stamp of a message is not a time."""


class BagError(MbseError):
    """A bag or table cannot be read or written."""

    def __init__(self, path: str, reason: str) -> None:
        self.path, self.reason = str(path), reason
        super().__init__(f'{path}: {reason}')


class DiskError(BagError):
    """The disk has too little room for a bag, or refuses to be written to; a bag that was begun is closed.

    ``count``: messages that were written before.
    """

    def __init__(self, path: str, reason: str, count: int = 0) -> None:
        self.count = count
        super().__init__(path, reason)


class RecordsError(MbseError):
    """The records of loads cannot be read or written: ``path``, ``reason``."""

    def __init__(self, path: str, reason: str) -> None:
        self.path, self.reason = str(path), reason
        super().__init__(f'{path}: {reason}')


class ScaleError(MbseError):
    """What an operator asked the scale for is not possible now; the text says why."""


class GraphError(MbseError):
    """A factor graph cannot be solved as it is built.

    Attributes: ``reason``; ``variables`` that it is about, such as ``qdd[12]``; ``missing``: factors that would help.
    """

    def __init__(self, reason: str, variables: Sequence[str], missing: Sequence[str] = ()) -> None:
        self.reason, self.variables, self.missing = reason, tuple(variables), tuple(missing)
        shown = ', '.join(self.variables[:6]) + (f' and {len(variables) - 6} more' if len(variables) > 6 else '')
        super().__init__(f'factor graph: {reason}: {shown}'
                         + (f'; missing: {" or ".join(self.missing)}' if self.missing else ''))


class MissingModuleError(MbseError):
    """An optional package is not installed: ``module``, ``purpose``, ``remedy``, ``reason`` (what Python said)."""

    def __init__(self, module: str, purpose: str, remedy: str, reason: str) -> None:
        self.module, self.purpose, self.remedy, self.reason = module, purpose, remedy, reason
        super().__init__(f'{module} is not there ({reason}): {purpose}; {remedy}')


class CompilationError(MbseError):
    """The C compiler refused generated code; the virtual machine still serves."""

    def __init__(self, name: str, command: str, output: str) -> None:
        self.name, self.command, self.output = name, command, output
        super().__init__(f'{name}: `{command}` failed: {output.strip()[-500:]}')


class DivergenceError(MbseError):
    """A computation left the finite numbers, or, all of them ``finite``, does not converge."""

    def __init__(self, where: str, step: int, detail: str = '', finite: bool = True) -> None:
        self.where, self.step, self.detail, self.finite = where, step, detail, finite
        found = 'not finite' if finite else 'no convergence'
        super().__init__(f'{where}: {found} at step {step}{": " + detail if detail else ""}')
