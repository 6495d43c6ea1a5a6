# SPDX-License-Identifier: Apache-2.0
"""Which answer is wrong where a loop does not close: each length of the loop is changed alone, until it closes.

The one that must change least, as a share of itself, is the most probable; the length of a cylinder is taken for wrong
a little earlier than a distance between pins (closed without its eyes, or not quite closed).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from ...errors import DescriptionError
from .answers import Answers
from .layout import OpenLoopError

STEPS = tuple(1.12 ** k for k in range(1, 22))      # factors by which a length may be wrong, to 10
HALVINGS = 7
EASY = 0.7          # of the change of a cylinder's length counts
SIGN = 0.05         # a wrong sign, or side, counts as so much
SLIP = 0.4          # a slip of the decimal point
NAMED = 3           # suspects that are said
HEAVIER = 3.5        # how much heavier, or lighter, than usual for its length a machine of a kind may be
_CYLINDER = ('bore', 'rod', 'the closed length', 'the extended length')
_PARTS = {'_cylinder': _CYLINDER, '_base': ('the first distance', 'the second distance'),
          '_eye': ('the first distance', 'the second distance'), '_pin': ('the first distance', 'the second distance'),
          'bucket': ('pin to link', 'pin to teeth', 'link to teeth'),
          'bellcrank': ('pin to eye', 'pin to link', 'eye to link')}
Add = Callable[[Answers], None]


@dataclass(frozen=True)
class Suspect:
    """An answer ``key`` with ``what`` of it, as it was given, what ``fits``, and how far off it is (``change``)."""

    key: str
    what: str
    given: str
    fits: str
    change: float


def odd_mass(answers: Answers) -> tuple[str, ...]:
    """A warning where the mass is none of a machine of this kind and length: a digit, or a unit."""
    kind, names = answers.kind, [link.name for link in answers.kind.links if not link.slides]
    length = sum(answers.length(name) for name in names)
    share = answers.mass / (kind.by_cube * length ** 3) if kind.by_cube else 1.0
    if 1.0 / HEAVIER < share < HEAVIER:
        return ()
    usual, long = answers.mass / share, length * share ** (1.0 / 3.0)
    ends = [f'{_tonnes(usual / HEAVIER)} to {_tonnes(usual * HEAVIER)}',
            f'{long * HEAVIER ** (-1 / 3):.2g} to {long * HEAVIER ** (1 / 3):.2g} m']
    return (f'mass: {_tonnes(answers.mass)} is odd for {" and ".join(names)} of {length:.2g} m in all: a machine of '
            f'this kind and length weighs {ends[0]}, one of this mass has {ends[1]}; is it a digit, or a unit?',)


def _tonnes(mass: float) -> str:
    return f'{float(f"{1e-3 * mass:.2g}"):g} t' if mass >= 1e3 else f'{float(f"{mass:.2g}"):g} kg'


def likely(answers: Answers, error: OpenLoopError, add: Add) -> DescriptionError:
    """The error with the answers that most probably are wrong, each with what would fit; ``add`` makes a machine of
    other answers, or raises."""
    def closes(other: Answers) -> bool:
        try:
            add(other)
        except OpenLoopError as found:
            return found.keys != error.keys
        except KeyError:        # not answered yet
            return True
        except DescriptionError:
            return False
        return True
    found = sorted(_suspects(answers, error.keys, closes), key=lambda item: item.change)[:NAMED]
    if not found:
        return error
    first, *others = found
    more = ''.join(f', or {item.key}, {item.what}: {item.fits}, not {item.given}' for item in others)
    return DescriptionError(error.file, first.key, first.given,
                            f'{error.expected}; most probably {first.what} of {first.key} is wrong: {first.fits} would '
                            f'fit{more}')


def _suspects(answers: Answers, keys: tuple[str, ...], closes: Callable[[Answers], bool]) -> Iterator[Suspect]:
    for key in keys:
        for place, value, put in _numbers(answers.values[key]):
            if key.endswith('_cylinder') and place < 2:
                continue

            def fits(factor: float, key: str = key, put: Callable[[float], Any] = put, value: float = value) -> bool:
                other = put(value * factor)
                if key.endswith('_cylinder') and not other[2] < other[3] < 2.0 * other[2]:
                    return False
                return closes(replace(answers, values={**answers.values, key: other}))

            what = next((words[place] for end, words in _PARTS.items() if key.endswith(end)), 'the length')
            if isinstance(answers.values[key], list) and value and key.endswith('_base') and fits(-1.0):
                yield Suspect(key, what, f'{value:.4g} m', f'{-value:.4g} m', SIGN)
            for slip in (10.0, 0.1):
                if fits(slip):
                    yield Suspect(key, what, f'{value:.4g} m', f'{slip * value:.4g} m', SLIP)
            for direction in (1, -1):
                span = _span(fits, direction)
                if span is not None:
                    low, high = sorted(abs(value) * factor for factor in span)
                    change = abs(span[0] ** direction - 1.0) * (EASY if key.endswith('_cylinder') else 1.0)
                    sign = '-' if value < 0.0 else ''
                    yield Suspect(key, what, f'{value:.4g} m', f'{sign}{low:.3f} to {sign}{high:.3f} m', change)
        if isinstance(answers.values[key], tuple):
            distances, side = answers.values[key]
            for word, other in (('above', 1), ('below', -1)):
                if other != side and closes(replace(answers, values={**answers.values, key: (distances, other)})):
                    yield Suspect(key, 'the side of the line', 'as it is', f"a third word '{word}'", SIGN)


def _span(fits: Callable[[float], bool], direction: int) -> tuple[float, float] | None:
    """The nearest and the farthest factor above (direction 1) or below 1 that fit, in one piece; None: none does."""
    good = [fits(step ** direction) for step in STEPS]
    if not any(good):
        return None
    first = good.index(True)
    last = next((k for k in range(first, len(good)) if not good[k]), len(good))

    def edge(inside: float, outside: float) -> float:
        for _ in range(HALVINGS):
            middle = (inside * outside) ** 0.5
            inside, outside = (middle, outside) if fits(middle ** direction) else (inside, middle)
        return inside
    near = edge(STEPS[first], STEPS[first - 1] if first else 1.0)
    far = edge(STEPS[last - 1], STEPS[last]) if last < len(good) else STEPS[-1]
    return near ** direction, far ** direction


def _numbers(value: Any) -> Iterator[tuple[int, float, Callable[[float], Any]]]:
    """Place, number, and the answer with another number there."""
    if isinstance(value, tuple):
        distances, side = value
        yield from ((k, x, lambda new, put=put: (put(new), side)) for k, x, put in _numbers(distances))
    elif isinstance(value, list):
        yield from ((k, x, lambda new, k=k: [*value[:k], new, *value[k + 1:]]) for k, x in enumerate(value))
    else:
        yield 0, value, lambda new: new
