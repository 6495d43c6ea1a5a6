# SPDX-License-Identifier: Apache-2.0
"""Damaged files of records: what is whole is kept, the rest is named by its number, and the scale continues."""

from __future__ import annotations

import random
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from cli_support import mbse, refused
from scale_support import scale, weighed

from mbse_ros.errors import MbseError, RecordsError
from mbse_ros.scale import record_file
from mbse_ros.scale import store as store_module
from mbse_ros.scale.book import Book
from mbse_ros.scale.record import LOAD, REPAIRED, TARGET, Record
from mbse_ros.scale.record_file import read_records
from mbse_ros.scale.store import MIGRATIONS, RecordStore, repair
from studies.shifts import Bucket, Shift

PAGE = 4096
HANGS = 'WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT count(*) FROM c'


@pytest.fixture(scope='module')
def whole(tmp_path_factory) -> Path:
    """Eight loads, two trucks and an undo."""
    path = tmp_path_factory.mktemp('records') / 'loads.db'
    with closing(RecordStore(path, 'excavator')) as store:
        stage = scale(store)
        stage.new_truck('T7', 5000.0)
        weighed(stage, Shift([Bucket(500.0 + 100.0 * k) for k in range(8)], stddev=(0.0, 0.0), rate=5.0))
        stage.undo()
        stage.new_truck('T8')
        assert not stage.trouble
    return path


@pytest.fixture
def path(whole, tmp_path) -> Path:
    return Path(shutil.copy(whole, tmp_path / 'loads.db'))


def older(path: Path, new: Path) -> Path:
    """The same records as the version before checksums wrote them."""
    with closing(sqlite3.connect(new)) as db, closing(sqlite3.connect(path)) as old:
        for step in MIGRATIONS[0]:
            db.execute(step)
        db.execute(f'PRAGMA application_id = {record_file.APPLICATION}')
        db.execute('PRAGMA user_version = 1')
        db.execute("INSERT INTO meta VALUES ('machine', 'excavator')")
        db.executemany('INSERT INTO records VALUES (?, ?, ?, ?, ?, ?)', old.execute(
            'SELECT number, kind, stamp_ns, key, data, written FROM records'))
        db.commit()
        db.execute('PRAGMA journal_mode = WAL')
    return new


def spoil(path: Path, *pairs: tuple[bytes, bytes]) -> None:
    content = path.read_bytes()
    for old, new in pairs:
        assert content.count(old) and len(old) == len(new)
        content = content.replace(old, new, 1)
    path.write_bytes(content)


def mutated(content: bytes, rng: random.Random) -> tuple[str, bytes]:
    """One way in which a disk or a person damages a file."""
    some, kind = bytearray(content), rng.choice(('bit', 'bytes', 'cut', 'zeros', 'digit', 'noise', 'twice', 'header'))
    at = rng.randrange(len(some))
    page = at // PAGE * PAGE
    if kind == 'bit':
        some[at] ^= 1 << rng.randrange(8)
    elif kind == 'bytes':
        for _ in range(20):
            some[rng.randrange(len(some))] = rng.randrange(256)
    elif kind == 'cut':
        del some[at:]
    elif kind == 'zeros':
        some[page:page + PAGE] = bytes(PAGE)
    elif kind == 'digit':
        at = rng.choice([k for k, letter in enumerate(some) if 48 <= letter < 58])
        some[at] = 48 + (some[at] - 48 + rng.randrange(1, 10)) % 10
    elif kind == 'noise':
        some[at:at + 500] = rng.randbytes(len(some[at:at + 500]))
    elif kind == 'twice':
        other = rng.randrange(len(some)) // PAGE * PAGE
        some[page:page + PAGE] = some[other:other + PAGE]
    else:
        some[rng.randrange(100)] = rng.randrange(256)
    return kind, bytes(some)


def test_whatever_is_damaged_no_record_is_wrong_and_none_is_missed_in_silence(whole, tmp_path) -> None:
    """300 mutations: what is returned is as it was written; where less comes out it is said."""
    content, path, rng = whole.read_bytes(), tmp_path / 'x.db', random.Random(5)
    true = {record.number: record for record in read_records(whole).records}
    for _ in range(300):
        kind, some = mutated(content, rng)
        path.write_bytes(some)
        try:
            found = read_records(path)
        except MbseError as error:      # so little is left that nothing says that it was ours
            assert len(some) < 100 and str(path) in str(error)
            continue
        assert all(true[record.number] == record for record in found.records), kind
        assert len(found.records) == len(true) or found.damages, kind
        assert len(found.records) >= len(true) - 1 or kind not in ('bit', 'digit', 'header'), (kind, found.damages)


def test_what_is_on_pages_that_are_whole_is_kept(whole, tmp_path) -> None:
    """Each page zeroed in turn: a record is lost only if its own bytes are on that page."""
    content, path = whole.read_bytes(), tmp_path / 'x.db'
    records = read_records(whole).rows
    for page in range(0, len(content), PAGE):
        path.write_bytes(content[:page] + bytes(PAGE) + content[page + PAGE:])
        there = {row.number for row in read_records(path).rows}
        left = content[:page] + content[page + PAGE:]
        assert there == {row.number for row in records if row.checksum in left}


def test_a_changed_digit_is_found(path, tmp_path) -> None:
    """By the checksum of the record; in an older file by what its numbers say of each other, which finds no changed
    time."""
    number, mass = next((record.number, record.data['mass']) for record in read_records(path).records
                        if record.kind == LOAD)     # of 500 kg
    before = older(path, tmp_path / 'older.db')
    found = read_records(before)
    assert not found.damages and found.unverified == len(found.records) and 'not verified' in found.lines[-1]
    text = f'"mass": {mass!r}'.encode()
    for file, why in ((path, 'checksum'), (before, 'contradict')):
        spoil(file, (text, text.replace(b': 5', b': 8')))
        (lost, said), = read_records(file).damages
        assert lost == number and why in said and len(read_records(file).records) == len(found.records) - 1


def test_the_scale_continues_in_a_new_file(path) -> None:
    """With all that is whole: the damaged one is kept under another name, and it is said, once."""
    spoil(path, (b'"truck": "T8"', b'"truck"; "T8"'))
    before, damaged = read_records(path), path.read_bytes()
    assert [damage.line for damage in before.damages][0].startswith(f'record {before.lost[0]}: ')
    with closing(RecordStore(path, 'excavator')) as store:
        aside, = path.parent.glob('loads.damaged_*.db')
        assert aside.read_bytes() == damaged and aside.name in store.notice and before.damages[0].line in store.notice
        stage = scale(store)
        assert stage.book.all.count == 7 and stage.book.filling.name == 'T7'
        assert stage.set_target(100.0)
    with closing(RecordStore(path, 'excavator')) as store:
        assert store.notice == store.trouble == '' and store.read()[-1].kind == TARGET
    after = read_records(path)
    repaired, = (record for record in after.records if record.kind == REPAIRED)
    assert not after.damages and repaired.data['lost'] == list(before.lost) and aside.name in after.lines[0]
    assert after.rows[:len(before.rows)] == before.rows and len(list(path.parent.glob('*.db'))) == 2


def test_damage_while_the_scale_runs(path) -> None:
    """A record that another process has spoilt since is found when it is read again."""
    with closing(RecordStore(path, 'excavator')) as store, closing(sqlite3.connect(path)) as other:
        last = store.read()[-1].number
        other.execute('DROP TRIGGER records_stay')
        other.execute("INSERT INTO records (kind, stamp_ns, data, written, checksum) VALUES ('target', 1, '', '', '')"
                      .replace("1, ''", "1, '{}'"))
        other.commit()
        other.close()
        assert [record.kind for record in store.append(Record(TARGET, 2, {'target': 1.0}), last)] == [REPAIRED, TARGET]
        assert f'record {last + 1}' in store.notice
    assert not read_records(path).damages


def test_a_file_that_is_removed_while_the_scale_runs(path) -> None:
    """It is written again: all that was in it, and what comes."""
    before = read_records(path).rows
    with closing(RecordStore(path, 'excavator')) as store:
        last = store.read()[-1].number
        path.unlink()
        assert [record.kind for record in store.append(Record(TARGET, 2, {'target': 1.0}), last)] == [REPAIRED, TARGET]
        assert 'removed' in store.notice
    after = read_records(path)
    assert after.rows[:-2] == before and not after.damages and after.records[-1].data == {'target': 1.0}
    with closing(RecordStore(path, 'excavator')) as store:
        path.rename(path.with_name('x'))
        path.touch()
        with pytest.raises(RecordsError, match='another file'):
            store.append(Record(TARGET, 2, {'target': 1.0}), last)


@pytest.mark.parametrize('statement, why', [
    (f'CREATE TRIGGER more BEFORE INSERT ON records BEGIN SELECT ({HANGS}); END', 'trigger that is not ours: more'),
    (f'ALTER TABLE records RENAME TO old; CREATE VIEW records AS {HANGS}', 'another than ours'),
    ("UPDATE meta SET value = 'crane'", 'the name of its machine'),
    ('DROP TABLE meta', 'the name of its machine is not there'),
    ('PRAGMA user_version = 129', 'version 129'), ('PRAGMA application_id = 7', 'application 0x7')])
def test_a_schema_that_is_not_ours(path, monkeypatch, statement, why) -> None:
    """What hangs is not run; the records are whole."""
    count = len(read_records(path).records)
    with closing(sqlite3.connect(path)) as db:
        db.executescript(statement)
    found = read_records(path)
    assert [why in damage.text for damage in found.damages] == [True] and len(found.records) == count
    monkeypatch.setattr(record_file, 'LONGEST', 2.0)
    with closing(RecordStore(path, 'excavator')) as store:
        assert why in store.notice and store.append(Record(TARGET, 1, {'target': 1.0}), count)


def test_records_that_are_gone_are_missed(path) -> None:
    """In the middle, and at the end, where the count of the file is larger than its last number."""
    with closing(sqlite3.connect(path)) as db:
        db.execute('DROP TRIGGER records_keep')
        last, = db.execute('SELECT max(number) FROM records').fetchone()
        db.execute('DELETE FROM records WHERE number IN (3, 4, ?)', (last,))
        db.commit()
        db.execute('VACUUM')
    assert read_records(path).lost == (3, 4, last)
    with closing(RecordStore(path, 'excavator')) as store:
        assert store.append(Record(TARGET, 1, {'target': 1.0}), last)[-1].number == last + 2


def test_a_log_that_was_left_open_and_a_folder_that_cannot_be_written(path, tmp_path, monkeypatch) -> None:
    copy = tmp_path / 'copy' / 'loads.db'
    copy.parent.mkdir()
    with closing(RecordStore(path, 'excavator')) as store:
        added = store.append(Record(TARGET, 1, {'target': 7.0}), 0)[-1]
        for name in (path.name, path.name + '-wal'):
            shutil.copy(path.with_name(name), copy.with_name(name))
    before = {file.name: file.read_bytes() for file in copy.parent.iterdir()}
    monkeypatch.setattr(record_file.os, 'access', lambda folder, mode: False)
    assert read_records(copy).records[-1] == added and {
        file.name: file.read_bytes() for file in copy.parent.iterdir()} == before
    monkeypatch.undo()
    assert read_records(copy).records[-1] == added


def test_a_file_that_cannot_be_written_now_is_read_and_written_later(path, monkeypatch) -> None:
    """As of a full disk: the scale starts with its totals, says why records wait, and writes them when it can."""
    monkeypatch.setattr(record_file, 'PATIENCE', 0.01)
    monkeypatch.setattr(store_module, 'PATIENCE', 0.01)
    with closing(sqlite3.connect(path)) as other:
        other.execute('BEGIN IMMEDIATE')
        with closing(RecordStore(path, 'excavator')) as store:
            assert 'locked' in store.trouble and not store.notice
            stage = scale(store)
            assert stage.book.all.count == 7 and stage.set_target(1.0) == [] and 'locked' in stage.trouble
            other.rollback()
            assert [record.kind for record in stage.flush()] == [TARGET] and not store.trouble


def test_what_is_not_a_file_of_records(tmp_path) -> None:
    """It is refused, and stays as it is."""
    file, empty = tmp_path / 'x.db', tmp_path / 'empty.db'
    file.write_text('a note that is long enough to be looked at' * 40)
    empty.touch()
    for place, why in ((file, 'not a database'), (tmp_path, 'a folder'), (tmp_path / 'none.db', 'no such file')):
        assert why in refused('loads', '--records', place)
    with pytest.raises(RecordsError, match='not a database'):
        RecordStore(file, 'excavator')
    assert file.read_text().startswith('a note') and read_records(empty).records == ()
    zeros = tmp_path / 'zeros.db'       # what a power cut leaves: there is nothing in it that is of anybody else
    zeros.write_bytes(bytes(8192))
    with closing(RecordStore(zeros, 'excavator')) as store:
        assert store.notice and [record.kind for record in store.read()] == [REPAIRED]


def test_a_file_that_lost_all_is_no_success(path, tmp_path) -> None:
    """Cut to nothing, or behind its first page: what is said is not that nothing is lost."""
    empty = tmp_path / 'empty.db'
    empty.touch()
    done = mbse('loads', '--records', empty)
    assert done.status == 1 and done.warnings == [f'{empty}: {record_file.EMPTY}']
    with closing(RecordStore(empty, 'excavator')) as store:
        assert record_file.EMPTY in store.notice and store.read() == []
    with closing(RecordStore(empty, 'excavator')) as store:
        assert not store.notice
    path.write_bytes(path.read_bytes()[:PAGE])
    done = mbse('loads', '--records', path, '--repair')
    assert 'none is lost that is known of; there may have been more' in done.out


def test_the_commands(path, tmp_path) -> None:
    """Warnings with file and number, status 1; `--repair` makes a file that is whole, with the same loads."""
    spoil(path, (b'"truck": "T8"', b'"truck"; "T8"'))
    found, new = read_records(path), tmp_path / 'loads.repaired.db'
    done = mbse('loads', '--records', path, '--json', tmp_path / 'x.json', '-o', tmp_path / 'x.csv')
    assert done.status == 1 and done.warnings == [f'{path}: {line}' for line in found.lines]
    before = path.read_bytes()
    done = mbse('loads', '--records', path, '--repair')
    assert done.status == 0 and f'{len(found.rows)} records are whole, record {found.lost[0]} is lost' in done.out
    assert path.read_bytes() == before and 'there already' in refused('loads', '--records', path, '--repair')
    again, book, true = mbse('loads', '--records', new), Book(), Book()
    assert again.status == 0 and 'it was repaired' in again.warnings[0]
    for one, records in ((book, read_records(new).records), (true, found.records)):
        for record in records:
            one.apply(record)
    assert book.all.mass == true.all.mass and book.all.count == 7
    assert 'nothing to repair' in mbse('loads', '--records', new, '--repair').out
    assert repair(new, tmp_path / 'more.db').damages == () and not (tmp_path / 'more.db').exists()
    assert '--records' in refused('loads', path, '--repair') and f'--records {path}' in refused('loads', path)
