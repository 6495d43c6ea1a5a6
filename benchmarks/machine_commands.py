# SPDX-License-Identifier: Apache-2.0
"""Valve commands by which plants are compared: (time s, command V), linear in between, constant before and after.

They start at the file's ``initial`` position. Every cylinder goes out and in and stands still in between, sometimes
alone, sometimes with the others, and none reaches an end of its stroke. No imports: anybody may read this table.
"""

COMMANDS = {
    'zx200': {
        'boom_valve': ((0.0, 0.0), (0.3, 0.0), (0.6, 5.0), (2.6, 5.0), (2.9, 0.0), (4.8, 0.0), (5.1, -3.0), (6.2, -3.0),
                       (6.5, 0.0), (7.6, 0.0), (7.9, 4.0), (8.4, 4.0), (8.7, 0.0)),
        'arm_valve': ((0.0, 0.0), (1.0, 0.0), (1.3, 4.0), (3.8, 4.0), (4.1, 0.0), (4.6, 0.0), (4.9, -3.5), (6.9, -3.5),
                      (7.2, 0.0), (8.0, 0.0), (8.3, 2.0), (9.0, 2.0), (9.3, 0.0)),
        'bucket_valve': ((0.0, 0.0), (1.8, 0.0), (2.0, 5.0), (3.4, 5.0), (3.6, 0.0), (5.6, 0.0), (5.8, -4.0),
                         (7.0, -4.0), (7.2, 0.0), (8.6, 0.0), (8.8, 3.0), (9.2, 3.0), (9.4, 0.0)),
    },
    'patu655': {
        'lift_valve': ((0.0, 0.0), (0.3, 0.0), (0.6, 4.0), (3.0, 4.0), (3.3, 0.0), (5.0, 0.0), (5.3, -3.0), (6.8, -3.0),
                       (7.1, 0.0), (8.2, 0.0), (8.5, 3.0), (9.2, 3.0), (9.5, 0.0)),
        'tilt_valve': ((0.0, 0.0), (1.2, 0.0), (1.5, -4.0), (3.6, -4.0), (3.9, 0.0), (5.6, 0.0), (5.9, 3.5), (7.6, 3.5),
                       (7.9, 0.0), (8.6, 0.0), (8.9, -2.0), (9.4, -2.0), (9.6, 0.0)),
    },
}
COMMANDS['zx200_can'] = COMMANDS['zx200']
