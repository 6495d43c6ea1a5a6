# SPDX-License-Identifier: Apache-2.0
"""All kinds of cases by their names."""

from .bags import McapBag, SqliteBag
from .files import MachineFile, MechanismFile, RobotFile, Table
from .nodes import Messages
from .parameters import LiveParameters, Replay, StartParameters

KINDS = {'machine': MachineFile, 'mechanism': MechanismFile, 'urdf': RobotFile, 'table': Table, 'mcap': McapBag,
         'sqlite3': SqliteBag, 'messages': Messages,
         'live': LiveParameters, 'start': StartParameters, 'replay': Replay}
