# SPDX-License-Identifier: Apache-2.0
"""ROS domains that tests try, one after the other."""

from __future__ import annotations

import itertools
import os

FIRST = itertools.count(os.getpid())


def domains() -> list[int]:
    """All domains, beginning at another one each time: a node that is slow to leave meets nobody new."""
    first = next(FIRST)
    return [1 + (first + step) % 101 for step in range(101)]
