# SPDX-License-Identifier: Apache-2.0
"""The command line ``mbse``: one file a command; what is slow to import is imported by the command that needs it."""

import os

os.environ.setdefault('OPENBLAS_NUM_THREADS', '1')     # matrices are tiny here: threads only wait for each other

from .app import main

__all__ = ['main']
