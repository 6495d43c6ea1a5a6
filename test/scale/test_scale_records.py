# SPDX-License-Identifier: Apache-2.0
"""Records that survive: killed processes, full and foreign files, versions; each load once."""

from __future__ import annotations

import pickle
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from scale_support import scale, weighed
from source_tree import ROOT

from mbse_ros.errors import RecordsError
from mbse_ros.scale import store as store_module
from mbse_ros.scale.record import ENDED, LOAD, TAKEN, TARGET, UNDO, Record
from mbse_ros.scale.store import APPLICATION, RecordStore
from mbse_ros.scale.table import rows
from studies.shifts import Bucket, Shift

EXACT = {'stddev': (0.0, 0.0)}
CHILD = ('import sys; sys.path[:0] = ["test/support", "benchmarks"]; import scale_process; '
         'scale_process.main(*sys.argv[1:])')


@pytest.fixture
def path(tmp_path) -> Path:
    return tmp_path / 'deep' / 'loads.db'


@pytest.fixture
def store(path) -> Iterator[RecordStore]:
    with closing(RecordStore(path, 'excavator')) as found:
        yield found


class Child:
    """The process; ``confirmed``: what it has said is safe."""

    def __init__(self, path: Path, *options: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, '-c', CHILD, str(path), *options], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT)
        self.confirmed: list[str] = []

    def until(self, word: str) -> str:
        """Hear it out up to a line that begins so."""
        for line in self._process.stdout:
            text = line.decode().strip()
            if text.startswith('confirmed '):
                self.confirmed.append(text.partition(' ')[2])
            if text.startswith(word):
                return text
        raise AssertionError(f'the process ended before {word!r}')

    def send(self, item: object) -> None:
        self._process.stdin.write(pickle.dumps(item))
        self._process.stdin.flush()

    def kill(self) -> None:
        """As the kernel does; what it had said before counts."""
        self._process.send_signal(signal.SIGKILL)
        for line in self._process.stdout:
            if line.startswith(b'confirmed ') and line.endswith(b'\n'):
                self.confirmed.append(line.decode().strip().partition(' ')[2])
        self._process.wait()
        self._process.stdin.close()
        self._process.stdout.close()


def test_killed_three_times_within_a_shift(path) -> None:
    """While a load is carried, while one that the operator has counted still hangs there, and right after one was
    dropped: at the end each of the six is there once."""
    readings = list(Shift([Bucket(1000.0 + 100.0 * k) for k in range(6)], rate=5.0, **EXACT).readings())
    loaded = [k for k, r in enumerate(readings) if r.known and r.mass > 900.0]
    starts = [k for k in loaded if k - 1 not in loaded and k - 3 not in loaded]
    assert len(starts) == 6
    done, dropped = starts[3] + 12, starts[4] + 60
    kills = {starts[1] + 20: '', done + 5: 'counted', dropped: 'dropped'}
    children = [Child(path)]
    assert children[0].until('ready') == 'ready 0'
    for k, reading in enumerate(readings):
        child = children[-1]
        child.send(reading)
        if k == done:
            child.send('load_done')
        child.until('done')
        if k == dropped:
            while not any(word.startswith(LOAD) for word in child.confirmed):
                raise AssertionError('the fifth load is not confirmed yet')
        if k in kills:
            child.kill()
            children.append(Child(path))
            assert children[-1].until('ready') == f'ready {[1, 4, 5][len(children) - 2]}'
    children[-1].kill()
    confirmed = [word for child in children for word in child.confirmed if word.startswith(LOAD)]
    with closing(RecordStore(path, 'excavator')) as store:
        records = store.read()
        stage = scale(store)
    found = [f'{LOAD} {record.key}' for record in records if record.kind == LOAD]
    assert found == confirmed and len(found) == len(set(found)) == 6
    assert [row['mass_kg'] for row in rows(records)] == pytest.approx([1000.0 + 100.0 * k for k in range(6)], abs=20.0)
    assert stage.book.all.count == 6 and [row['who'] for row in rows(records)].count('operator') == 1


def test_killed_while_it_writes(path) -> None:
    """Three processes that add records as fast as they can, each killed in the midst: what was confirmed is there,
    and of what was not at most the one that was being written."""
    for name in 'abc':
        child = Child(path, '--fast', name)
        child.until(f'confirmed {name} 20')
        child.kill()
        with closing(RecordStore(path, 'excavator')) as store:
            keys = [record.key for record in store.read() if record.key.startswith(name)]
        assert keys[:len(child.confirmed)] == child.confirmed and len(keys) <= len(child.confirmed) + 1


def test_the_file_is_synced_with_each_record(store) -> None:
    """WAL and synchronous=FULL (2): a power cut takes nothing that was confirmed."""
    assert store._db.execute('PRAGMA journal_mode').fetchone() == ('wal',)
    assert store._db.execute('PRAGMA synchronous').fetchone() == (2,)


def test_a_scale_goes_on_where_it_was(store) -> None:
    stage = scale(store)
    stage.new_truck('T7', 5000.0)
    weighed(stage, Shift([Bucket(1000.0), Bucket(800.0)], **EXACT))
    stage.undo()
    again = scale(store)
    assert again.book.filling.name == 'T7' and again.book.filling.target == 5000.0
    assert again.book.all.mass == stage.book.all.mass and again.book.all.count == 1
    assert again.book.filling.place == stage.book.filling.place


def test_a_load_is_not_added_twice(store) -> None:
    """As of a bag that is played again into the same records."""
    shift = Shift([Bucket(1000.0), Bucket(800.0)], **EXACT)
    assert len(weighed(scale(store), shift)) == 2
    stage = scale(store)
    assert weighed(stage, Shift(shift.buckets, **EXACT)) == [] and not stage.trouble and not stage.pending
    assert stage.book.all.count == 2
    stage.undo()
    assert weighed(scale(store), Shift(shift.buckets, **EXACT)) == [] and scale(store).book.all.count == 1


def test_what_another_process_adds_is_seen(path) -> None:
    with closing(RecordStore(path, 'excavator')) as one, closing(RecordStore(path, 'excavator')) as two:
        first, second = scale(one), scale(two)
        weighed(first, Shift([Bucket(1000.0)], **EXACT))
        assert second.book.all.count == 0
        kinds = [record.kind for record in second.set_target(3000.0)]
        assert kinds == [TAKEN, LOAD, TARGET] and second.book.all.count == 1


def test_records_are_never_changed(store) -> None:
    store.append(Record(TARGET, 1, {'target': 1.0}), 0)
    for statement in ('UPDATE records SET data = 2', 'DELETE FROM records'):
        with pytest.raises(sqlite3.IntegrityError, match='never'):
            store._db.execute(statement)


def test_an_older_file_is_brought_up_to_date_and_a_newer_one_refused(path, monkeypatch) -> None:
    with closing(RecordStore(path, 'excavator')) as store:
        store.append(Record(TARGET, 1, {'target': 1.0}), 0)
    older = store_module.MIGRATIONS
    monkeypatch.setattr(store_module, 'MIGRATIONS', (*older, ('ALTER TABLE records ADD COLUMN driver TEXT',)))
    with closing(RecordStore(path, 'excavator')) as store:
        assert [record.data for record in store.read()] == [{'target': 1.0}]
        assert store._db.execute('SELECT driver FROM records').fetchall() == [(None,)]
        assert store._db.execute('PRAGMA user_version').fetchone() == (len(older) + 1,)
    monkeypatch.setattr(store_module, 'MIGRATIONS', older)
    with pytest.raises(RecordsError, match=f'version {len(older) + 1}.*newer mbse_ros.*up to {len(older)}'):
        RecordStore(path, 'excavator')


def test_a_migration_that_fails_changes_nothing(path, monkeypatch) -> None:
    RecordStore(path, 'excavator').close()
    older = store_module.MIGRATIONS
    monkeypatch.setattr(store_module, 'MIGRATIONS', (*older, ('CREATE TABLE more (x)', 'nonsense')))
    with pytest.raises(RecordsError, match='nonsense'):
        RecordStore(path, 'excavator')
    monkeypatch.setattr(store_module, 'MIGRATIONS', older)
    with closing(RecordStore(path, 'excavator')) as store:
        assert store._db.execute("SELECT count(*) FROM sqlite_master WHERE name = 'more'").fetchone() == (0,)


def test_foreign_files_are_refused(tmp_path) -> None:
    text, other, folder = tmp_path / 'text.db', tmp_path / 'other.db', tmp_path / 'folder'
    text.write_text('no database at all, but long enough to look at' * 40)
    with closing(sqlite3.connect(other)) as database:
        database.execute('CREATE TABLE things (x)')
        database.commit()
    folder.mkdir()
    for place, reason in ((text, 'not a database'), (other, 'none of loads'), (folder, 'unable to open'),
                          (text / 'loads.db', 'directory|exists')):
        with pytest.raises(RecordsError, match=reason):
            RecordStore(place, 'excavator')
    RecordStore(tmp_path / 'ours.db', 'excavator').close()
    with pytest.raises(RecordsError, match='of the machine excavator, expected those of crane'):
        RecordStore(tmp_path / 'ours.db', 'crane')


def test_a_file_that_is_held_by_another_is_not_lost(path, monkeypatch) -> None:
    monkeypatch.setattr(store_module, 'PATIENCE', 0.01)
    with closing(RecordStore(path, 'excavator')) as store, closing(sqlite3.connect(path)) as other:
        stage = scale(store)
        other.execute('BEGIN IMMEDIATE')
        assert weighed(stage, Shift([Bucket(1000.0)], **EXACT)) == [] and 'locked' in stage.trouble
        other.rollback()
        assert [record.kind for record in stage.flush()] == [TAKEN, LOAD]


def test_what_sql_sees(store) -> None:
    """The view `loads`, for those who read the file with other tools."""
    stage = scale(store)
    weighed(stage, Shift([Bucket(1000.0), Bucket(800.0)], **EXACT))
    stage.undo()
    stage.pending.append(Record(ENDED, 5))
    stage.flush()
    seen = store._db.execute('SELECT truck, round(mass_kg / 100) * 100, status, undone FROM loads').fetchall()
    assert seen == [('truck 1', 1000.0, 'weighed', 0), ('truck 1', 800.0, 'weighed', 1)]
    assert [record.kind for record in store.read()] == [TAKEN, LOAD, TAKEN, LOAD, UNDO, ENDED]
    assert store._db.execute('PRAGMA application_id').fetchone() == (APPLICATION,)
    assert [row['status'] for row in rows(store.read())] == ['weighed', 'undone']
