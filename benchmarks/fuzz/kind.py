# SPDX-License-Identifier: Apache-2.0
"""What every kind of case is: something made of a Random, something that judges what the package makes of it."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random

from mbse_ros.errors import MbseError

LONGEST = 7_000    # characters of an error: a log must stay readable
Case = dict[str, bytes]     # files, by their names


class Wrong(Exception):
    """The package did not do what it must."""


class Kind:
    """A kind of cases; ``folder`` is empty before each of them.

    `make` gives the files of a case and depends on nothing but the Random; `run` finds them written into the folder,
    returns counts of mutations by what became of them, and raises what must not happen.
    """

    most = 10 ** 9      # cases of one process

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def prepare(self) -> None:
        """Make what all cases need, which may take its time."""

    def make(self, random: Random) -> Case:
        """Files of a case."""
        raise NotImplementedError

    def run(self, case: Case) -> Counter[str]:
        """What became of it."""
        raise NotImplementedError

    def close(self) -> None:
        """Let go of what `run` holds."""


def refused(error: MbseError) -> str:
    """The word for an error of the package; raises Wrong where it is no use to the one who reads it."""
    text = str(error)
    if not text.strip() or len(text) > LONGEST:
        raise Wrong(f'{type(error).__name__} of {len(text)} characters: {text[:200]!r}')
    return f'refused: {type(error).__name__}'
