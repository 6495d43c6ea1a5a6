# SPDX-License-Identifier: Apache-2.0
"""RViz's configuration for one model: the file of this package with camera, grid and frames by the model's size."""

from __future__ import annotations

import math
import os
import tempfile
from pathlib import Path
from typing import Any

import yaml

from ...compiled.cache import cache_folder
from ...resources import share_directory
from ..messages.bounding_box import Box

HALF_ANGLE = math.pi / 8        # of the camera: RViz's field of view is 45 degrees high
WIDE = 1.2                      # width over height of the picture beside the panel
AROUND = 1.25                   # how much more than the model is seen
GRID, CELLS = 10.0, 2.0         # cells along the model, and how far the grid goes, in the model's sizes


def rviz_file(config: str, name: str, box: Box) -> Path:
    """File of the model ``name`` out of ``config`` of the folder rviz/, in the folder of the compiled functions; where
    that cannot be written, the one of the package."""
    source = share_directory() / 'rviz' / config
    try:
        folder = cache_folder() / 'rviz'
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f'{Path(name).stem}_{config}'
        with tempfile.NamedTemporaryFile('w', dir=folder, delete=False) as file:
            yaml.safe_dump(fitted(yaml.safe_load(source.read_text()), box), file, sort_keys=False)
        os.replace(file.name, path)
    except OSError:
        return source
    return path


def fitted(config: dict[str, Any], box: Box) -> dict[str, Any]:
    """A configuration with the whole box in view, and a grid at its ground."""
    manager = config['Visualization Manager']
    wide, _, high = (box.high - box.low).tolist()
    middle = ((box.low + box.high) / 2).tolist()
    view = manager['Views']['Current']
    view['Distance'] = round(AROUND * max(high, wide / WIDE, 0.1 * box.size) / 2 / math.tan(HALF_ANGLE), 4)
    view['Focal Point'] = {axis: round(value, 4) for axis, value in zip('XYZ', middle)}
    view['Near Clip Distance'] = min(0.01, 1e-3 * box.size)
    cell = 10.0 ** math.floor(math.log10(box.size / GRID * 3.2))
    for display in manager['Displays']:
        if display['Class'].endswith('/Grid'):
            display['Cell Size'], display['Plane Cell Count'] = cell, round(CELLS * box.size / cell)
            flat = display['Plane'] == 'XY'
            display['Offset'] = {'X': 0, 'Y': 0 if flat else round(float(box.high[1]), 4), 'Z': round(box.ground, 4)}
        elif display['Class'].endswith('/Axes'):
            display['Length'], display['Radius'] = round(0.05 * box.size, 5), round(0.0025 * box.size, 6)
        elif display['Class'].endswith('/TF'):
            display['Marker Scale'] = round(0.1 * box.size, 4)
    return config
