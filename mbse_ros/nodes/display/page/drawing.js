// SPDX-License-Identifier: Apache-2.0
// The machine from the side and the load chart, on canvases.
'use strict';

const colour = name => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
const ORDER = ['stand', 'ghost', 'body', 'rod', 'barrel', 'load'], ROOM = 0.06;      // of the machine's size, around it
const MARGIN = 14;      // pixels

function fresh(canvas) {
  const ratio = window.devicePixelRatio || 1, width = canvas.clientWidth, height = canvas.clientHeight;
  if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
  }
  const pen = canvas.getContext('2d');
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.clearRect(0, 0, width, height);
  pen.lineCap = pen.lineJoin = 'round';
  return [pen, width, height];
}

function trace(pen, points) {
  pen.beginPath();
  points.forEach((point, k) => k ? pen.lineTo(...point) : pen.moveTo(...point));
}

class MachineView {
  constructor(canvas) {
    this.canvas = canvas;
    this.extent = null;
  }

  // The frame only grows, so that the picture does not breathe.
  grow(points) {
    for (const [x, z] of points) {
      const e = this.extent || (this.extent = [x, x, z, z]);
      this.extent = [Math.min(e[0], x), Math.max(e[1], x), Math.min(e[2], z), Math.max(e[3], z)];
    }
  }

  // fixed: what display_node says of the machine: its solids by their polygons, and where they are; mass, kg, null where it is not shown.
  draw(fixed, parts, mass) {
    const [pen, width, height] = fresh(this.canvas);
    if (fixed.ground === undefined || width < 2 * MARGIN || height < 2 * MARGIN) return;
    const radius = Math.min(fixed.ball[1], Math.max(fixed.ball[0], Math.cbrt(3 * Math.max(0, mass) / (4 * Math.PI * fixed.density))));
    const shown = ['measured', 'estimated'].flatMap(side => (parts[side] || []).map((place, k) => this.outline(fixed.solids[k], place, side, radius)));
    this.grow(shown.flatMap(one => one.points));
    if (!this.extent) return;
    const [left, right, least, high] = this.extent, low = Math.min(least, fixed.ground), room = ROOM * Math.max(right - left, high - low);
    const [x0, x1, z0, z1] = [left - room, right + room, low - room / 2, high + room];
    const scale = Math.min((width - 2 * MARGIN) / (x1 - x0), (height - 2 * MARGIN) / (z1 - z0));
    const dx = (width - scale * (x1 - x0)) / 2, dz = (height - scale * (z1 - z0)) / 2;
    this.at = ([x, z]) => [dx + scale * (x - x0), height - dz - scale * (z - z0)];
    this.scale = scale;
    this.ground(pen, fixed, width, height);
    for (const kind of ORDER) for (const one of shown) if (one.kind === kind) this.solid(pen, one, mass);
  }

  outline({kind, polygon, ghost, pins, pin}, [o, x, y], side, radius) {
    const size = kind === 'load' ? radius : 1, seen = side === 'measured';
    const placed = points => points.map(([a, b]) => [0, 1].map(k => o[k] + size * (a * x[k] + b * y[k])));
    if (seen) return {kind: kind === 'load' || kind === 'stand' ? '' : 'ghost', points: placed(ghost), pins: []};
    return {kind, points: placed(polygon), pins: placed(pins), pin};
  }

  ground(pen, fixed, width, height) {
    const [, y] = this.at([0, fixed.ground]);
    pen.fillStyle = colour('earth');
    pen.fillRect(0, y, width, height - y);
    pen.strokeStyle = colour('edge');
    pen.lineWidth = 2;
    trace(pen, [[0, y], [width, y]]);
    pen.stroke();
  }

  // A ghost is where the sensors say that a part is; a load whose mass is not known is an empty ring.
  solid(pen, {kind, points, pins, pin}, mass) {
    trace(pen, points.map(this.at));
    pen.closePath();
    pen.fillStyle = colour(kind);
    const empty = kind === 'load' && mass === null;
    pen.setLineDash(empty ? [5, 5] : []);
    if (!empty) pen.fill();
    pen.strokeStyle = colour(empty ? 'load' : 'edge');
    pen.lineWidth = 1.5;
    if (kind !== 'ghost') pen.stroke();
    pen.setLineDash([]);
    pen.fillStyle = colour('edge');
    for (const place of pins) {
      pen.beginPath();
      pen.arc(...this.at(place), pin * this.scale, 0, 2 * Math.PI);
      pen.fill();
    }
  }
}

class ChartView {
  constructor(canvas) {
    this.canvas = canvas;
  }

  draw(chart, live) {
    if (!chart || !chart.radii.length) return;
    const [pen, width, height] = fresh(this.canvas);
    const far = 1.1 * Math.max(chart.radii[chart.radii.length - 1], live.radius || 0);
    const most = 1.15 * Math.max(...chart.limits, live.gross_upper || 0);
    pen.font = `15px ${getComputedStyle(document.body).fontFamily}`;
    const high = mass(most, most / 20), room = pen.measureText(high).width + 10;
    const at = (r, m) => [room + (width - room - 8) * r / far, height - 26 - (height - 40) * m / most];
    pen.fillStyle = pen.strokeStyle = colour('soft');
    pen.lineWidth = 1;
    trace(pen, [at(0, most), at(0, 0), at(far, 0)]);
    pen.stroke();
    pen.fillText(high, 2, 20);
    pen.fillText('0', room - 14, height - 24);
    pen.textAlign = 'right';
    pen.fillText(`${number(far, 1)} m`, width - 4, height - 6);
    pen.textAlign = 'left';
    const steps = chart.radii.flatMap((r, k) => [at(r, chart.limits[k]), at(r, k + 1 < chart.limits.length ? chart.limits[k + 1] : 0)]);
    pen.strokeStyle = colour('bad');
    pen.lineWidth = 3;
    trace(pen, [at(0, chart.limits[0]), ...steps]);
    pen.stroke();
    if (live.radius === null || live.gross === null) return;
    const place = at(live.radius, live.gross);
    pen.strokeStyle = pen.fillStyle = colour('load');
    pen.lineWidth = 4;
    trace(pen, [place, at(live.radius, live.gross_upper ?? live.gross)]);
    pen.stroke();
    pen.beginPath();
    pen.arc(...place, 8, 0, 2 * Math.PI);
    pen.fill();
  }
}
