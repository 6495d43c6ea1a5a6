// SPDX-License-Identifier: Apache-2.0
// What a test of a page finds wrong within a part of it (a selector): [complaints, how many things were looked at].
'use strict';

// Texts beyond the screen or their box; texts, controls and sections that lie over each other; buttons too small to touch.
function page_layout(root) {
  const bad = [], seen = [], wide = document.documentElement.clientWidth, name = node => `${node.tagName} ${node.id || node.className}`;
  if (document.documentElement.scrollWidth > wide) bad.push(`page ${document.documentElement.scrollWidth} of ${wide}`);
  for (const node of document.querySelector(root).querySelectorAll('*')) {
    if (!node.checkVisibility() || node.closest('svg') && node.tagName !== 'svg') continue;
    const box = node.getBoundingClientRect();
    if (!box.width && !box.height) continue;
    const direct = [...node.childNodes].filter(child => child.nodeType === 3 && child.textContent.trim());
    let rect = ['CANVAS', 'INPUT', 'SELECT', 'PROGRESS', 'svg'].includes(node.tagName) ? box : null;
    if (direct.length) {
      const range = document.createRange();
      range.setStartBefore(direct[0]); range.setEndAfter(direct[direct.length - 1]);
      const ink = range.getBoundingClientRect();
      rect = { left: ink.left, right: ink.right, top: Math.max(ink.top, box.top), bottom: Math.min(ink.bottom, Math.max(box.bottom, box.top + 1)) };
      if (getComputedStyle(node).display === 'inline') rect = ink;
      const field = node.closest('section, dialog, header').getBoundingClientRect();
      if (rect.left < field.left - 1 || rect.right > field.right + 1) bad.push(`${name(node)} beyond its field: ${node.textContent}`);
      if (rect.right > box.right + 1 || rect.left < box.left - 1) bad.push(`${name(node)} beyond its box: ${node.textContent}`);
      const scrolls = node.closest('#list, dialog');
      if (!scrolls && ink.bottom > field.bottom + 1) bad.push(`${name(node)} below its field: ${node.textContent}`);
    }
    if (rect && (rect.left < -1 || rect.right > wide + 1)) bad.push(`${name(node)} beyond the screen: ${node.textContent}`);
    if (rect && node.tagName !== 'OPTION') {
      if (!node.closest('#list')) for (const [other, two] of seen) {
        if (other.contains(node) || node.contains(other)) continue;
        const across = Math.min(rect.right, two.right) - Math.max(rect.left, two.left), down = Math.min(rect.bottom, two.bottom) - Math.max(rect.top, two.top);
        if (across > 2 && down > 3) bad.push(`${name(node)} "${node.textContent}" over ${name(other)} "${other.textContent}"`);
      }
      seen.push([node, node.tagName === 'BUTTON' ? box : rect]);
    }
    if (node.tagName === 'BUTTON' && (box.width < 44 || box.height < 44)) bad.push(`${name(node)} too small to touch`);
  }
  const parts = [...document.querySelectorAll(`${root} > section`)].filter(part => part.checkVisibility()).map(part => [part, part.getBoundingClientRect()]);
  parts.forEach(([one, a], k) => parts.slice(k + 1).forEach(([two, b]) => {
    if (Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1 && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 1) bad.push(`${name(one)} over ${name(two)}`);
  }));
  return [bad, seen.length];
}

// Texts whose contrast with what is behind them is below 4.5 (WCAG 2.2, 1.4.3).
function page_contrast(root) {
  const parts = text => (text.match(/[\d.]+/g) || []).map(Number);
  const light = ([r, g, b]) => [r, g, b].map(v => v / 255).map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4).reduce((sum, v, k) => sum + v * [0.2126, 0.7152, 0.0722][k], 0);
  const bad = [];
  let count = 0;
  for (const node of document.querySelector(root).querySelectorAll('*')) {
    if (!node.checkVisibility() || ![...node.childNodes].some(child => child.nodeType === 3 && child.textContent.trim())) continue;
    let back = node;
    while (back && (parts(getComputedStyle(back).backgroundColor)[3] ?? 1) === 0) back = back.parentElement;
    const [a, b] = [getComputedStyle(node).color, getComputedStyle(back || document.body).backgroundColor].map(text => light(parts(text))).sort((x, y) => y - x);
    count += 1;
    if ((a + 0.05) / (b + 0.05) < 4.5) bad.push(`${node.id || node.tagName} "${node.textContent}" ${((a + 0.05) / (b + 0.05)).toFixed(2)}`);
  }
  return [bad, count];
}
