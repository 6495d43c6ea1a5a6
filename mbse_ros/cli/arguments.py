# SPDX-License-Identifier: Apache-2.0
"""Options that several commands have."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Optional

import typer

Json = Annotated[Optional[Path], typer.Option('--json', help='Write the result as JSON to this file.')]
Plots = Annotated[Optional[Path], typer.Option('-o', '--output', help='Folder for the plots.')]
