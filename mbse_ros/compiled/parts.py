# SPDX-License-Identifier: Apache-2.0
"""Long straight-line C as a row of short functions, which a compiler translates in a third of the time.

The time of a compiler grows faster than the length of a function: most of it goes into the choice of registers. A value
that a later part needs goes through memory, as nearly all of them do in a long function.
"""

from __future__ import annotations

import re
from collections import defaultdict

LONGEST = 500           # statements of a part
STORES = {'casadi_real': 'kept', 'mbse_lanes': 'kept_lanes'}
_VALUE = re.compile(r'  const (casadi_real|mbse_lanes) ([sv]\d+)=')
_NAME = re.compile(r'\b[sv]\d+\b')


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
