# SPDX-License-Identifier: Apache-2.0
"""Samples of a mechanism's sensors to its state, force and health, by any filter: the stage without ROS."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..records import LinkageEstimate, Measured

if TYPE_CHECKING:
    from ...estimators.linkage_settings import LinkageSettings
    from .stage import LinkageStage

__all__ = ['LinkageEstimate', 'LinkageSettings', 'LinkageStage', 'Measured']


def __getattr__(name: str) -> Any:
    """Import the filters with the first name that needs them (PEP 562): a machine's observer needs none of them."""
    found: Any
    if name == 'LinkageSettings':
        from ...estimators.linkage_settings import LinkageSettings as found
    elif name == 'LinkageStage':
        from .stage import LinkageStage as found
    else:
        raise AttributeError(f'module {__name__!r} has no attribute {name!r}')
    globals()[name] = found
    return found
