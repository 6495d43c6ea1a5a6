// SPDX-License-Identifier: Apache-2.0
// The connection of a page to its server: made again where it is lost, its token, orders of buttons and their answers.
// The page has `received (said)`, what to do with a message, and `words (text, success)`, an answer for people.
'use strict';

const SILENT = 3500, AGAIN = 1000, WAITS = 10000;      // ms
const ENDS = { 4401: 'wrong_token', 4429: 'full', 4400: 'refused' };
let socket = null, heard = 0, sent = 0, trouble = '';
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
  if (said.kind === 'answer') tell(said.success, `${asked.get(said.number)?.label || ''}: ${words(said.text, said.success)}`, said.number);
  else received(said);
  if (said.kind === 'machine') for (const [key, one] of asked) send(key, one);     // what was ordered before the connection was lost
}

// Whether the server is there, in words; what was ordered and cannot be sent is given up, a dead connection is left.
function linked(stale) {
  const now = performance.now(), open = socket && socket.readyState === 1;
  if (!open) for (const [key, one] of asked) if (now - one.at > WAITS) lost(key, one);
  if (socket && now - heard > SILENT) { const dead = socket; dead.onclose({ code: 1006 }); dead.close(); }
  return say(trouble || (!open ? 'no_connection' : stale ? 'silent' : 'live'));
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

// What a press too many must not do is asked again.
function confirmed(action, text, then) {
  put('confirm-title', say(action));
  put('confirm-text', text);
  put('confirm-go', say(action));
  closed('confirm-box', then);
}

by('token-box').onclose = () => { asked_for.set('token', by('token').value); chosen('token'); connect(); };
by('answer').onclick = () => { by('answer').hidden = true; };

// Texts, then the connection; look: what the page does five times a second.
function begin(look) { translated().then(() => { connect(); look(); setInterval(look, 200); }, () => setTimeout(begin, AGAIN, look)); }
