# SPDX-License-Identifier: Apache-2.0
"""Symbolic functions that take long to build, kept in the cache: an excavator's observer is loaded in a tenth of the
time.

A function is found again by what it was made of and by the code that built it. Its entry is CasADi's serialisation,
compressed, under the same seal and in the same private folder as the libraries: see ``cache``.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Callable, Iterable
from contextlib import suppress

import casadi as ca
import numpy as np

from .cache import code_identity, entry_key, found, keep

# Rooms from which a function may follow; above them are only users of functions.
ROOMS = ('compiled', 'description', 'dynamics', 'estimators', 'hydraulics', 'machine', 'mechanism', 'payload',
         'transition')
LARGEST = 1 << 28       # bytes that a function may have, serialised: damage must not fill the memory


def built(made_of: Iterable[str], make: Callable[[], ca.Function]) -> ca.Function:
    """The function that ``make`` gives: from the cache, else made now and kept there.

    ``made_of``: texts that say, with the code of this package, all that it follows from.
    """
    file = entry_key('\0'.join(map(_digest, made_of)), f'{code_identity(*ROOMS)} {np.__version__}') + '.casadi'
    content = found(file)[1]
    if content is not None:
        with suppress(zlib.error, UnicodeDecodeError, RuntimeError):      # of another kind: it is made again
            return ca.Function.deserialize(_expanded(content))
    function = make()
    with suppress(OSError):     # nowhere to keep it
        keep(file, zlib.compress(function.serialize().encode(), 1))
    return function


def _expanded(content: bytes) -> str:
    """The serialised function; raises zlib.error where it is none."""
    unpack = zlib.decompressobj()
    text = unpack.decompress(content, LARGEST)
    if not unpack.eof:
        raise zlib.error('incomplete')
    return text.decode()


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
