// SPDX-License-Identifier: Apache-2.0
// Lists: the loads, the ticket of a truck, and the engineer's page.
'use strict';

// Of an SI unit: what it is shown in, and how many of that it is.
const SHOWN = { Pa: ['MPa', 1e-6], rad: ['deg', 180 / Math.PI], 'rad/s': ['deg/s', 180 / Math.PI], m: ['mm', 1e3],
  'm/s': ['mm/s', 1e3], N: ['kN', 1e-3] };
const COURSE = 60;       // values, one every half second
const courses = new Map();

function row(cells, kind = '', heads = []) {
  const line = document.createElement('tr');
  line.className = kind;
  cells.forEach((cell, k) => {
    const one = document.createElement('td');
    one.append(cell);
    if (heads[k]) one.dataset.head = heads[k];
    line.append(one);
  });
  return line;
}

const clock = ns => new Date(ns / 1e6).toLocaleTimeString(language, { hour: '2-digit', minute: '2-digit', hourCycle: 'h23' });
const weighed = load => `${mass(load.mass, half_of(load.interval))}\u00a0±\u00a0${mass_parts(half_of(load.interval), half_of(load.interval) / 4, Math.ceil, load.mass)[0]}`;
const remark = load => load.counts ? load.trusted ? '' : say('load_not_trusted')
  : say(load.status === 'put_back' ? 'load_put_back' : load.status === 'carried' ? 'load_carried' : 'load_undone');

function show_loads(totals) {
  by('loads').replaceChildren(...totals.last_loads.map(load => row([load.load, clock(load.end_ns), load.truck, weighed(load), remark(load)],
    load.counts ? '' : 'out')));
  by('no-loads').hidden = totals.last_loads.length > 0;
  const day = totals.day;
  put('day', mass(day.total, half_of(day.total_interval), Math.round, beside(totals)));
  put('day-count', count(day.loads - day.untrusted) + (day.untrusted ? `; ${say('not_trusted_also', mass(day.untrusted_total), day.untrusted)}` : ''));
}

// The largest mass of those that stand beside each other: all of them in kg, or all in t.
const beside = totals => Math.max(totals ? totals.day.total : 0, last ? last.live.target : 0, last ? last.live.total : 0);

// What the driver gets: the loads of the truck that is being loaded.
function fill_ticket(totals, name) {
  const loads = totals.last_loads.filter(load => load.counts && load.truck === totals.truck).slice(0, totals.loads).reverse();
  const pairs = [[say('truck'), totals.truck], [say('ticket_printed'), new Date().toLocaleString(language, { dateStyle: 'medium', timeStyle: 'short', hourCycle: 'h23' })],
    [say('ticket_machine'), name]];
  by('ticket-head').replaceChildren(...pairs.map(([term, text]) => {
    const line = document.createElement('div');
    line.append(Object.assign(document.createElement('dt'), { textContent: term }), Object.assign(document.createElement('dd'), { textContent: text }));
    return line;
  }));
  by('ticket-loads').replaceChildren(...loads.map(load => row([load.load, clock(load.end_ns), weighed(load), remark(load)])));
  const total = totals.total_interval;
  put('ticket-total', `${say('ticket_total')}: ${mass(totals.total, half_of(total))}, ${say('between', ...ends(total))}, ${count(totals.loads - totals.untrusted)}`
    + (totals.untrusted ? `; ${say('not_trusted_also', mass(totals.untrusted_total), totals.untrusted)}` : ''));
  put('ticket-more', totals.loads > loads.length ? say('ticket_earlier', totals.loads - loads.length) : '');
}

// A line through what a channel was in the last half minute, from its least to its largest value.
function course(name, value) {
  const values = courses.get(name) || [];
  courses.set(name, values);
  values.push(value);
  if (values.length > COURSE) values.shift();
  const known = values.filter(one => one !== null), low = Math.min(...known), size = Math.max(...known) - low || 1;
  const picture = document.createElementNS('http://www.w3.org/2000/svg', 'svg');
  picture.setAttribute('viewBox', '0 0 120 24');
  picture.setAttribute('aria-hidden', 'true');
  const line = document.createElementNS('http://www.w3.org/2000/svg', 'polyline');
  line.setAttribute('points', values.map((one, k) => one === null ? '' : `${2 + 116 * (k + COURSE - values.length) / (COURSE - 1)},${(21 - 18 * (one - low) / size).toFixed(1)}`).join(' '));
  picture.append(line);
  return picture;
}

// The force at the tool with its 95 % interval, and its direction where that is known.
function force_text(force) {
  const kilo = one => number(one / 1e3, 1), vector = parts => parts.map((one, k) => one === null ? '' : `${'xyz'[k]}\u00a0${number(one, 2)}`).filter(String).join(', ');
  if (force.component === null) return say('force_none', force.point, force.reason);
  if (force.size === null) return say('force_along', force.point, vector(force.along), kilo(force.component), kilo(1.96 * force.component_stddev));
  const spread = number(1.96 * force.direction_stddev * 180 / Math.PI, 0), known = force.direction.some(one => one !== null);
  return say('force', force.point, kilo(force.size), kilo(1.96 * force.size_stddev), known ? say('force_direction', vector(force.direction), spread) : say('force_no_direction'));
}

function show_engineer(said) {
  const heads = ['', 'value', 'innovation', 'deviation', 'ratio', 'course'].map(key => key && say(key));
  by('channels').replaceChildren(...said.channels.map(([name, value, innovation, deviation, unit]) => {
    const [shown, factor] = SHOWN[unit] || [unit, 1], ratio = innovation === null || !deviation ? null : innovation / deviation;
    const decimals = Math.min(6, Math.max(0, Math.ceil(-Math.log10((deviation || 1e-3 / factor) * factor / 5))));
    const text = (one, more) => one === null ? '–' : `${number(one * factor, Math.min(6, decimals + more))}\u00a0${shown}`;
    const line = row([name, text(value, 0), text(innovation, 0), text(deviation, 1), ratio === null ? '–' : number(ratio, 1) + (Math.abs(ratio) > 3 ? '\u00a0!' : ''),
      course(name, value)], '', heads);
    if (Math.abs(ratio) > 3) line.children[4].className = 'far';
    return line;
  }));
  put('nis', say('nis', said.nis === null ? '–' : number(said.nis, 1), said.nis_dof, `${said.status} ${said.reason}`));
  put('force', said.force ? force_text(said.force) : '');
  by('faults').replaceChildren(...(said.faults.length ? said.faults.map(fault => `${fault.name}: ${fault.text}`) : [say('none')]).map(
    text => Object.assign(document.createElement('li'), { textContent: text })));
}

function show_budget(load) {
  put('budget-of', say('budget_of', load.load, mass(load.mass, half_of(load.interval)), number(load.stddev, 1)));
  const causes = Object.entries(load.common).sort((a, b) => Math.abs(b[1]) - Math.abs(a[1])).slice(0, 12);
  by('budget').replaceChildren(...[[say('own'), load.own], ...causes].map(([cause, size]) => row([cause, `${number(size, 2)}\u00a0kg`])));
}
