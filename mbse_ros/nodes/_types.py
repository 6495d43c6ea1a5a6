# SPDX-License-Identifier: Apache-2.0
"""Message classes by their type name."""

from __future__ import annotations

from importlib import import_module

from ..errors import MbseError


def message_class(name: str) -> type:
    """Class of ``package/msg/Type``; raises MbseError where it is not installed."""
    package, _, kind = name.replace('/msg/', '/').partition('/')
    try:
        return getattr(import_module(f'{package}.msg'), kind)
    except (ImportError, AttributeError, ValueError):
        raise MbseError(f'message type {name} is not installed') from None
