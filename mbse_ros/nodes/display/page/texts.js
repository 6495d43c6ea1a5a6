// SPDX-License-Identifier: Apache-2.0
// Texts of the chosen language, and numbers as people read them: digits by what is known, masses in kg or t.
'use strict';

const by = id => document.getElementById(id);
const put = (id, text) => { const node = by(id); if (node.textContent !== text) node.textContent = text; };
const asked_for = new URLSearchParams(location.hash.slice(1));
let texts = {}, english = {}, language = 'en', unit = '', largest = 0;     // unit: '' for the one that fits

// A choice of this tablet: that of the address, which is kept, else the one that was kept.
function chosen(name) {
  try {
    if (asked_for.get(name)) localStorage.setItem(name, asked_for.get(name));
    return localStorage.getItem(name) || '';
  } catch (error) { return asked_for.get(name) || ''; }       // private mode: the address has it
}

function keep(name, value) { try { localStorage.setItem(name, value); } catch (error) { /* private mode */ } }

// The text of a key with {0}, {1}, ... filled in.
function say(key, ...values) {
  return (texts[key] ?? english[key] ?? key).replace(/\{(\d)\}/g, (_, k) => values[k]);
}

// All languages, once; then the page in the one that was chosen, else in the browser's first that there is.
async function translated() {
  const all = await (await fetch('texts.json')).json();
  const wanted = [chosen('lang'), ...navigator.languages.map(name => name.slice(0, 2)), 'en'];
  language = wanted.find(name => name in all);
  texts = all[language]; english = all.en;
  document.documentElement.lang = language;
  for (const node of document.querySelectorAll('[data-text]')) node.textContent = say(node.dataset.text);
  for (const node of document.querySelectorAll('[data-label]')) node.setAttribute('aria-label', say(node.dataset.label));
  for (const node of document.querySelectorAll('[data-title]')) node.title = say(node.dataset.title);
  by('language').replaceChildren(...Object.keys(all).map(name => new Option(all[name].language, name, false, name === language)));
  by('unit').value = unit = chosen('unit');
}

const number = (value, decimals, least = decimals) => new Intl.NumberFormat(language, { minimumFractionDigits: least,
  maximumFractionDigits: decimals }).format(value === 0 ? 0 : value);

// The division of a scale, 1, 2 or 5 times a power of ten, kg, at most half of what the value may be off to either side.
function division(half) {
  if (!(half > 0)) return 1;
  const ten = 10 ** Math.floor(Math.log10(half / 2));
  return Math.max(0.1, ten * [5, 2, 1].find(k => k * ten <= half / 2 * (1 + 1e-9)));
}

const in_tonnes = value => unit ? unit === 't' : Math.max(largest, Math.abs(value)) >= 10000;

// A mass, kg, as [number, unit]; half: of its interval; way: rounded to the nearest, or an end of an interval outwards;
// beside: another one, whose unit it shares.
function mass_parts(value, half = 0, way = Math.round, beside = value) {
  if (value === null || value === undefined) return ['–', ''];
  const step = division(half), tonnes = in_tonnes(beside), shown = way(value / step - (way === Math.ceil ? 1e-6 : -1e-6)) * step;
  const decimals = Math.max(0, (tonnes ? 3 : 0) - Math.floor(Math.log10(step) + 1e-9));
  return [number(shown * (tonnes ? 1e-3 : 1), decimals, half ? decimals : 0), tonnes ? 't' : 'kg'];
}

const mass = (...of) => mass_parts(...of).join('\u00a0').trim();
const half_of = pair => pair && pair[0] !== null ? (pair[1] - pair[0]) / 2 : 0;

// The ends of an interval, rounded outwards, so that it holds what it held.
function ends(pair) {
  const half = half_of(pair), middle = (pair[0] + pair[1]) / 2;
  return [mass_parts(pair[0], half, Math.floor, middle)[0], mass_parts(pair[1], half, Math.ceil, middle).join('\u00a0')];
}

const count = n => say(n === 1 ? 'loads_one' : 'loads_many', n);

// Language and unit of this tablet.
by('to-settings').onclick = () => by('settings-box').showModal();
by('settings-box').onclose = () => {
  if (by('language').value === language && by('unit').value === unit) return;
  for (const [name, value] of [['lang', by('language').value], ['unit', by('unit').value]]) { keep(name, value); asked_for.set(name, value); }
  location.hash = asked_for;
  location.reload();
};
