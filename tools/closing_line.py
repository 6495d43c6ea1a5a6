# SPDX-License-Identifier: Apache-2.0
"""Closing lines of several runs of pytest, from standard input, as one."""
import re
import sys

ORDER = ('failed', 'passed', 'skipped', 'xfailed', 'xpassed', 'warnings', 'error')
text = sys.stdin.read()
counts = {}
for number, word in re.findall(r'([0-9]+) ([a-z]+)', text):
    word = {'errors': 'error', 'warning': 'warnings'}.get(word, word)
    counts[word] = counts.get(word, 0) + int(number)
seconds = sum(float(found) for found in re.findall(r' in ([0-9.]+)s', text))
print(', '.join(f'{counts[word]} {word}' for word in ORDER if word in counts) + f' in {seconds:.2f}s')
