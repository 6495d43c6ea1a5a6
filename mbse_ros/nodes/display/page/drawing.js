// SPDX-License-Identifier: Apache-2.0
// The machine from the side and the load chart, on canvases.
'use strict';

const colour = name => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
const THICK = 0.032, BALL = 0.075, FOOT = 0.09;      // shares of the machine's size: a body, the largest load, its stand
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

// The smallest convex polygon around points (Andrew's monotone chain).
function hull(points) {
  const sorted = [...points].sort((a, b) => a[0] - b[0] || a[1] - b[1]);
  const half = list => {
    const found = [];
    for (const p of list) {
      while (found.length > 1) {
        const [a, b] = found.slice(-2);
        if ((b[0] - a[0]) * (p[1] - a[1]) - (b[1] - a[1]) * (p[0] - a[0]) > 0) break;
        found.pop();
      }
      found.push(p);
    }
    return found.slice(0, -1);
  };
  return [...half(sorted), ...half(sorted.reverse())];
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

  // fixed: what display_node says of the machine; mass, kg, null where it is not shown.
  draw(fixed, parts, mass) {
    const [pen, width, height] = fresh(this.canvas);
    this.grow([...Object.values(parts).flatMap(side => Object.values(side).flat()), ...(fixed.pins || [])]);
    if (!this.extent || fixed.ground === undefined || width < 2 * MARGIN || height < 2 * MARGIN) return;
    const [left, right, least, high] = this.extent, low = Math.min(least, fixed.ground), size = Math.max(right - left, high - low), room = FOOT * size;
    const [x0, x1, z0, z1] = [left - room, right + room, low - room / 2, high + room];
    const scale = Math.min((width - 2 * MARGIN) / (x1 - x0), (height - 2 * MARGIN) / (z1 - z0));
    const dx = (width - scale * (x1 - x0)) / 2, dz = (height - scale * (z1 - z0)) / 2;
    this.at = ([x, z]) => [dx + scale * (x - x0), height - dz - scale * (z - z0)];
    this.scale = scale;
    this.thick = Math.max(THICK * size * scale, 5);
    this.ground(pen, fixed, width, height, room);
    for (const [name, points] of Object.entries(parts.measured || {})) if (!name.startsWith('payload')) this.ghost(pen, points);
    const shown = Object.entries(parts.estimated || {});
    for (const [name, points] of shown) if (!name.startsWith('cylinder/') && !name.startsWith('payload')) this.body(pen, points);
    for (const [name, points] of shown) if (name.startsWith('cylinder/')) this.cylinder(pen, points, (fixed.bores || {})[name.slice(9)]);
    for (const [name, points] of shown) if (name.startsWith('payload')) this.load(pen, name, points, mass, fixed.largest, size);
  }

  // The ground, and a stand under the fixed pins.
  ground(pen, fixed, width, height, room) {
    const [, y] = this.at([0, fixed.ground]);
    pen.fillStyle = colour('earth');
    pen.fillRect(0, y, width, height - y);
    pen.strokeStyle = colour('edge');
    pen.lineWidth = 2;
    trace(pen, [[0, y], [width, y]]);
    pen.stroke();
    if (!fixed.pins.length) return;
    const feet = fixed.pins.flatMap(([x, z]) => [[x - room / 3, z], [x + room / 3, z], [x - room, fixed.ground], [x + room, fixed.ground]]);
    trace(pen, hull(feet).map(this.at));
    pen.closePath();
    pen.fillStyle = colour('stand');
    pen.fill();
    pen.stroke();
  }

  // Where the sensors say that a part is: wider and paler, so that it shows where the two differ.
  ghost(pen, points) {
    trace(pen, points.map(this.at));
    pen.strokeStyle = colour('ghost');
    pen.lineWidth = this.thick + 8;
    pen.stroke();
  }

  body(pen, points) {
    const closed = points.length > 3 && points[0].every((value, k) => value === points[points.length - 1][k]);
    trace(pen, points.map(this.at));
    for (const [tone, wide] of [['edge', this.thick + 3], ['body', this.thick]]) {
      pen.strokeStyle = pen.fillStyle = colour(tone);
      pen.lineWidth = wide;
      if (closed) pen.fill();
      pen.stroke();
    }
    pen.fillStyle = colour('edge');
    for (const point of points) {
      pen.beginPath();
      pen.arc(...this.at(point), this.thick / 6, 0, 2 * Math.PI);
      pen.fill();
    }
  }

  // Rod from the gland to its eye, barrel from its base to the gland; bores in m.
  cylinder(pen, points, bores) {
    const [base, gland, eye] = points.map(this.at), [bore, rod] = (bores || [0, 0]).map(d => d * this.scale);
    for (const [ends, wide, tone] of [[[gland, eye], Math.max(rod, 3), 'rod'], [[base, gland], Math.max(bore, 7), 'barrel']]) {
      trace(pen, ends);
      pen.strokeStyle = colour('edge');
      pen.lineWidth = wide + 2;
      pen.stroke();
      pen.strokeStyle = colour(tone);
      pen.lineWidth = wide;
      pen.stroke();
    }
  }

  // A load is a disc whose area is its mass; where that is not known, an empty ring.
  load(pen, name, points, mass, largest, size) {
    const place = this.at(points[points.length - 1]), most = BALL * size * this.scale;
    if (name === 'payload/rod') {
      trace(pen, points.map(this.at));
      pen.strokeStyle = colour('edge');
      pen.lineWidth = 2;
      pen.stroke();
      return;
    }
    pen.beginPath();
    pen.arc(...place, mass === null ? most / 2 : Math.max(3, most * Math.sqrt(Math.min(1.5, Math.max(0, mass) / (largest || 1)))), 0, 2 * Math.PI);
    pen.strokeStyle = colour(mass === null ? 'load' : 'edge');
    pen.lineWidth = 2;
    if (mass === null) pen.setLineDash([5, 5]);
    else { pen.fillStyle = colour('load'); pen.fill(); }
    pen.stroke();
    pen.setLineDash([]);
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
