# SPDX-License-Identifier: Apache-2.0
"""Symbolic functions made fast to call from Python: CasADi's virtual machine, or C compiled once and cached."""

from .compiler import have_compiler
from .kernel import Kernel
from .scan import Runs, Scan

__all__ = ['Kernel', 'Runs', 'Scan', 'have_compiler']
