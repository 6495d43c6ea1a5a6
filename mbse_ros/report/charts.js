// SPDX-License-Identifier: Apache-2.0
// Draws the charts, keeps their time axes together and shows the animation's time in each of them.
'use strict';

const read = id => JSON.parse(document.getElementById(id).textContent);
const color = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

function floats(text) {      // packed little-endian 32-bit floats
  const bytes = Uint8Array.from(atob(text), c => c.charCodeAt(0));
  return new Float32Array(bytes.buffer);
}

const axes = layout => Object.keys(layout).filter(key => /^[xy]axis/.test(key));

function themed(figure) {
  const paint = {};
  for (const key of axes(figure.layout)) {
    paint[key + '.gridcolor'] = color('--grid');
    paint[key + '.linecolor'] = color('--line');
  }
  paint['font.color'] = color('--ink');
  paint['hoverlabel.bgcolor'] = color('--card');
  return paint;
}

const plots = [];          // {div, cursor, figure, curves, whole} of each chart drawn
let zoomed = null;         // the x range last chosen by the reader
let moment = null;         // s, the time that the animation shows

const breathe = () => new Promise(done => setTimeout(done));
const sameRange = (a, b) => a && b && a.every((value, k) => Math.abs(value - b[k]) < 1e-9);

function drawChart(holder, figure) {
  const div = holder.querySelector('.plot');
  const curves = figure.data.map(({x, y, yaxis, fill}) => (
    {x: floats(x.bdata), y: floats(y.bdata), axis: yaxis.replace('y', 'yaxis'), area: Boolean(fill)}));
  const buttons = [['toImage', 'zoom2d', 'pan2d', 'resetScale2d']];
  const config = {responsive: true, displaylogo: false, modeBarButtons: buttons};
  figure.layout.font = {family: getComputedStyle(document.body).fontFamily, size: 12.5};
  return Plotly.newPlot(div, figure.data, figure.layout, config).then(() => {
    const plot = {div, figure, curves, cursor: holder.querySelector('.cursor'), whole: {}};
    for (const key of axes(div.layout)) plot.whole[key] = div.layout[key].range.slice();
    zoomed = zoomed || plot.whole.xaxis;
    plots.push(plot);
    div.on('plotly_relayout', event => { placeCursor(plot); followZoom(plot, event); });
    div.on('plotly_autosize', () => placeCursor(plot));
    div.on('plotly_click', event => document.dispatchEvent(new CustomEvent('moment', {detail: event.points[0].x})));
    return Plotly.relayout(div, themed(figure));
  });
}

// Least and largest y of some curves between two times.
function extent(curves, [from, to]) {
  let low = Infinity, high = -Infinity;
  for (const {x, y} of curves) {
    for (let k = 0; k < x.length; k++) {
      if (x[k] < from || x[k] > to || !Number.isFinite(y[k])) continue;
      low = Math.min(low, y[k]);
      high = Math.max(high, y[k]);
    }
  }
  return [low, high];
}

// The y range for what a panel shows between two times: its curves, and its areas as far as they do not dwarf them.
function fittedRange(plot, axis, range) {
  const curves = plot.curves.filter(curve => curve.axis === axis), solid = curves.filter(curve => !curve.area);
  if (sameRange(range, plot.whole.xaxis) || !solid.length) return plot.whole[axis];
  const [low, high] = extent(solid, range);
  if (!(high >= low)) return plot.whole[axis];
  const room = high - low || 1e-3 * Math.abs(high) || 1e-3;
  const [bottom, top] = extent(curves.filter(curve => curve.area), range);
  const ends = [Math.min(low, Math.max(bottom, low - room)), Math.max(high, Math.min(top, high + room))];
  return [ends[0] - 0.08 * room, ends[1] + 0.08 * room];
}

function fitted(plot, range, kept) {
  const update = {};
  for (const axis of Object.keys(plot.whole)) {
    if (axis !== 'xaxis' && !kept.includes(axis)) update[axis + '.range'] = fittedRange(plot, axis, range).slice();
  }
  return update;
}

// The other charts take over the x range of this one, those in sight first; y axes that the reader did not set fit.
async function followZoom(source, event) {
  const range = source.div.layout.xaxis.range.slice();
  if (sameRange(range, zoomed)) return;
  zoomed = range;
  Plotly.relayout(source.div, fitted(source, range, Object.keys(event).map(key => key.split('.')[0])));
  const distance = plot => Math.abs(plot.div.getBoundingClientRect().top);
  for (const plot of plots.filter(other => other !== source).sort((a, b) => distance(a) - distance(b))) {
    if (zoomed !== range) return;            // the reader has zoomed again meanwhile
    await Plotly.relayout(plot.div, {'xaxis.range': range.slice(), ...fitted(plot, range, [])});
    await breathe();
  }
}

function placeCursor({div, cursor}) {
  const {height, margin} = div._fullLayout;
  cursor.style.top = margin.t + 'px';
  cursor.style.height = (height - margin.t - margin.b) + 'px';
  moveCursor({div, cursor});
}

function moveCursor({div, cursor}) {
  const {xaxis} = div._fullLayout;
  const x = moment === null ? -1 : xaxis.l2p(moment);
  const inside = x >= 0 && x <= xaxis._length;
  cursor.style.transform = inside ? `translateX(${xaxis._offset + x}px)` : 'translateX(-99px)';
  cursor.style.opacity = inside ? '' : '0';
}

function showMoment(t) {
  moment = t;
  plots.forEach(moveCursor);
}

async function drawCharts() {
  const figures = read('charts');
  for (const holder of document.querySelectorAll('.chart')) {
    await drawChart(holder, figures[holder.id.replace('chart-', '')]);
    await breathe();                         // the page answers between two charts
  }
  document.documentElement.dataset.charts = plots.length;
}

matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => {
  for (const {div, figure} of plots) Plotly.relayout(div, themed(figure));
});
