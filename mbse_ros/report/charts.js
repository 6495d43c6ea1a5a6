// SPDX-License-Identifier: Apache-2.0
// Draws the charts, keeps their time axes together and shows the animation's time in each of them.
'use strict';

const read = id => JSON.parse(document.getElementById(id).textContent);
const color = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

function themed(figure) {
  const paint = {};
  for (const key of Object.keys(figure.layout).filter(k => /^[xy]axis/.test(k))) {
    paint[key + '.gridcolor'] = color('--grid');
    paint[key + '.linecolor'] = color('--line');
  }
  paint['font.color'] = color('--ink');
  paint['hoverlabel.bgcolor'] = color('--card');
  return paint;
}

const plots = [];          // {div, cursor, figure} of each chart drawn
let zoomed = null;         // the x range last chosen by the reader
let linking = false;

function drawChart(holder, figure) {
  const div = holder.querySelector('.plot');
  const config = {responsive: true, displaylogo: false, modeBarButtonsToRemove: ['select2d', 'lasso2d', 'autoScale2d']};
  figure.layout.font = {family: getComputedStyle(document.body).fontFamily, size: 12.5};
  return Plotly.newPlot(div, figure.data, figure.layout, config).then(() => {
    plots.push({div, cursor: holder.querySelector('.cursor'), figure});
    div.on('plotly_relayout', event => linkZoom(div, event));
    div.on('plotly_click', event => document.dispatchEvent(new CustomEvent('moment', {detail: event.points[0].x})));
    return Plotly.relayout(div, themed(figure));
  });
}

function linkZoom(source, event) {
  if (linking || !Object.keys(event).some(key => key.startsWith('xaxis.'))) return;
  zoomed = source.layout.xaxis.range.slice();
  linking = true;
  const others = plots.filter(plot => plot.div !== source);
  Promise.all(others.map(plot => Plotly.relayout(plot.div, {'xaxis.range': zoomed.slice()})))
    .finally(() => { linking = false; showCursor(); });
}

let moment = null;         // s, the time that the animation shows
function showCursor(t = moment) {
  moment = t;
  for (const {div, cursor} of plots) {
    const {xaxis, height, margin} = div._fullLayout;
    const x = moment === null ? NaN : xaxis._offset + xaxis.l2p(moment);
    const inside = x >= xaxis._offset && x <= xaxis._offset + xaxis._length;
    cursor.style.display = inside ? 'block' : 'none';
    if (!inside) continue;
    cursor.style.transform = `translateX(${x}px)`;
    cursor.style.top = margin.t + 'px';
    cursor.style.height = (height - margin.t - margin.b) + 'px';
  }
}

async function drawCharts() {
  const figures = read('charts');
  for (const holder of document.querySelectorAll('.chart')) {
    await drawChart(holder, figures[holder.id.replace('chart-', '')]);
    showCursor();
    await new Promise(done => setTimeout(done));     // let the page breathe between two charts
  }
  document.documentElement.dataset.charts = plots.length;
}

matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => {
  for (const {div, figure} of plots) Plotly.relayout(div, themed(figure));
});
window.addEventListener('resize', () => setTimeout(showCursor, 300));
