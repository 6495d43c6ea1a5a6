# SPDX-License-Identifier: Apache-2.0
"""A scale in a process of its own, which a test kills: readings come on stdin, what is confirmed goes out on stdout.

    main(RECORDS)                   readings, pickled; `done N` follows the N-th one; a text calls a method
    main(RECORDS, '--fast', NAME)   adds records as fast as it can
"""

import pickle
import sys

from scale_support import scale

from mbse_ros.scale.record import TARGET, Record
from mbse_ros.scale.store import RecordStore
from studies.shifts import payload_of


def say(*words: object) -> None:
    print(*words, flush=True)


def main(path: str, *options: str) -> None:
    store = RecordStore(path, 'excavator')
    if options:
        for k in range(10 ** 9):
            for record in store.append(Record(TARGET, k, {'target': k}, f'{options[1]} {k}'), 10 ** 9):
                raise AssertionError(record)
            say('confirmed', f'{options[1]} {k}')
    stage = scale(store)
    say('ready', stage.book.all.count)
    count = 0
    while True:
        try:
            item = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        if isinstance(item, str):
            found = getattr(stage, item)()
        else:
            count += 1
            found = stage.take(item, payload_of(item))
        for record in found:
            say('confirmed', record.kind, record.key)
        if not isinstance(item, str):
            say('done', count)
