# SPDX-License-Identifier: Apache-2.0
"""Straight-line C of scalar operations that runs and compiles faster: four operations at once where they are alike, and
short functions in a row.

CasADi writes one statement for each scalar operation, and a compiler does not find again the rows of matrices among
ten thousands of them. This does, as superword level parallelism (S. Larsen and S. Amarasinghe, PLDI 2000): from four
neighbours among the outputs back through operations that are the same in all four. Each operation stays what it was and
has the same operands, so that the results are the same to the last bit. What is not understood stays as it is.

The time of a compiler grows faster than the length of a function: most of it goes into the choice of registers. So long
code becomes a row of functions, which takes a third of the time. A value that a later part needs goes through memory,
as nearly all of them do in a long function.
"""

from __future__ import annotations

import re
from collections import defaultdict
from heapq import heappop, heappush
from itertools import count
from typing import Any

WIDTH = 4
LEAST = 1000        # statements from which it is worth while
TYPES = f'''
typedef casadi_real mbse_lanes __attribute__((vector_size({8 * WIDTH})));
typedef casadi_real mbse_packed __attribute__((vector_size({8 * WIDTH}), aligned(8), may_alias));
'''
VECTOR = {'({}*{})': '({}*{})', '({}+{})': '({}+{})', '({}-{})': '({}-{})', '({}/{})': '({}/{})', '(-{})': '(-{})',
          'casadi_sq({})': '({0}*{0})', '(2.*{})': '({0}+{0})'}
COMMUTE = '({}*{})', '({}+{})'
_FUNCTION = re.compile(r'(/\* \S*->\((\S*)\) \*/\nstatic int (casadi_f\d+)\([^)]*\) \{\n)'
                       r'((?:  casadi_real a\d[^;]*;\n)+)(.*?)  return 0;\n\}\n', re.S)
_STATEMENT = re.compile(r'  (?:if \(res\[\d+\]!=0\) )?(\S+?)=(.*);')
_INPUT = re.compile(r'arg\[(\d+)\]\? arg\[\1\]\[(\d+)\] : 0')
_OUTPUT = re.compile(r'res\[(\d+)\]\[(\d+)\]')
_ROWS = re.compile(r'[^,\[\]]+(?:\[(\d+)[^\]]*\])?')
_REGISTER = re.compile(r'\ba\d+\b')
LONGEST = 500           # statements of a part
STORES = {'casadi_real': 'kept', 'mbse_lanes': 'kept_lanes'}
_VALUE = re.compile(r'  const (casadi_real|mbse_lanes) ([sv]\d+)=')
_NAME = re.compile(r'\b[sv]\d+\b')


def with_lanes(source: str) -> str:
    """C source of CasADi, its long functions of scalar operations in lanes; doubles."""
    found = _FUNCTION.sub(_function, source)
    first = _FUNCTION.search(source)
    return source if found == source or not first else found[:first.start()] + TYPES + found[first.start():]


def _function(match: re.Match[str]) -> str:
    """A function of scalar operations, rewritten; as it was where it is short or holds anything else."""
    head, shapes, name, _, body = match.groups()
    lines = body.splitlines()
    if len(lines) < LEAST:
        return match.group()
    code = _Code([int(rows or 1) for rows in _ROWS.findall(shapes)])
    if not all(code.read(line) for line in lines):
        return match.group()
    written = code.written() or code.written(level=True)
    if written is None:
        return match.group()
    pointers, declarations, statements = written
    functions, calls = in_parts(name, pointers, statements)
    return functions + head + declarations + calls + '  return 0;\n}\n'


class _Code:
    """Values by their number: a form with places for operands, and these; ``outputs`` by function output, which has so
    many ``rows`` in a column."""

    def __init__(self, rows: list[int]) -> None:
        self._rows = rows
        self.forms: list[str] = []
        self.operands: list[tuple[int, ...]] = []
        self.inputs: dict[int, tuple[int, int]] = {}
        self.outputs: dict[int, dict[int, int]] = defaultdict(dict)
        self._known: dict[tuple[str, tuple[int, ...]], int] = {}
        self._registers: dict[str, int] = {}
        self._packs: dict[tuple[int, ...], tuple[Any, ...]] = {}
        self._levels: list[int] | None = None

    def read(self, line: str) -> bool:
        """Take a statement; False where it is another than expected."""
        parts = _STATEMENT.fullmatch(line)
        if parts is None:
            return False
        target, expression = parts.groups()
        output = _OUTPUT.fullmatch(target)
        if output and expression in self._registers:
            self.outputs[int(output[1])][int(output[2])] = self._registers[expression]
            return True
        names = _REGISTER.findall(expression)
        if not _REGISTER.fullmatch(target) or not all(name in self._registers for name in names):
            return False
        key = _REGISTER.sub('{}', expression), tuple(self._registers[name] for name in names)
        if key == ('{}', key[1]):
            self._registers[target] = key[1][0]
            return True
        if key not in self._known:
            self._known[key] = len(self.forms)
            source = _INPUT.fullmatch(expression)
            if source:
                self.inputs[len(self.forms)] = int(source[1]), int(source[2])
            self.forms.append(key[0])
            self.operands.append(key[1])
        self._registers[target] = self._known[key]
        return True

    def written(self, level: bool = False) -> tuple[dict[str, str], str, list[str]] | None:
        """Pointers and their types, their declarations, and statements; None where values would wait for each other,
        which those of the same ``level`` cannot."""
        if level:
            self._packs, self._levels = {}, []
            for operands in self.operands:
                self._levels.append(1 + max((self._levels[value] for value in operands), default=0))
        stores = []
        for output, entries in self.outputs.items():
            rows = self._rows[output]
            for k in sorted({first + min(i, rows - WIDTH) for first in range(0, max(entries) + 1, rows)
                             for i in range(0, rows, WIDTH)} if rows >= WIDTH else ()):
                lanes = tuple(entries.get(k + i, -1) for i in range(WIDTH))
                if min(lanes) >= 0 and self._pack(lanes)[0] in ('op', 'load'):
                    stores.append((output, k, lanes))
        return _Writer(self, stores).text()

    def _pack(self, lanes: tuple[int, ...]) -> tuple[Any, ...]:
        """What makes a vector of these values: ('op', form, packs), ('load', ...), ('splat', value) or ('gather',)."""
        if lanes in self._packs:
            return self._packs[lanes]
        proposed: dict[tuple[int, ...], tuple[Any, ...]] = {}
        waiting = [lanes]       # a list of its own: chains are longer than Python lets functions call each other
        while waiting:
            item = waiting[-1]
            if item not in proposed:
                proposed[item] = self._found(item)
            pack = proposed[item]
            missing = [column for column in pack[2] if column not in self._packs] if pack[0] == 'op' else []
            if missing:
                waiting += missing
                continue
            alone = pack[0] == 'op' and all(self._packs[column][0] == 'gather' for column in pack[2])
            self._packs[waiting.pop()] = ('gather',) if alone else pack
        return self._packs[lanes]

    def _found(self, lanes: tuple[int, ...]) -> tuple[Any, ...]:
        """The same, of an operation whatever its operands are."""
        first = lanes[0]
        if all(lane == first for lane in lanes):
            return 'splat', first
        places = [self.inputs[lane] for lane in lanes if lane in self.inputs]
        if len(places) == len(lanes):
            own, start = places[0]
            run = all(place == (own, start + i) for i, place in enumerate(places))
            return ('load', own, start) if run else ('gather',)
        form = self.forms[first]
        if form not in VECTOR or any(self.forms[lane] != form for lane in lanes) or len(set(lanes)) < WIDTH:
            return ('gather',)
        if self._levels and len({self._levels[lane] for lane in lanes}) > 1:
            return ('gather',)
        return 'op', form, list(zip(*self._aligned(form, lanes)))

    def _aligned(self, form: str, lanes: tuple[int, ...]) -> list[tuple[int, ...]]:
        """Operands of each lane, those of sums and products in the order of the first's."""
        rows = [self.operands[lane] for lane in lanes]
        if form not in COMMUTE:
            return rows
        one, other = rows[0]
        for i, (a, b) in enumerate(rows):
            straight = (a == one) + (b == other) + (self.forms[a] == self.forms[one]) + (
                self.forms[b] == self.forms[other])
            crossed = (b == one) + (a == other) + (self.forms[b] == self.forms[one]) + (
                self.forms[a] == self.forms[other])
            if crossed > straight:
                rows[i] = b, a
        return rows


class _Writer:
    """Statements of the values that the outputs need, each after what it needs."""

    def __init__(self, code: _Code, stores: list[tuple[int, int, tuple[int, ...]]]) -> None:
        self.code, self.stores = code, stores
        self.vectors: dict[tuple[int, ...], str] = {}
        self.lane_of: dict[int, tuple[tuple[int, ...], int]] = {}

    def text(self) -> tuple[dict[str, str], str, list[str]] | None:
        """The body of the function: see ``_Code.written``."""
        packed = {(output, k + i) for output, k, _ in self.stores for i in range(WIDTH)}
        for _, _, lanes in self.stores:
            self._name(lanes)
        single = [(output, k, value) for output, entries in self.code.outputs.items() for k, value in entries.items()
                  if (output, k) not in packed]
        order = self._order([value for _, _, value in single])
        if order is None:
            return None
        sizes = {output: max(entries) + 1 for output, entries in self.code.outputs.items()}
        declarations = [f'  casadi_real unused{k}[{size}], *restrict r{k} = res[{k}] ? res[{k}] : unused{k};\n'
                        for k, size in sorted(sizes.items())]
        sources: dict[int, int] = defaultdict(int)
        for own, k in self.code.inputs.values():
            sources[own] = max(sources[own], k + 1)
        declarations += [f'  static const casadi_real none{k}[{size}];\n'
                         f'  const casadi_real *restrict i{k} = arg[{k}] ? arg[{k}] : none{k};\n'
                         for k, size in sorted(sources.items())]
        lines = [self._vector(item) if isinstance(item, tuple) else self._scalar(item) for item in order]
        lines += [f'  *(mbse_packed*)(r{output}+{k}) = {self.vectors[lanes]};' for output, k, lanes in self.stores]
        lines += [f'  r{output}[{k}]={self._value(value)};' for output, k, value in single]
        pointers = {f'r{k}': 'casadi_real' for k in sizes} | {f'i{k}': 'const casadi_real' for k in sources}
        return pointers, ''.join(declarations), [line for line in lines if line]

    def _name(self, lanes: tuple[int, ...]) -> None:
        """Give names to a vector of operations and to those that it needs."""
        waiting = [lanes]
        while waiting:
            lanes = waiting.pop()
            pack = self.code._pack(lanes)
            if lanes in self.vectors:
                continue
            self.vectors[lanes] = f'v{len(self.vectors)}'
            if pack[0] == 'op':
                for i, value in enumerate(lanes):
                    self.lane_of.setdefault(value, (lanes, i))
                waiting += pack[2]

    def _needs(self, item: int | tuple[int, ...]) -> list[int | tuple[int, ...]]:
        """What a value or vector is computed from."""
        if isinstance(item, tuple):
            pack = self.code._pack(item)
            if pack[0] == 'op':
                return list(pack[2])
            return [] if pack[0] == 'load' else [self._owner(value) for value in set(item)]
        return [self._owner(value) for value in self.code.operands[item]]

    def _owner(self, value: int) -> int | tuple[int, ...]:
        return self.lane_of[value][0] if value in self.lane_of else value

    def _order(self, singles: list[int]) -> list[int | tuple[int, ...]] | None:
        """All items needed, each after its needs and otherwise in the order of the source; None for a circle."""
        needs, users, number = {}, defaultdict(list), count()
        ready: list[tuple[int, int, int | tuple[int, ...]]] = []
        waiting = [lanes for _, _, lanes in self.stores] + [self._owner(value) for value in singles]
        while waiting:
            item = waiting.pop()
            if item in needs:
                continue
            own = set(self._needs(item))
            needs[item] = len(own)
            for need in own:
                users[need].append(item)
            waiting += own
        for item, left in needs.items():
            if not left:
                heappush(ready, (self._when(item), next(number), item))
        order = []
        while ready:
            item = heappop(ready)[2]
            order.append(item)
            for user in users[item]:
                needs[user] -= 1
                if not needs[user]:
                    heappush(ready, (self._when(user), next(number), user))
        return order if len(order) == len(needs) else None

    @staticmethod
    def _when(item: int | tuple[int, ...]) -> int:
        return max(item) if isinstance(item, tuple) else item

    def _value(self, value: int) -> str:
        """A scalar where it is used."""
        if value in self.lane_of:
            lanes, i = self.lane_of[value]
            return f'{self.vectors[lanes]}[{i}]'
        if value in self.code.inputs:
            return 'i{}[{}]'.format(*self.code.inputs[value])
        return f's{value}' if self.code.operands[value] else f'({self.code.forms[value]})'

    def _scalar(self, value: int) -> str:
        if not self.code.operands[value]:
            return ''
        form = self.code.forms[value]
        expression = VECTOR.get(form, form).format(*(self._value(item) for item in self.code.operands[value]))
        return f'  const casadi_real s{value}={expression};'

    def _vector(self, lanes: tuple[int, ...]) -> str:
        pack, name = self.code._pack(lanes), self.vectors[lanes]
        if pack[0] == 'load':
            expression = f'*(const mbse_packed*)(i{pack[1]}+{pack[2]})'
        elif pack[0] == 'op':
            expression = VECTOR[pack[1]].format(*(self.vectors[column] for column in pack[2]))
        else:
            expression = '{' + ', '.join(self._value(value) for value in lanes) + '}'
        return f'  const mbse_lanes {name}={expression};'


def in_parts(name: str, pointers: dict[str, str], statements: list[str]) -> tuple[str, str]:
    """Functions that hold the statements, and what stands where these stood: places of values, and the calls.

    Each statement defines a ``const`` value ``s1`` or ``v1`` from those before it, or writes an output. ``pointers``:
    types of the inputs and outputs by their names. The order stays, and with it every bit.
    """
    size = -(-len(statements) // -(-len(statements) // LONGEST))
    parts = [statements[start:start + size] for start in range(0, len(statements), size)]
    made = {found[2]: (found[1], number) for number, part in enumerate(parts)
            for found in map(_VALUE.match, part) if found}
    needed = [sorted({value for line in part for value in _NAME.findall(line) if made[value][1] < number})
              for number, part in enumerate(parts)]
    last = {value: number for number, values in enumerate(needed) for value in values}
    places: dict[str, str] = {}
    free, sizes = defaultdict[str, list[str]](list), dict.fromkeys(STORES, 1)
    functions, calls = [], []
    types = ', '.join(f'{kind} *restrict {own}' for own, kind in
                      (pointers | {store: kind for kind, store in STORES.items()}).items())
    for number, part in enumerate(parts):
        lines, waiting = [], set(needed[number])
        for line in part:
            for value in filter(waiting.__contains__, _NAME.findall(line)):
                lines.append(f'  const {made[value][0]} {value}={places[value]};')
                waiting.remove(value)
            lines.append(line)
            found = _VALUE.match(line)
            if found and found[2] in last:
                kind, value = found.groups()
                if not free[kind]:
                    free[kind].append(f'{STORES[kind]}[{sizes[kind]}]')
                    sizes[kind] += 1
                places[value] = free[kind].pop()
                lines.append(f'  {places[value]}={value};')
        for value in needed[number]:
            if last[value] == number:
                free[made[value][0]].append(places[value])
        functions.append(f'static __attribute__((noinline)) void {name}_{number}({types}) {{\n'
                         + '\n'.join(lines) + '\n}\n')
        calls.append(f'  {name}_{number}({", ".join([*pointers, *STORES.values()])});\n')
    stores = [f'  {kind} {store}[{sizes[kind]}];\n' for kind, store in STORES.items()]
    return ''.join(functions), ''.join(stores + calls)
