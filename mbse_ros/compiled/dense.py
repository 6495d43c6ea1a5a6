# SPDX-License-Identifier: Apache-2.0
"""A CasADi function with NumPy's memory layout: dense, row by row, under a name that cannot collide in C."""

from __future__ import annotations

import casadi as ca

from . import lanes, parts
from .code import code_identity
from .small import with_fast_small_functions

WRITERS = ('compiled',)       # where the code is that writes C


def dense(function: ca.Function, name: str) -> ca.Function:
    """The function with dense inputs and outputs whose buffers are C-ordered arrays.

    CasADi stores column by column: a matrix (r, c) becomes its transpose (c, r), vectors stay; where the function is
    one of scalar operations (SX) this costs nothing. Entries outside the sparsity of an input are ignored, those of
    an output are 0. ``name`` needs a prefix: a C function called ``step`` binds to an old symbol of glibc.
    """
    symbolic = ca.SX if function.is_a('SXFunction') else ca.MX
    symbols, arguments = [], []
    for i in range(function.n_in()):
        rows, columns = function.size_in(i)
        matrix = is_matrix((rows, columns))
        symbol = symbolic.sym(f'i{i}', *((columns, rows) if matrix else (rows, columns)))
        symbols.append(symbol)
        arguments.append(symbol.T if matrix else symbol)
    results = [ca.densify(result) for result in function.call(arguments, True, False)]
    return ca.Function(name, symbols, [result.T if is_matrix(result.shape) else result for result in results])


def is_matrix(shape: tuple[int, int]) -> bool:
    """Whether the order of storage matters: more than one row and more than one column."""
    return shape[0] > 1 and shape[1] > 1


def array_shape(shape: tuple[int, int]) -> tuple[int, ...]:
    """NumPy shape of a CasADi shape: (n,) of a column (n, 1), else unchanged."""
    return (shape[0],) if shape[1] == 1 else shape


def c_source(*functions: ca.Function, in_lanes: bool = True) -> str:
    """Generated C of functions; doubles, ``long long`` integers; ``in_lanes``: see ``lanes``."""
    generator = ca.CodeGenerator('mbse_generated', {})
    for function in functions:
        generator.add(function)
    source = with_fast_small_functions(generator.dump())
    return lanes.with_lanes(source) if in_lanes else source


def made_of(function: ca.Function, in_lanes: bool = True) -> str:
    """All that ``c_source`` of a function follows from, in a tenth of its time: the function and what writes the C."""
    chosen = (lanes.LEAST, parts.LONGEST) if in_lanes else None
    return f'{function.serialize()} {code_identity(*WRITERS)} {chosen}'
