# SPDX-License-Identifier: Apache-2.0
"""The command line ``mbse``: one file a command; what is slow to import is imported by the command that needs it."""

from .app import main

__all__ = ['main']
