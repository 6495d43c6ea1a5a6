// SPDX-License-Identifier: Apache-2.0
// The operator's page: shows what display_node says, and sends what the buttons ask for.
'use strict';

const STALE = 1000, SILENT = 3500, AGAIN = 1000, WAITS = 10000;      // ms
const MOST = 3;     // reasons at once; the engineer's page has all
const ENDS = { 4401: 'wrong_token', 4429: 'full', 4400: 'refused' };
// What an operator reads of a kind of fault: 'fault_' and this; '': the status says it.
const FAULTS = { missing: 'sensor', stuck: 'sensor', rejected: 'sensor', jumped: 'sensor', vacuum: 'sensor', saturated: 'sensor',
  far: 'sensor', unit: 'sensor', rare: 'rare', unmeasured: 'sensor', not_finite: 'state', out_of_range: 'state', vague: 'state',
  settling: '', restarted: 'state', unchecked: 'state', misfit: 'state', outside_force: '', unsolved: 'state', doubted: 'state',
  first_mass: 'first', paused: 'paused', unseen: 'paused', limits: 'limits', contradiction: 'contradiction', load_changes: '',
  surprise: 'contradiction', not_trusted: 'not_trusted', singular: 'state', unweighed: '', exchanged: 'hoses', force_balance: 'balance' };
const machine = new MachineView(by('machine')), chart = new ChartView(by('chart'));
let socket = null, heard = 0, framed = -Infinity, last = null, fixed = {}, sent = 0, trouble = '', totals = null, quality = 'stale';
const asked = new Map();

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
  trouble = trouble || 'token_needed';
  by('token-box').open || by('token-box').showModal();
}

function take(said) {
  if (said.kind === 'token') { const token = chosen('token'); if (token) socket.send(JSON.stringify({ token })); else ask(); return; }
  trouble = '';
  if (said.kind === 'frame') { framed = performance.now(); last = said; requestAnimationFrame(show); }
  else if (said.kind === 'machine') about(said);
  else if (said.kind === 'totals') {
    totals = said.totals;
    show_loads(totals);
    put('tare', totals.attachment ? `${say('tare')}: ${totals.attachment}` : say('tare'));
  }
  else if (said.kind === 'engineer') show_engineer(said);
  else if (said.kind === 'budget') show_budget(said.load);
  else if (said.kind === 'answer') tell(said.success, `${asked.get(said.number)?.label || ''}: ${words(said.text, said.success)}`, said.number);
  if (said.kind === 'machine') for (const [key, one] of asked) send(key, one);     // what was ordered before the connection was lost
}

function about(said) {
  fixed = said;
  largest = said.largest || 0;
  put('name', said.name);
  document.title = say('title', said.name);
  by('chart-box').hidden = !said.chart;
  document.body.classList.toggle('charted', Boolean(said.chart));
}

// One word for how good the mass is; its colour is that of a class of the same name.
function judged(live, half) {
  if (live.overload === 'over') return 'over';
  if (live.mass === null || live.lower === null || half > last.widest) return 'unknown';
  if (live.status === 'implausible') return 'doubtful';
  if (live.status !== 'updating') return 'held';
  return live.reason ? 'check' : 'good';
}

function show() {
  const live = last.live, known = live.mass !== null && live.lower !== null, half = known ? (live.upper - live.lower) / 2 : 0;
  quality = judged(live, half);
  const shown = known && half <= last.widest, [text, of] = mass_parts(shown ? live.mass : null, half), key = `${text} ${of}`;
  if (by('mass').dataset.text !== key) {
    by('mass').dataset.text = key;
    by('mass').replaceChildren(text, Object.assign(document.createElement('small'), { textContent: of && `\u00a0${of}` }));
  }
  put('interval', known ? say(shown ? 'between' : 'wide', ...ends([live.lower, live.upper])) : '');
  const why = [live.status === 'updating' ? '' : say(`status_${live.status}`),
    ...(live.faults || []).map(kind => FAULTS[kind] ? say(`fault_${FAULTS[kind]}`) : '')].filter(Boolean);
  by('why').dataset.text = [...new Set(why)].slice(0, MOST).join('. ') || (live.carrying ? say('carrying') : '');
  const over = live.overload === 'over' ? say('overload', mass(live.gross_upper, half), mass(live.limit))
    : live.overload === 'near' ? say('near', mass(live.limit)) : '';
  alarm([over, live.trouble && say('not_recorded', live.trouble), totals && totals.missed !== null && !live.carrying &&
    say('missed', mass(totals.missed))].filter(Boolean).join('; '), live.overload !== 'over' && !live.trouble);
  const size = beside(totals);
  put('truck', live.truck);
  put('total', mass(live.total, half_of(live.total_interval), Math.round, size));
  put('count', count(live.loads - live.untrusted) + (live.untrusted ? `; ${say('not_trusted_also', mass(live.untrusted_total), live.untrusted)}` : ''));
  put('target', live.target ? mass(live.target, 0, Math.round, size) : say('none'));
  put('remaining', mass(live.remaining, half_of(live.total_interval), Math.round, size));
  by('filled').hidden = !live.target;
  if (live.target) by('filled').value = Math.max(0, Math.min(1, 1 - live.remaining / live.target));
  by('question').hidden = !live.question;
  put('question', live.question ? `${say('question')} ${live.question}` : '');
  put('tip', live.reached ? say('reached') : live.tip_off > 0 ? say('tip_off', mass(live.tip_off, half)) : '');
  put('radius', (live.radius === null ? say('radius_unknown') : say('radius', number(live.radius, 1))) + (live.limit === null ? '' : `, ${say('limit', mass(live.limit))}`));
  put('payload', say('payload', `${live.status} ${live.reason}`));
  if (!by('operator').hidden) { machine.draw(fixed, last.parts, shown ? live.mass : null); chart.draw(fixed.chart, live); }
  judge();
}

function alarm(text, mild) { by('alarm').hidden = !text; by('alarm').className = mild ? 'mild' : ''; put('alarm', text); }

// A number that is old must not look as one that is good.
function judge() {
  const now = performance.now(), stale = now - framed > STALE, open = socket && socket.readyState === 1;
  document.body.className = [stale ? 'stale' : quality, fixed.chart ? 'charted' : ''].join(' ').trim();
  put('link', say(trouble || (!open ? 'no_connection' : stale ? 'silent' : 'live')));
  put('quality', say(`quality_${stale ? 'stale' : quality}`));
  put('why', !stale ? by('why').dataset.text || '' : framed < 0 ? say('no_data_yet') : say('stale_for', Math.floor((now - framed) / 1000)));
  if (!open) for (const [key, one] of asked) if (now - one.at > WAITS) lost(key, one);
  if (socket && now - heard > SILENT) { const dead = socket; dead.onclose({ code: 1006 }); dead.close(); }
}

function words(text, success) {
  if (!success) return text;
  try {
    const record = JSON.parse(text);
    return record.mass === undefined ? record.truck || say('done') : `${record.truck || ''} ${mass(record.mass, half_of(record.interval))}`;
  } catch (error) { return text || say('done'); }
}

let hide = 0;
function tell(success, text, key) {
  asked.delete(key);
  const box = by('answer');
  box.className = success ? '' : 'bad';
  box.textContent = success ? text : say('not_done', text);
  box.hidden = false;
  clearTimeout(hide);
  hide = setTimeout(() => { box.hidden = true; }, success ? 4000 : 15000);
}

// One message for an order, with a key of its own: it is done once, though it may be sent again after the connection was lost.
function order(label, action, more = {}) {
  sent += 1;
  if (!socket || socket.readyState !== 1) { tell(false, `${label}: ${say('no_connection')}`, sent); return; }
  asked.set(sent, { label, at: performance.now(),
    text: JSON.stringify({ do: action, number: sent, key: `${Date.now().toString(36)}-${Math.random().toString(36).slice(2)}`, ...more }) });
  send(sent, asked.get(sent));
}

function send(key, one) {
  if (performance.now() - one.at > WAITS) lost(key, one);
  else socket.send(one.text);
}

function lost(key, one) { tell(false, say('lost', one.label), key); }

// What a dialog does where it is closed by its button, not by Cancel.
function closed(box, then) {
  by(box).returnValue = '';
  by(box).onclose = () => { if (by(box).returnValue === 'go') then(); };
  by(box).showModal();
}

// Zero and Undo change what is on record: one press too many must not.
function confirmed(action, text, then) {
  put('confirm-title', say(action));
  put('confirm-text', text);
  put('confirm-go', say(action));
  closed('confirm-box', then);
}

by('operator').querySelector('[data-do=zero]').onclick = () =>
  confirmed('zero', say('zero_ask', by('mass').textContent), () => order(say('zero'), 'zero'));
by('operator').querySelector('[data-do=undo]').onclick = () => {
  const expected = last ? last.live.last_load || 0 : 0, load = totals && totals.last_loads.find(one => one.number === expected);
  confirmed('undo', load ? say('undo_ask', `${load.load}, ${load.truck}, ${weighed(load)}`) : say('undo_ask_none'),
    () => order(say('undo'), 'undo', { expected }));
};
by('operator').querySelector('[data-do=load_done]').onclick = () => order(say('load_done'), 'load_done');
by('tare').onclick = () => {
  by('attachments').replaceChildren(...['', ...(fixed.attachments || [])].map(name => {
    const button = Object.assign(document.createElement('button'), { textContent: name || say('no_attachment'), type: 'button' });
    button.onclick = () => { by('tare-box').close(); order(say('tare'), 'tare', { attachment: name }); };
    return button;
  }));
  by('tare-box').showModal();
};
by('question').onclick = by('tare').onclick;
by('new-truck').onclick = () => {
  const seen = last ? last.live.truck_number || 0 : 0;       // which truck it was when the form was opened
  by('truck-name').value = '';
  by('truck-target').value = last ? last.live.target : 0;
  closed('truck-form', () => order(say('new_truck'), 'new_truck',
    { truck: by('truck-name').value, target: Number(by('truck-target').value), expected: seen }));
};
by('to-ticket').onclick = () => { if (totals) fill_ticket(totals, fixed.name); by('ticket-box').showModal(); };
by('print').onclick = () => window.print();
by('to-settings').onclick = () => by('settings-box').showModal();
by('settings-box').onclose = () => {
  if (by('language').value === language && by('unit').value === unit) return;
  for (const [name, value] of [['lang', by('language').value], ['unit', by('unit').value]]) { keep(name, value); asked_for.set(name, value); }
  location.hash = asked_for;
  location.reload();
};
by('token-box').onclose = () => { asked_for.set('token', by('token').value); chosen('token'); connect(); };
by('answer').onclick = () => { by('answer').hidden = true; };
for (const name of ['operator', 'engineer']) by(`to-${name}`).onclick = () => {
  for (const other of ['operator', 'engineer']) { by(other).hidden = other !== name; by(`to-${other}`).setAttribute('aria-pressed', String(other === name)); }
};
function begin() { translated().then(() => { connect(); judge(); setInterval(judge, 200); }, () => setTimeout(begin, AGAIN)); }
begin();
