# SPDX-License-Identifier: Apache-2.0
"""Tables of these scripts in the pages of docs/, between two marks with the name of the script."""

from __future__ import annotations

from pathlib import Path


def write_between(page: Path, script: str, text: str) -> None:
    """Replace what stands between the marks of a script; raises ValueError where the page does not have both."""
    begin, end = (f'<!-- {script}: {word} -->' for word in ('begin', 'end'))
    before, rest = page.read_text(encoding='utf-8').split(begin)
    _, after = rest.split(end)
    page.write_text(f'{before}{begin}\n{text}\n{end}{after}', encoding='utf-8')
