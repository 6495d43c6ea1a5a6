# SPDX-License-Identifier: Apache-2.0
"""``export_c``: a mechanism as plain C."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from .load import Loadable, model_of

if TYPE_CHECKING:
    from ..export.write import Export


def export_c(model: Loadable, folder: str | Path, dt: float = 1e-3, order: str = 'exact') -> Export:
    """Write a model as C99 that needs nothing but libm (docs/export_c.md).

    ``folder``: new, empty, or an earlier export. ``dt``, s: step of the recorded transitions that its test compares;
    ``order``: 'exact', or '1' to '4' of the series. Gives the ``folder``, its ``files``, and the ``names`` and units of
    the vectors. Raises SettingError, OSError.
    """
    from ..export.write import export_c as write  # here, because it takes its time to import
    return write(model_of(model), folder, dt, order)
