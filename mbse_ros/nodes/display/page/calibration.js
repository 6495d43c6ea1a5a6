// SPDX-License-Identifier: Apache-2.0
// The page of a calibration: the step that is wanted, how the motion is, the pose to go to; at the end the grade.
'use strict';

const STALE = 2000;     // ms
const TONES = { good: 'good', done: 'good', missing: 'over', silent: 'over' };      // class by kind of advice; else 'held'
const GRADES = { green: 'good', amber: 'held', red: 'over' };
const view = new MachineView(by('machine'));
let framed = -Infinity, last = null, result = null, fixed = {};

function received(said) {
  if (said.kind === 'frame') { framed = performance.now(); last = said; requestAnimationFrame(show); }
  else if (said.kind === 'machine') {
    fixed = said;
    largest = said.largest || 0;
    put('name', said.name);
    document.title = say('calibration_title', said.name);
  } else if (said.kind === 'result') { result = said; show_result(); }
}

const words = (text, success) => success ? say('done') : say('another_step');
const row = texts => { const line = document.createElement('tr'); line.append(...texts.map(text => Object.assign(document.createElement('td'), { textContent: text }))); return line; };

function show() {
  if (result) return;
  const { advice } = last, over = advice.kind === 'done', of = advice.kind === 'load' ? mass(last.load) : advice.of;
  put('step', over ? '' : say('step', last.number, last.count));
  put('advice', say(`advice_${advice.kind}`, of));
  by('done').value = last.progress;
  put('motion', over ? '' : say(last.sweeps ? 'motion_sweep' : 'motion_pose', last.cylinder) + (last.load ? `, ${say('with_load', mass(last.load))}` : ''));
  by('readings').replaceChildren(...(last.readings || []).map(one => row([one.channel.split('/').pop(), `${one.wanted.replace('+-', '±')} ${one.unit}`, one.now ? `${one.now} ${one.unit}` : '–'])));
  put('notes', last.notes.join('; '));
  by('all').value = last.all;
  put('left', over ? say('calculating') : say('left', last.minutes));
  by('confirm').disabled = !last.waits;
  for (const name of ['skip', 'end']) by(name).disabled = over;
  view.draw(fixed, last.parts || {}, last.load ?? null);
  judge();
}

function show_result() {
  by('result').hidden = false;
  by('step-box').hidden = by('picture').hidden = by('readings-box').hidden = by('all-box').hidden = true;
  put('grade', say(`grade_${result.color}`));
  put('accuracy', result.half_width ? say('accuracy', result.half_width) : '');
  by('reasons').replaceChildren(...result.reasons.map(text => Object.assign(document.createElement('li'), { textContent: text })));
  put('file', result.file ? say('written', result.file) : say('not_written'));
  by('skip').disabled = by('confirm').disabled = true;
  by('end').disabled = false;
  judge();
}

function judge() {
  const stale = !result && performance.now() - framed > STALE;
  document.body.className = stale ? 'stale' : result ? GRADES[result.color] : TONES[last.advice.kind] || 'held';
  put('link', linked(stale && !(last && last.advice.kind === 'done')));
}

by('confirm').onclick = () => order(say('confirm'), 'confirm', { expected: last.number });
by('skip').onclick = () => { const expected = last.number; confirmed('skip', say('skip_ask'), () => order(say('skip'), 'skip', { expected })); };
by('end').onclick = () => result ? order(say('end'), 'end') : confirmed('end', say('end_ask'), () => order(say('end'), 'end'));
begin(judge);
