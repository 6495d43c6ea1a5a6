# SPDX-License-Identifier: Apache-2.0
"""One finding about a computer or a graph: what was found, whether it suffices, how to fix it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

OK, WARNING, FAILS = 'ok', 'warning', 'fails'


@dataclass(frozen=True)
class Check:
    """``status``: 'ok', 'warning' (it works, but worse or not everywhere), 'fails'; ``mend``: how to fix it, or ''."""

    name: str
    status: str
    found: str
    mend: str = ''


def examined(name: str, look: Callable[[], Check | Iterable[Check]]) -> list[Check]:
    """What a look gives; a warning where the system does not let us look, a failure where a module is missing."""
    try:
        found = look()
        return [found] if isinstance(found, Check) else list(found)
    except ImportError as error:
        return [Check(name, FAILS, f'cannot be looked at: {error}', 'install what is missing, then look again')]
    except OSError as error:
        return [Check(name, WARNING, f'not known: {error}', 'check it by hand: the system does not say')]
