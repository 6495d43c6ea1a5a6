# SPDX-License-Identifier: Apache-2.0
"""Continuous integration prints one closing line for both runs of pytest."""

import subprocess
import sys

from source_tree import ROOT


def test_counts_and_times_are_added():
    lines = ('3 failed, 3036 passed, 1 skipped, 1 warning in 221.50s (0:03:41)\n'
             '2 failed, 119 passed, 2 errors in 130.25s (0:02:10)\n')
    done = subprocess.run([sys.executable, ROOT / 'tools' / 'closing_line.py'], input=lines, capture_output=True,
                          text=True, check=True)
    assert done.stdout == '5 failed, 3155 passed, 1 skipped, 1 warnings, 2 error in 351.75s\n'
