# SPDX-License-Identifier: Apache-2.0
"""A short name of all that a file says of a machine: two graphs with the same one mean the same numbers."""

from __future__ import annotations

import hashlib
from dataclasses import replace

from .model import MechanismDescription

DIGITS = 8


def content(description: MechanismDescription) -> str:
    """All that a description says, as text: two with the same one are the same but for where their files are."""
    return repr(replace(description, file=''))


def fingerprint(description: MechanismDescription) -> str:
    """Eight hexadecimal digits of the SHA-256 of a description.

    Where its file is, its comments and its layout do not count; each value with its unit and source does, and what
    replaced the file's valves. A key that came later does not count where a file leaves it out.
    """
    text = content(description).replace(', calibration=None)', ')')
    return hashlib.sha256(text.encode()).hexdigest()[:DIGITS]
