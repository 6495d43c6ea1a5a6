// SPDX-License-Identifier: Apache-2.0
// The operator's page: shows what display_node says, and sends what the buttons ask for.
'use strict';

const STALE = 1000, SILENT = 3500, AGAIN = 1000, WAITS = 10000;      // ms
const WORDS = { updating: '', too_slow: 'held: moves too slowly to weigh', no_data: 'no mass: no data, or the estimate is starting',
  not_observable: 'held: the mass does not show in this pose', outside_stroke: 'held: a cylinder is at the end of its stroke',
  accelerating: 'held: accelerates too much', implausible: 'not plausible: check the load and the sensors',
  changing: 'held: the load changes', contact: 'held: touches something, or a sensor is wrong' };
const ENDS = { 4401: 'wrong token', 4429: 'too many pages are open', 4400: 'refused: an order that is none' };
const by = id => document.getElementById(id);
const put = (id, text) => { const node = by(id); if (node.textContent !== text) node.textContent = text; };
const kg = mass => mass === null || mass === undefined ? '–' : `${mass.toFixed(Math.abs(mass) < 100 ? 1 : 0)} kg`;
const span = pair => `${pair[0].toFixed(0)} to ${pair[1].toFixed(0)}`;
const machine = new MachineView(by('machine')), chart = new ChartView(by('chart'));
let socket = null, heard = 0, framed = -Infinity, last = null, fixed = {}, number = 0, trouble = '', missed = null;
const asked = new Map();

function stored() {
  const given = new URLSearchParams(location.hash.slice(1)).get('token');
  if (given) {
    try { localStorage.setItem('token', given); } catch (error) { /* private mode: the address has it */ }
    return given;
  }
  try { return localStorage.getItem('token') || ''; } catch (error) { return ''; }
}

function connect() {
  socket = new WebSocket(`${location.protocol === 'https:' ? 'wss' : 'ws'}://${location.host}/live`);
  const mine = socket;
  heard = performance.now();
  mine.onopen = () => { heard = performance.now(); };
  mine.onmessage = event => { if (mine === socket) { heard = performance.now(); take(JSON.parse(event.data)); } };
  mine.onclose = event => {
    if (mine !== socket) return;
    socket = null;
    trouble = ENDS[event.code] || '';
    if (event.code === 4401) ask();
    else setTimeout(connect, AGAIN);
  };
}

// The viewer for the token; the connection is made again with it.
function ask() {
  if (socket) { const old = socket; socket = null; old.close(); }
  trouble = trouble || 'needs its token';
  by('token-box').open || by('token-box').showModal();
}

function take(said) {
  if (said.kind === 'token') { const token = stored(); if (token) socket.send(JSON.stringify({ token })); else ask(); return; }
  trouble = '';
  if (said.kind === 'frame') { framed = performance.now(); last = said; requestAnimationFrame(show); }
  else if (said.kind === 'machine') { fixed = said; put('name', said.name); document.title = `Scale ${said.name}`; }
  else if (said.kind === 'totals') loads(said.totals);
  else if (said.kind === 'engineer') engineer(said);
  else if (said.kind === 'budget') budget(said.load);
  else if (said.kind === 'answer') tell(said.success, `${asked.get(said.number)?.label || ''}: ${words(said.text, said.success)}`, said.number);
  if (said.kind === 'machine') for (const [key, one] of asked) send(key, one);     // what was ordered before the connection was lost
}

function show() {
  const live = last.live, known = live.mass !== null;
  const digits = known && Math.abs(live.upper - live.lower) < 5 ? 1 : 0;
  const text = known ? live.mass.toFixed(digits) : '–';
  if (by('mass').dataset.text !== text) {
    by('mass').dataset.text = text;
    by('mass').replaceChildren(text, Object.assign(document.createElement('small'), { textContent: ' kg' }));
  }
  put('interval', known && live.lower !== null ? `${live.lower.toFixed(digits)} to ${live.upper.toFixed(digits)} kg (95 %)` : 'not known');
  document.body.classList.toggle('held', live.status !== 'updating' || Boolean(live.reason));
  document.body.classList.toggle('over', live.overload === 'over');
  by('why').dataset.text = live.status === 'updating' ? live.reason || (live.carrying ? 'weighing a load' : '')
    : [WORDS[live.status] ?? live.status, live.reason].filter(Boolean).join(' – ');
  const over = live.overload === 'over' ? `OVERLOAD: up to ${kg(live.gross_upper)}, limit ${kg(live.limit)}`
    : live.overload === 'near' ? `near the limit of ${kg(live.limit)}` : '';
  alarm([over, live.trouble && `records are not written: ${live.trouble}`, missed !== null && !live.carrying &&
    `${kg(missed)} hung here when the scale stopped and are gone: press Load done if the truck has got them`].filter(Boolean).join('; '));
  put('truck', live.truck);
  put('total', `${kg(live.total)} (${live.loads - live.untrusted})` + (live.untrusted ? `, not trusted ${kg(live.untrusted_total)} (${live.untrusted})` : ''));
  put('target', live.target ? kg(live.target) : 'none');
  put('remaining', live.remaining === null ? '–' : kg(live.remaining));
  by('filled').hidden = !live.target;
  if (live.target) by('filled').value = Math.max(0, Math.min(1, 1 - live.remaining / live.target));
  by('question').hidden = !live.question; put('question', live.question || '');
  put('tip', live.reached ? 'target reached' : live.tip_off > 0 ? `tip off ${kg(live.tip_off)}` : '');
  put('radius', live.radius === null ? 'radius not known' : `radius ${live.radius.toFixed(2)} m` + (live.limit === null ? '' : `, limit ${kg(live.limit)}`));
  if (!by('operator').hidden) { machine.draw(last.parts); chart.draw(fixed.chart, live); }
  judge();
}

function alarm(text) { by('alarm').hidden = !text; put('alarm', text); }

// A number that is old must not look as one that is good.
function judge() {
  const now = performance.now(), stale = now - framed > STALE;
  document.body.classList.toggle('stale', stale);
  const open = socket && socket.readyState === 1;
  put('link', trouble || (!open ? 'no connection to the machine' : stale ? 'connected, no data' : 'live'));
  put('why', !stale ? by('why').dataset.text || '' : framed < 0 ? 'no data yet'
    : `STALE: no data for ${Math.floor((now - framed) / 1000)} s`);
  if (!open) for (const [key, one] of asked) if (now - one.at > WAITS) lost(key, one);
  if (socket && now - heard > SILENT) { const dead = socket; dead.onclose({ code: 1006 }); dead.close(); }
}

function row(cells, kind = '') {
  const line = document.createElement('tr');
  line.className = kind;
  for (const cell of cells) line.append(Object.assign(document.createElement('td'), { textContent: cell }));
  return line;
}

function loads(totals) {
  by('loads').replaceChildren(...totals.last_loads.map(load => row([load.load, new Date(load.end_ns / 1e6).toLocaleTimeString(), load.truck,
    load.mass.toFixed(1), span(load.interval), load.counts ? load.trusted ? '' : 'not trusted' : load.status.replace('_', ' ')], load.counts ? '' : 'out')));
  missed = totals.missed;
  by('tare').textContent = totals.attachment ? `Tare: ${totals.attachment}` : 'Tare';
}

function engineer(said) {
  const short = value => value === null ? '–' : value.toPrecision(5);
  by('channels').replaceChildren(...said.channels.map(([name, value, innovation, deviation]) => {
    const ratio = innovation === null || !deviation ? null : innovation / deviation;
    const line = row([name, short(value), short(innovation), short(deviation), ratio === null ? '–' : ratio.toFixed(2)]);
    if (Math.abs(ratio) > 3) line.lastChild.className = 'far';
    return line;
  }));
  put('nis', `NIS ${said.nis === null ? '–' : said.nis.toFixed(2)} of ${said.nis_dof}; state ${said.status} ${said.reason}`);
  by('faults').replaceChildren(...(said.faults.length ? said.faults.map(fault => `${fault.name}: ${fault.text}`) : ['none']).map(
    text => Object.assign(document.createElement('li'), { textContent: text })));
}

function budget(load) {
  put('budget-of', `Load ${load.load}: ${kg(load.mass)}, standard deviation ${load.stddev.toFixed(2)} kg, of it`);
  const causes = Object.entries(load.common).sort((a, b) => Math.abs(b[1]) - Math.abs(a[1])).slice(0, 12);
  by('budget').replaceChildren(row(['its own (averages out over loads)', `${load.own.toFixed(2)} kg`]),
    ...causes.map(([cause, size]) => row([cause, `${size.toFixed(2)} kg`])));
}

function words(text, success) {
  if (!success) return text;
  try {
    const record = JSON.parse(text);
    return record.mass === undefined ? record.truck || 'done' : `${record.truck || ''} ${kg(record.mass)}`;
  } catch (error) { return text || 'done'; }
}

let hide = 0;
function tell(success, text, key) {
  asked.delete(key);
  const box = by('answer');
  box.className = success ? '' : 'bad';
  box.textContent = success ? text : `NOT DONE – ${text}`;
  box.hidden = false;
  clearTimeout(hide);
  hide = setTimeout(() => { box.hidden = true; }, success ? 4000 : 15000);
}

// One message for an order, with a key of its own: it is done once, though it may be sent again after the connection was lost.
function order(label, action, more = {}) {
  number += 1;
  if (!socket || socket.readyState !== 1) { tell(false, `${label}: no connection to the machine`, number); return; }
  asked.set(number, { label, at: performance.now(),
    text: JSON.stringify({ do: action, number, key: `${Date.now().toString(36)}-${Math.random().toString(36).slice(2)}`, ...more }) });
  send(number, asked.get(number));
}

function send(key, one) {
  if (performance.now() - one.at > WAITS) lost(key, one);
  else socket.send(one.text);
}

function lost(key, one) { tell(false, `${one.label}: the connection was lost, look whether it was done`, key); }

for (const button of document.querySelectorAll('[data-do]')) button.onclick = () =>
  order(button.textContent, button.dataset.do, button.dataset.do === 'undo' && last ? { expected: last.live.last_load || 0 } : {});
by('tare').onclick = () => {
  by('attachments').replaceChildren(...['', ...(fixed.attachments || [])].map(name => {
    const button = Object.assign(document.createElement('button'), { textContent: name || 'no attachment', type: 'button' });
    button.onclick = () => { by('tare-box').close(); order('Tare', 'tare', { attachment: name }); };
    return button;
  }));
  by('tare-box').showModal();
};
by('question').onclick = by('tare').onclick;
let seen = 0;       // which truck it was when the form was opened
by('new-truck').onclick = () => { seen = last ? last.live.truck_number || 0 : 0; by('truck-name').value = ''; by('truck-target').value = last ? last.live.target : 0; by('truck-form').showModal(); };
by('truck-form').onclose = () => {
  if (by('truck-form').returnValue === 'go') order('New truck', 'new_truck',
    { truck: by('truck-name').value, target: Number(by('truck-target').value), expected: seen });
  by('truck-form').returnValue = '';
};
by('token-box').onclose = () => { location.hash = `token=${encodeURIComponent(by('token').value)}`; connect(); };
by('answer').onclick = () => { by('answer').hidden = true; };
for (const name of ['operator', 'engineer']) by(`to-${name}`).onclick = () => {
  for (const other of ['operator', 'engineer']) { by(other).hidden = other !== name; by(`to-${other}`).setAttribute('aria-pressed', String(other === name)); }
};
setInterval(judge, 200);
connect();
