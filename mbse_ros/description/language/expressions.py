# SPDX-License-Identifier: Apache-2.0
"""Arithmetic of the mechanism file, such as '2*L', 'sqrt(13)' or '1.2*(1 - cos(2*t))', on numbers or symbols.

The library simpleeval walks the tree; only numbers, names, + - * / **, brackets and the functions below get through to
it. The same text gives the nominal value (floats) and, for derivatives, an expression (CasADi SX).
"""

from __future__ import annotations

import ast
import keyword
import math
import operator
import re
from collections.abc import Callable, Mapping
from functools import lru_cache, reduce
from typing import Any, TypeAlias

import casadi as ca
import simpleeval
from casadi import SX

from ...errors import did_you_mean

Number: TypeAlias = 'float | SX'
MAX_CHARACTERS, MAX_EXPONENT = 8000, 100.0
_TOKEN = re.compile(r'(?P<number>(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)|(?P<name>[A-Za-z_][A-Za-z0-9_]*)'
                    r'|(?P<sign>\*\*|[-+*/(),])|(?P<blank> +)')
_NODES = (ast.Name, ast.UnaryOp, ast.BinOp, ast.Call, ast.Constant)


def evaluate(text: str, names: Mapping[str, Number]) -> Number:
    """Value of the arithmetic; SX where one of the used names is one, else a finite float. Angles are in rad.

    Functions: sqrt sin cos tan asin acos atan atan2 exp log abs min max hypot radians degrees; the constant pi.
    Raises ValueError, with the reason, for everything that is not a finite real number.
    """
    result = evaluate_with(text, names, FUNCTIONS)
    if isinstance(result, SX):
        if result.shape != (1, 1) or (result.is_constant() and not math.isfinite(float(result))):
            raise ValueError(f'{text!r} is not a finite number')
        return result
    if not isinstance(result, (int, float)) or not math.isfinite(result):
        raise ValueError(f'{text!r} is not a finite number')
    return float(result)


def motion(text: str, names: Mapping[str, Number], time: Number) -> Number:
    """As evaluate, with the time t in s beside the names."""
    return evaluate(text, {**names, 't': time})


def names_in(text: str) -> frozenset[str]:
    """Names that the arithmetic uses, functions and pi left out; ValueError where it is not arithmetic."""
    called = {id(node.func) for node in ast.walk(_parse(text)) if isinstance(node, ast.Call)}
    return frozenset(node.id for node in ast.walk(_parse(text))
                     if isinstance(node, ast.Name) and id(node) not in called and node.id != 'pi')


def evaluate_with(text: str, names: Mapping[str, object], functions: Mapping[str, Callable[..., Any]]) -> object:
    """As evaluate on any kind of operand, with functions for it; the result is not checked."""
    tree = _parse(text)
    if (number := _number(tree)) is not None:
        return number
    try:
        return _Arithmetic(names, functions).eval(text, previously_parsed=tree)
    except (simpleeval.FunctionNotDefined, simpleeval.NameNotDefined) as error:
        word = getattr(error, 'func_name', None) or error.name
        raise ValueError(_unknown(word, names, isinstance(error, simpleeval.FunctionNotDefined))) from error
    except ZeroDivisionError as error:
        raise ValueError(f'{text!r} divides by zero') from error
    except OverflowError as error:
        raise ValueError(f'{text!r} is too large a number') from error
    except (TypeError, simpleeval.InvalidExpression) as error:
        raise ValueError(f'{text!r} is not arithmetic: {error}') from error
    except RecursionError as error:
        raise ValueError('the arithmetic is nested too deeply') from error


def _number(tree: ast.expr) -> float | None:
    """Of a plain number, as most are, also a negative one; None of other arithmetic."""
    if isinstance(tree, ast.UnaryOp) and isinstance(tree.op, ast.USub):
        number = _number(tree.operand)
        return None if number is None else -number
    if not isinstance(tree, ast.Constant) or isinstance(tree.value, bool) or not isinstance(tree.value, (int, float)):
        return None
    return float(tree.value)


class _Arithmetic(simpleeval.SimpleEval):   # type: ignore[misc]
    """simpleeval, with all kinds of nodes removed but those of arithmetic."""

    nodes: dict[type[ast.AST], Callable[..., Any]]

    def __init__(self, names: Mapping[str, object], functions: Mapping[str, Callable[..., Any]]) -> None:
        super().__init__(_OPERATORS, functions, {'pi': math.pi, **names})
        self.nodes = {kind: self.nodes[kind] for kind in _NODES}
        self.nodes[ast.Constant] = lambda node: float(node.value)


@lru_cache(maxsize=4096)
def _parse(text: str) -> ast.expr:
    """Tree of the text; ValueError with the reason."""
    text = ' '.join(text.split())
    if not text or len(text) > MAX_CHARACTERS:
        raise ValueError(f'arithmetic of 1 to {MAX_CHARACTERS} characters is expected')
    _check_tokens(text)
    try:
        tree = ast.parse(text, mode='eval').body
    except SyntaxError as error:
        raise ValueError(f'{text!r} is not arithmetic: {error.msg}') from error
    except (MemoryError, RecursionError) as error:
        raise ValueError('the arithmetic is nested too deeply') from error
    if isinstance(tree, ast.Tuple):
        raise ValueError(f'{text!r} is not arithmetic: the decimal sign is a point, not a comma')
    return tree


def _check_tokens(text: str) -> None:
    """Refuse, by name, what Python's grammar has beyond arithmetic."""
    place, kind = 0, None
    while place < len(text):
        match = _TOKEN.match(text, place)
        if match is None:
            hint = ', a power is written **' if text[place] == '^' else ''
            raise ValueError(f'the character {text[place]!r} has no meaning in arithmetic{hint}')
        if match.lastgroup == 'name' and (keyword.iskeyword(match[0]) or match[0].startswith('_')):
            raise ValueError(f'the word {match[0]!r} is not allowed in arithmetic')
        if kind == 'number' and match.lastgroup in ('name', 'number'):
            raise ValueError(f'an operator is missing before {match[0]!r}')
        place, kind = match.end(), match.lastgroup


def _unknown(word: str, names: Mapping[str, object], called: bool) -> str:
    if called and (word in names or word == 'pi'):
        return f'{word!r} is a number, not a function: an operator is missing before its bracket'
    known = sorted(FUNCTIONS) if called else sorted(names)
    what = 'function' if called else 'name'
    return f'unknown {what} {word!r}, known are: ' + (', '.join(known) or 'none') + did_you_mean(word, known)


def power(base: Any, exponent: Any) -> Any:
    """base ** exponent of floats or symbols; ValueError for a huge exponent or a result that is not real."""
    if isinstance(exponent, float) and abs(exponent) > MAX_EXPONENT:
        raise ValueError(f'the exponent {exponent:g} is larger than {MAX_EXPONENT:g}')
    result = base ** exponent
    if isinstance(result, complex):
        raise ValueError(f'a negative number ({base:g}) to the power {exponent:g}')
    return result

_OPERATORS = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
              ast.Pow: power, ast.USub: operator.neg, ast.UAdd: operator.pos}


def _function(name: str, real: Callable[..., Number], symbolic: Callable[..., SX], most: int = 1,
              least: int = 1) -> Callable[..., Number]:
    """The function `real` of floats, `symbolic` as soon as one argument is a symbol, of `least` to `most` arguments."""
    def call(*arguments: Number) -> Number:
        if not least <= len(arguments) <= most:
            raise ValueError(f'{name} has {len(arguments)} arguments, expected {least}'
                             + (f' to {most}' if most > least else ''))
        if any(isinstance(item, SX) for item in arguments):
            return symbolic(*arguments)
        try:
            return real(*arguments)
        except ValueError as error:
            raise ValueError(f'{name}({", ".join(f"{item:g}" for item in arguments)}) is not a real number') from error
    return call


def _hypot(*arguments: Number) -> SX:
    return ca.sqrt(sum(item * item for item in arguments))

FUNCTIONS: dict[str, Callable[..., Any]] = {
    **{name: _function(name, getattr(math, name), getattr(ca, name))
       for name in ('sqrt', 'sin', 'cos', 'tan', 'asin', 'acos', 'atan', 'exp', 'log')},
    'atan2': _function('atan2', math.atan2, ca.atan2, 2, 2),
    'abs': _function('abs', math.fabs, ca.fabs),
    'radians': _function('radians', math.radians, lambda angle: angle * (math.pi / 180.0)),
    'degrees': _function('degrees', math.degrees, lambda angle: angle * (180.0 / math.pi)),
    'hypot': _function('hypot', math.hypot, _hypot, 9, 2),
    'min': _function('min', min, lambda *items: reduce(ca.fmin, items), 9, 2),
    'max': _function('max', max, lambda *items: reduce(ca.fmax, items), 9, 2),
}
