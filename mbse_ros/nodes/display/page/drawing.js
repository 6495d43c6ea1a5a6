// SPDX-License-Identifier: Apache-2.0
// The machine from the side and the load chart, on canvases.
'use strict';

const colour = name => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

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

class MachineView {
  constructor(canvas) {
    this.canvas = canvas;
    this.extent = null;
  }

  // The frame only grows, so that the picture does not breathe.
  grow(parts) {
    for (const side of Object.values(parts)) for (const points of Object.values(side)) for (const [x, z] of points) {
      const e = this.extent || (this.extent = [x, x, z, z]);
      this.extent = [Math.min(e[0], x), Math.max(e[1], x), Math.min(e[2], z), Math.max(e[3], z)];
    }
  }

  draw(parts) {
    this.grow(parts);
    const [pen, width, height] = fresh(this.canvas);
    if (!this.extent) return;
    const [left, right, low, high] = this.extent, margin = 24;
    const scale = Math.min((width - 2 * margin) / Math.max(right - left, 0.1), (height - 2 * margin) / Math.max(high - low, 0.1));
    const dx = (width - scale * (right - left)) / 2, dy = (height - scale * (high - low)) / 2;
    const at = ([x, z]) => [dx + scale * (x - left), height - dy - scale * (z - low)];
    for (const [side, tone, wide] of [['measured', 'ghost', 12], ['estimated', 'estimate', 4]]) {
      for (const [name, points] of Object.entries(parts[side] || {})) this.part(pen, name, points.map(at), tone, wide);
    }
  }

  part(pen, name, points, tone, wide) {
    const ghost = tone === 'ghost';
    pen.globalAlpha = ghost ? 0.45 : 1;
    pen.strokeStyle = pen.fillStyle = colour(tone);
    pen.lineWidth = wide;
    pen.beginPath();
    if (name === 'payload') {
      if (!ghost) pen.fillStyle = colour('load');
      pen.arc(...points[points.length - 1], ghost ? 16 : 12, 0, 2 * Math.PI);
      pen.fill();
    } else {
      if (name.startsWith('cylinder/') && !ghost) pen.strokeStyle = colour('soft');
      points.forEach((point, k) => k ? pen.lineTo(...point) : pen.moveTo(...point));
      pen.stroke();
    }
    pen.globalAlpha = 1;
  }
}

class ChartView {
  constructor(canvas) {
    this.canvas = canvas;
  }

  draw(chart, live) {
    const [pen, width, height] = fresh(this.canvas);
    pen.font = '15px system-ui, sans-serif';
    pen.fillStyle = colour('soft');
    if (!chart || !chart.radii.length) {
      pen.fillText('no load chart in the file of the scale', 8, 22);
      return;
    }
    const far = 1.1 * Math.max(chart.radii[chart.radii.length - 1], live.radius || 0);
    const most = 1.15 * Math.max(...chart.limits, live.gross_upper || 0);
    const at = (r, m) => [44 + (width - 56) * r / far, height - 24 - (height - 36) * m / most];
    pen.strokeStyle = colour('bad');
    pen.lineWidth = 3;
    pen.beginPath();
    pen.moveTo(...at(0, chart.limits[0]));
    chart.radii.forEach((r, k) => {
      pen.lineTo(...at(r, chart.limits[k]));
      pen.lineTo(...at(r, k + 1 < chart.limits.length ? chart.limits[k + 1] : 0));
    });
    pen.stroke();
    pen.strokeStyle = colour('line');
    pen.lineWidth = 1;
    pen.strokeRect(44, 12, width - 56, height - 36);
    pen.fillText(`${Math.round(most)} kg`, 48, 28);
    pen.fillText(`${far.toFixed(1)} m`, width - 60, height - 6);
    if (live.radius !== null && live.gross !== null) {
      const [x, top] = at(live.radius, live.gross_upper ?? live.gross), [, y] = at(live.radius, live.gross);
      pen.strokeStyle = pen.fillStyle = colour('load');
      pen.lineWidth = 4;
      pen.beginPath();
      pen.moveTo(x, y);
      pen.lineTo(x, top);
      pen.stroke();
      pen.beginPath();
      pen.arc(x, y, 8, 0, 2 * Math.PI);
      pen.fill();
    }
  }
}
