# SPDX-License-Identifier: Apache-2.0
"""A log that does not fit into memory is refused before the system ends the process."""

import pytest
from cli_support import mbse, recorded, refused

from mbse_ros.errors import BagError
from mbse_ros.offline import bag as bags
from mbse_ros.offline import memory


def test_the_rest_is_foreseen(monkeypatch):
    now = iter([1e9, 1.5e9, 3e9])
    monkeypatch.setattr(memory, 'used', lambda: next(now))
    monkeypatch.setattr(memory, 'available', lambda: 5e9)
    room = memory.Room('day')
    room.check(100, 1000)           # 0.5 GB for a tenth: 4.5 more, and 4.8 are left
    with pytest.raises(BagError, match=r'day: the whole log takes about 20\.0 GB .* 4\.8 GB are'):
        room.check(100, 1000)


def test_what_the_system_says(tmp_path, monkeypatch):
    assert memory.used() > 1e7 and memory.available() > 0
    monkeypatch.setattr(memory, 'MEMINFO', tmp_path / 'meminfo')
    monkeypatch.setattr(memory, 'CGROUP', tmp_path)
    monkeypatch.setattr(memory, 'STATM', tmp_path / 'statm')
    assert memory.used() == 0 and memory.available() == float('inf')
    (tmp_path / 'meminfo').write_text('MemTotal:  16000000 kB\nMemAvailable:   2000 kB\nHugePages_Total:       0\n')
    assert memory.available() == 2_048_000
    (tmp_path / 'memory.max').write_text('max\n')
    (tmp_path / 'memory.current').write_text('1000\n')
    assert memory.available() == 2_048_000
    (tmp_path / 'memory.max').write_text('501000\n')
    assert memory.available() == 500_000


def test_a_bag_that_does_not_fit(tmp_path, monkeypatch):
    """On the command line, in one line, with what helps."""
    bag = recorded(tmp_path / 'bag', until=2.0)
    monkeypatch.setattr(bags, 'LOOK', 200)
    assert mbse('estimate', bag).status == 0
    monkeypatch.setattr(memory, 'available', lambda: memory.SPARE - 1.0)
    assert '`mbse loads` and `mbse fleet` weigh logs of any length' in refused('estimate', bag)
