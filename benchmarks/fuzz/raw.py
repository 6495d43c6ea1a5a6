# SPDX-License-Identifier: Apache-2.0
"""Mutations of bytes and of text by its tokens: each a pure function of what it gets and a Random."""

from __future__ import annotations

import re
import struct
from random import Random

NUMBERS = ['0', '-0', '1', '-1', '5e-324', '1e-300', '1e-9', '1e9', '1e300', '-1e300', '1.8e308', '1e400', 'nan',
           '.nan', 'NaN', 'inf', '-.inf', '2147483648', '18446744073709551616', '9' * 400, '0x10', '1_000', '1,5', '٣',
           '+-1']
WORDS = ['', ' ', '""', "'", 'null', '~', 'true', 'a' * 3000, 'é', '😀', '\x00', '\x1b[31m', '\n', '\t', '\u2028', '&a',
         '*a', '<<', '!!python/object/apply:os.getcwd', '%', '{', '}', '[', ']', ':', '- ', '# ', '|', '../..', '/',
         '/dev/zero', '/dev/stdin', 'x' * 300 + '.yaml', 'con.\x00', '__class__', '1 kg', '5 %', '-3 mm']
INTEGERS = [0, 1, 2, 0x7f, 0x80, 0xff, 0xffff, 0x10000, 0x7fff_ffff, 0x8000_0000, 0xffff_fffe, 0xffff_ffff, 1 << 40,
            (1 << 62), (1 << 63) - 1, 1 << 63, (1 << 64) - 1]
DOUBLES = [0.0, -0.0, 1.0, -1.0, 5e-324, 1e-300, 1e-9, 1e9, 1e18, 1e300, -1e300, 1.7976931348623157e308, float('inf'),
           -float('inf'), float('nan')]
_TOKEN = re.compile(r'([\s\[\]{}:,<>="/]+)')
_NUMBER = re.compile(r'[-+]?\d[\d.]*(?:[eE][-+]?\d+)?')


def mutate_bytes(data: bytes, random: Random, times: int | None = None) -> bytes:
    """One to four changes: bits, bytes, extreme integers and doubles at any place, ranges cut, repeated or moved."""
    result = bytearray(data)
    for _ in range(times or random.choice([1, 1, 2, 4])):
        _change(result, random)
    return bytes(result)


def _change(data: bytearray, random: Random) -> None:
    kind, place = random.randrange(10), random.randrange(len(data) + 1)
    stop = min(len(data), place + random.choice([1, 2, 4, 8, 16, 64, 512]))
    if kind == 0 and place < len(data):
        data[place] ^= 1 << random.randrange(8)
    elif kind == 1 and place < len(data):
        data[place] = random.randrange(256)
    elif kind in (2, 3, 4):
        width, aligned = random.choice([1, 2, 4, 4, 8]), place
        aligned -= place % width if random.random() < 0.8 else 0
        number = random.choice(INTEGERS) % (1 << 8 * width)
        data[aligned:aligned + width] = number.to_bytes(width, random.choice(['little', 'little', 'big']))
    elif kind == 5:
        data[place & ~7:(place & ~7) + 8] = struct.pack('<d', random.choice(DOUBLES))
    elif kind == 6:
        del data[place:stop]
    elif kind == 7:
        data[place:place] = data[place:stop] * random.choice([1, 1, 2, 50])
    elif kind == 8:
        data[place:place] = random.choice([random.randbytes(random.choice([1, 4, 33])), bytes(64), b'\xff' * 16])
    else:
        del data[place:]


def mutate_text(text: str, random: Random) -> str:
    """One to three changes of tokens or lines; now and then one of brackets, or of lines without end."""
    for _ in range(random.choice([1, 1, 2, 3])):
        text = random.choice([_token, _token, _number, _number, _line, _line, _nest])(text, random)
    return text


def _token(text: str, random: Random) -> str:
    parts = _TOKEN.split(text)
    k = random.randrange(len(parts))
    action = random.randrange(5)
    if action == 0:
        parts[k] = random.choice(NUMBERS + WORDS)
    elif action == 1:
        parts[k] = ''
    elif action == 2:
        parts[k] = random.choice(parts)
    elif action == 3:
        parts.insert(k, random.choice(WORDS))
    else:
        j = random.randrange(len(parts))
        parts[k], parts[j] = parts[j], parts[k]
    return ''.join(parts)


def _number(text: str, random: Random) -> str:
    found = list(_NUMBER.finditer(text))
    if not found:
        return text
    one = random.choice(found)
    new = random.choice([*NUMBERS, f'{random.uniform(-10, 10):g}', one[0] + random.choice('e9-%.xx'), '-' + one[0]])
    return text[:one.start()] + new + text[one.end():]


def _line(text: str, random: Random) -> str:
    lines = text.split('\n')
    k = random.randrange(len(lines))
    action = random.randrange(5)
    if action == 0:
        lines[k:k + 1] = [lines[k]] * random.choice([2, 2, 3, 500])
    elif action == 1:
        del lines[k:k + random.choice([1, 1, 5])]
    elif action == 2:
        lines[k] = ' ' * random.choice([1, 2, 8, 900]) + lines[k]
    elif action == 3:
        lines[k] = lines[k].lstrip()
    else:
        j = random.randrange(len(lines))
        lines[k], lines[j] = lines[j], lines[k]
    return '\n'.join(lines)


def _nest(text: str, random: Random) -> str:
    place, count = random.randrange(len(text) + 1), random.choice([1, 3, 19, 21, 3000])
    opening = random.choice(['[', '{', '- ', '{a: ', '<a>', '(', '? ', '&a [', '"'])
    return text[:place] + opening * count + text[place:]
