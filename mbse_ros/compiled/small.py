# SPDX-License-Identifier: Apache-2.0
"""The small functions of CasADi's C that a step calls hundreds of times, as a compiler makes the most of them.

CasADi copies number by number and calls the C library for the larger and smaller of two numbers. The results are those
of the virtual machine to the last bit: of a NaN and a number the number, and of two zeros the first. That is how it is
built for x86-64; elsewhere larger and smaller stay calls.
"""

from __future__ import annotations

import re

FASTER = {
    'copy': '''void casadi_copy(const casadi_real* x, casadi_int n, casadi_real* y) {
  if (y && n > 0) {
    if (x) __builtin_memmove(y, x, n * sizeof(casadi_real));
    else __builtin_memset(y, 0, n * sizeof(casadi_real));
  }
}
''',
    **{name: f'''static inline casadi_real casadi_{name}(casadi_real x, casadi_real y) {{
#ifdef __x86_64__
  return x != x || x {sign} y ? y : x;
#else
  return {name}(x, y);
#endif
}}
''' for name, sign in (('fmax', '<'), ('fmin', '>'))}}
_DEFINITION = re.compile(r'^(?:void|casadi_real) casadi_(\w+)\([^)]*\) \{\n.*?^\}\n', re.S | re.M)


def with_fast_small_functions(source: str) -> str:
    """C source of CasADi with these functions instead of its own."""
    return _DEFINITION.sub(lambda match: FASTER.get(match[1], match[0]), source)
