# SPDX-License-Identifier: Apache-2.0
"""A log that leaves no memory is refused before the system ends the process."""

from cli_support import mbse, recorded, refused

from mbse_ros.offline import bag as bags


def test_what_the_system_says(tmp_path, monkeypatch):
    assert bags.available() > 0
    monkeypatch.setattr(bags, 'MEMINFO', tmp_path / 'meminfo')
    monkeypatch.setattr(bags, 'CGROUP', tmp_path)
    assert bags.available() == float('inf')
    (tmp_path / 'meminfo').write_text('MemTotal:  16000000 kB\nMemAvailable:   2000 kB\nHugePages_Total:       0\n')
    assert bags.available() == 2_048_000
    (tmp_path / 'memory.max').write_text('max\n')
    (tmp_path / 'memory.current').write_text('1000\n')
    assert bags.available() == 2_048_000
    (tmp_path / 'memory.max').write_text('501000\n')
    assert bags.available() == 500_000


def test_a_bag_that_does_not_fit(tmp_path, monkeypatch):
    """On the command line, in one line, with what helps."""
    bag = recorded(tmp_path / 'bag', until=2.0)
    monkeypatch.setattr(bags, 'LOOK', 50)
    assert mbse('estimate', bag).status == 0
    monkeypatch.setattr(bags, 'available', lambda: bags.SPARE - 1.0)
    assert '`mbse loads` and `mbse fleet` weigh logs of any length' in refused('estimate', bag)
