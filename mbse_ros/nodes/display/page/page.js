// SPDX-License-Identifier: Apache-2.0
// The operator's page: shows what display_node says; what its buttons order goes by connection.js.
'use strict';

const STALE = 1000;     // ms
const MOST = 3;     // reasons at once; the engineer's page has all
// What an operator reads of a kind of fault: 'fault_' and this; '': the status says it.
const FAULTS = { missing: 'sensor', stuck: 'sensor', rejected: 'sensor', jumped: 'sensor', vacuum: 'sensor', saturated: 'sensor',
  far: 'sensor', unit: 'sensor', rare: 'rare', unmeasured: 'sensor', not_finite: 'state', out_of_range: 'state', vague: 'state',
  settling: '', restarted: 'state', unchecked: 'state', misfit: 'state', outside_force: '', unsolved: 'state', doubted: 'state',
  first_mass: 'first', paused: 'paused', unseen: 'paused', limits: 'limits', contradiction: 'contradiction', load_changes: '',
  surprise: 'contradiction', not_trusted: 'not_trusted', singular: 'state', unweighed: '', exchanged: 'hoses', force_balance: 'balance' };
const machine = new MachineView(by('machine')), chart = new ChartView(by('chart'));
let framed = -Infinity, last = null, fixed = {}, totals = null, quality = 'stale';

function received(said) {
  if (said.kind === 'frame') { framed = performance.now(); last = said; requestAnimationFrame(show); }
  else if (said.kind === 'machine') about(said);
  else if (said.kind === 'totals') {
    totals = said.totals;
    show_loads(totals);
    put('tare', totals.attachment ? `${say('tare')}: ${totals.attachment}` : say('tare'));
  }
  else if (said.kind === 'engineer') show_engineer(said);
  else if (said.kind === 'budget') show_budget(said.load);
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
  const now = performance.now(), stale = now - framed > STALE;
  document.body.className = [stale ? 'stale' : quality, fixed.chart ? 'charted' : ''].join(' ').trim();
  put('link', linked(stale));
  put('quality', say(`quality_${stale ? 'stale' : quality}`));
  put('why', !stale ? by('why').dataset.text || '' : framed < 0 ? say('no_data_yet') : say('stale_for', Math.floor((now - framed) / 1000)));
}

function words(text, success) {
  if (!success) return text;
  try {
    const record = JSON.parse(text);
    return record.mass === undefined ? record.truck || say('done') : `${record.truck || ''} ${mass(record.mass, half_of(record.interval))}`;
  } catch (error) { return text || say('done'); }
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
for (const name of ['operator', 'engineer']) by(`to-${name}`).onclick = () => {
  for (const other of ['operator', 'engineer']) { by(other).hidden = other !== name; by(`to-${other}`).setAttribute('aria-pressed', String(other === name)); }
};
begin(judge);
