// SPDX-License-Identifier: Apache-2.0
// Animates the machine from the side, and from above where it swings: the measured pose as a grey ghost, the estimated one in colour over it.
'use strict';

function svg(tag, parent, attributes) {
  const node = document.createElementNS('http://www.w3.org/2000/svg', tag);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  return parent.appendChild(node);
}

class Scene {
  constructor(data, root, highest = 520) {
    this.t = floats(data.t);
    this.captions = data.captions;
    this.labels = data.labels;
    [this.xMin, this.xMax, this.zMin, this.zMax] = data.extent;
    this.width = 720;
    this.scale = Math.min(680 / (this.xMax - this.xMin), highest / (this.zMax - this.zMin));
    this.height = this.scale * (this.zMax - this.zMin);
    this.left = (this.width - this.scale * (this.xMax - this.xMin)) / 2;
    root.setAttribute('viewBox', `0 0 ${this.width} ${this.height + 18}`);
    this.drawGrid(root);
    this.payload = Object.fromEntries(Object.entries(data.payload).map(([side, points]) => [side, floats(points)]));
    this.drawTrail(root);
    this.draws = data.solids.map(solid => this.addSolid(root, solid));
  }

  x(value) { return this.left + this.scale * (value - this.xMin); }
  y(value) { return this.scale * (this.zMax - value); }

  drawGrid(root) {
    const span = Math.max(this.xMax - this.xMin, this.zMax - this.zMin);
    const step = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10].find(s => span / s <= 9) || 20;
    const digits = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
    for (let k = Math.ceil(this.xMin / step); k * step <= this.xMax; k++) {
      const x = this.x(k * step);
      svg('line', root, {class: 'gridline', x1: x, x2: x, y1: 0, y2: this.height});
      svg('text', root, {x, y: this.height + 13, 'text-anchor': 'middle'}).textContent = (k * step).toFixed(digits);
    }
    for (let k = Math.ceil(this.zMin / step); k * step <= this.zMax; k++) {
      const y = this.y(k * step);
      svg('line', root, {class: 'gridline', x1: this.x(this.xMin), x2: this.x(this.xMax), y1: y, y2: y});
      const x = this.x(this.xMin) - 5;
      svg('text', root, {x, y: y + 4, 'text-anchor': 'end'}).textContent = (k * step).toFixed(digits);
    }
    svg('text', root, {x: this.x(this.xMax), y: this.height - 5, 'text-anchor': 'end'}).textContent = `${this.labels[0]} [m]`;
    svg('text', root, {x: this.x(this.xMin) + 5, y: 12}).textContent = `${this.labels[1]} [m]`;
  }

  drawTrail(root) {
    const points = this.payload.estimated;
    if (!points) return;
    let path = '', pen = 'M';
    for (let k = 0; k < this.t.length; k++) {
      const x = points[2 * k], z = points[2 * k + 1];
      if (!Number.isFinite(x + z)) { pen = 'M'; continue; }
      path += `${pen}${this.x(x).toFixed(1)} ${this.y(z).toFixed(1)}`;
      pen = 'L';
    }
    svg('path', root, {class: 'trail', d: path});
  }

  // Its shape is made once; where its origin, x and y are moves it.
  addSolid(root, solid) {
    const places = floats(solid.places);
    const node = svg('g', root, {class: solid.ghost ? 'ghost' : solid.kind});
    svg('polygon', node, {points: solid.polygon.map(pair => pair.join(',')).join(' ')});
    solid.pins.forEach(([cx, cy]) => svg('circle', node, {cx, cy, r: solid.pin}));
    return (a, b, w) => {
      const [ox, oz, xx, xz, yx, yz] = [0, 1, 2, 3, 4, 5].map(k => (1 - w) * places[6 * a + k] + w * places[6 * b + k]);
      const known = Number.isFinite(ox + oz + xx + xz + yx + yz), s = this.scale;
      node.style.display = known ? '' : 'none';
      if (known) node.setAttribute('transform', `matrix(${[s * xx, -s * xz, s * yx, -s * yz, this.x(ox), this.y(oz)].map(v => v.toFixed(3)).join(' ')})`);
    };
  }

  // Draw the pose at time t, linear between the frames; returns the frame before it.
  show(t) {
    let a = 0, b = this.t.length - 1;
    while (b - a > 1) { const m = (a + b) >> 1; if (this.t[m] <= t) a = m; else b = m; }
    const w = b > a ? Math.min(1, Math.max(0, (t - this.t[a]) / (this.t[b] - this.t[a]))) : 0;
    this.draws.forEach(draw => draw(a, b, w));
    return w < 1 ? a : b;
  }

  // Measured minus estimated payload point at a frame along the two axes, m.
  gap(frame) {
    const {estimated, measured} = this.payload;
    if (!estimated || !measured) return [NaN, NaN];
    return [0, 1].map(k => measured[2 * frame + k] - estimated[2 * frame + k]);
  }
}

function runScene() {
  const data = read('scene');
  if (!data) return;
  const scene = new Scene(data, document.getElementById('machine'), data.above ? 420 : 520);
  const above = data.above && new Scene(data.above, document.getElementById('above'), 250);
  const [slider, button, clock, mass, gap, speed] =
    ['slider', 'play', 'clock', 'caption', 'gap', 'speed'].map(id => document.getElementById(id));
  const start = scene.t[0], end = scene.t[scene.t.length - 1];
  let time = start, playing = false, last = null;
  slider.min = start; slider.max = end;

  function show(t) {
    time = Math.min(end, Math.max(start, t));
    const frame = scene.show(time), [side, height] = scene.gap(frame);
    if (above) above.show(time);
    const d = Math.hypot(...(above ? above.gap(frame) : [side]), height);
    slider.value = time;
    clock.textContent = time.toFixed(2) + ' s';
    mass.textContent = scene.captions.length ? scene.captions[frame] : '';
    const apart = `estimate and measurement ${(1000 * d).toFixed(1)} mm apart at the payload`;
    gap.textContent = Number.isFinite(d) ? apart : '';
    showMoment(time);
  }
  function tick(now) {
    if (!playing) return;
    if (last !== null) show(time + (now - last) / 1000 * Number(speed.value));
    last = now;
    if (time >= end) play(false); else requestAnimationFrame(tick);
  }
  function play(on) {
    playing = on && end > start; last = null;
    button.textContent = playing ? 'Pause' : 'Play';
    if (playing) { if (time >= end) show(start); requestAnimationFrame(tick); }
  }
  button.onclick = () => play(!playing);
  slider.oninput = () => { play(false); show(Number(slider.value)); };
  document.addEventListener('moment', event => { play(false); show(event.detail); });
  show(start);
  if (!matchMedia('(prefers-reduced-motion: reduce)').matches) play(true);
}

runScene();
drawCharts();
