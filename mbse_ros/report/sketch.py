# SPDX-License-Identifier: Apache-2.0
"""A page with a machine as far as its answers go, which a browser loads again each second while there are questions."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from string import ascii_uppercase

import numpy as np

from ..description.templates.geometry import Point, moved
from ..description.templates.layout import PlanarLayout
from .solids import ORDER, SIDE, Solids, Tube, seen_from, spatial

REFRESH = 1         # s
WIDTH, ROOM = 900, 0.12     # px; of the size, around the drawing
FILLS = {'stand': '#c3c8d0', 'rod': '#d5dbe3', 'barrel': '#4a5361'}
COLORS = '#1b6ca8', '#c2571a', '#3f7d3a', '#7a4fa3', '#8a6d1d', '#555555'
PAGE = '''<!doctype html>
<html lang="en"><head><meta charset="utf-8">{refresh}<title>{title}</title><style>
body {{font: 16px/1.4 system-ui, sans-serif; margin: 1.5em auto; max-width: 60em; padding: 0 1em; color: #222}}
svg {{width: 100%; height: auto; background: #f7f7f4}} .wrong {{color: #a01010; font-weight: 600}}
td {{padding: .15em 1em .15em 0; vertical-align: top}} td:first-child {{font-family: ui-monospace, monospace}}
.several {{display: grid; grid-template-columns: repeat(auto-fit, minmax(22em, 1fr)); gap: 1em}}
</style></head><body><h1>{title}</h1>
{said}
{drawing}
<table>{rows}</table></body></html>
'''
Poses = dict[str, tuple[Point, float]]      # origin of a body's frame, m, and its angle, rad


def sketch_page(layouts: Sequence[PlanarLayout], answers: Mapping[str, str], wrong: str = '',
                done: Sequence[str] = ()) -> str:
    """HTML of the machine with its cylinders in the middle of their strokes, of several machines to choose from, A, B,
    ..., and its ``answers``; ``wrong``: what does not fit together; ``done``: what there is to say at the end, after
    which the page is not loaded again."""
    said = [f'<p class="wrong">{escape(wrong)}</p>'] if wrong else []
    said += [f'<p>{escape(line)}</p>' for line in done]
    drawings = [_drawing(layout) for layout in layouts if layout.bodies]
    if len(drawings) > 1:
        drawings = ['<div class="several">', *(f'<div><h2>{letter}</h2>{drawing}</div>' for letter, drawing in zip(
            ascii_uppercase, drawings)), '</div>']
    drawing = '\n'.join(drawings)
    name = answers.get('name') or answers.get('kind') or Path(str(answers.get('urdf', 'a new machine'))).stem
    return PAGE.format(
        refresh='' if done else f'<meta http-equiv="refresh" content="{REFRESH}">',
        title=escape(str(name)),
        said='\n'.join(said), drawing=drawing or '<p>The machine appears with the first body whose cylinder is known.'
        '</p>', rows=''.join(f'<tr><td>{escape(key)}</td><td>{escape(str(value))}</td></tr>'
                             for key, value in answers.items()))


def _poses(layout: PlanarLayout) -> Poses:
    """Of all bodies, by the starts of their joints."""
    found: Poses = {'ground': ((0.0, 0.0), 0.0)}
    for joint in layout.joints:
        child = joint.child.partition('.')[0]
        if child in found or math.isnan(joint.start):
            continue
        angle, pin = found[joint.parent.partition('.')[0]][1], _at(layout, found, joint.parent)
        found[child] = (moved(pin, angle, (joint.start, 0.0)), angle) if joint.slides else (pin, angle + joint.start)
    return found


def _at(layout: PlanarLayout, poses: Poses, pin: str) -> Point:
    """Place of a pin, m."""
    body, _, name = pin.partition('.')
    points = {'foot': (0.0, 0.0), **layout.ground} if body == 'ground' else {
        key: place for item in layout.bodies if item.link.name == body for key, (place, _) in item.points.items()}
    origin, angle = poses[body]
    return moved(origin, angle, points[name])


def _drawing(layout: PlanarLayout) -> str:
    poses = _poses(layout)
    lines = {body.link.name: np.array([moved(*poses[body.link.name], place) for place, _ in body.points.values()])
             for body in layout.bodies}
    middles, tubes = {name: points.mean(axis=0) for name, points in lines.items()}, {}
    for item in layout.cylinders:
        base, eye = np.array(_at(layout, poses, item.base)), np.array(_at(layout, poses, item.eye))
        bore, rod, closed, _ = item.sizes
        gland = base + min(1.0, closed / max(float(np.linalg.norm(eye - base)), 1e-9)) * (eye - base)
        lines[f'cylinder/{item.name}'], tubes[item.name] = np.array([base, gland, eye]), Tube(bore, rod, item.count)
    pins = [(0.0, 0.0), *layout.ground.values()]
    solids = Solids(lines, tubes, spatial(np.array(pins)), convex=True)
    drawn = sorted(zip(solids.parts, seen_from(solids.placed(lines), SIDE)), key=lambda one: ORDER.index(one[0].kind))
    outlines = [place[0] + part.polygon @ place[1:] for part, place in drawn]
    low, high = np.vstack(outlines).min(axis=0), np.vstack(outlines).max(axis=0)
    size = float(max(high - low))
    low, high = low - ROOM * size, high + ROOM * size
    scale = WIDTH / float(high[0] - low[0])
    height = scale * float(high[1] - low[1])

    def on(point: Sequence[float] | np.ndarray) -> str:
        """x,y in the picture, px."""
        return f'{scale * (point[0] - low[0]):.1f},{height - scale * (point[1] - low[1]):.1f}'

    colors, parts = dict(zip(middles, COLORS * 2)), []
    for (part, place), outline in zip(drawn, outlines):
        color = colors.get(part.name) or FILLS[part.kind]
        parts.append(f'<polygon points="{" ".join(map(on, outline))}" fill="{color}" fill-opacity="'
                     f'{0.4 if part.kind == "body" else 1}" stroke="#222" stroke-width="1.5" stroke-linejoin="round"/>')
        for pin in place[0] + part.pins @ place[1:]:
            x, y = on(pin).split(',')
            parts.append(f'<circle cx="{x}" cy="{y}" r="4" fill="#fff" stroke="#222" stroke-width="2"/>')
    for name, middle in middles.items():
        x, y = on(middle).split(',')
        parts.append(f'<text x="{x}" y="{y}" font-size="15" fill="#222" stroke="#fff" stroke-width="3" '
                     f'paint-order="stroke">{escape(name)}</text>')
    metre = f'<text x="12" y="{height - 22:.0f}" font-size="14">1 m</text>' + _line(
        f'12,{height - 14:.0f}', f'{12 + scale:.0f},{height - 14:.0f}', 3)
    return (f'<svg viewBox="0 0 {WIDTH} {height:.0f}" role="img" aria-label="the machine from its side">'
            f'{"".join(parts)}{metre}</svg>')


def _line(start: str, end: str, width: int) -> str:
    (x0, y0), (x1, y1) = start.split(','), end.split(',')
    return (f'<line x1="{x0}" y1="{y0}" x2="{x1}" y2="{y1}" stroke="#444" stroke-opacity=".75" '
            f'stroke-width="{width}"/>')
