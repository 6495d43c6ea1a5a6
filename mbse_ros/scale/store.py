# SPDX-License-Identifier: Apache-2.0
"""Records in an SQLite file: what is confirmed survives a killed process and a power cut.

A write-ahead log that is synced with each record (WAL, synchronous=FULL): a record is in the file before the scale says
that it is. Nothing is ever changed or removed; triggers refuse it to everybody. Each record has a checksum. The version
of the schema is SQLite's ``user_version``: an older file is brought up to date in one transaction, a newer one is
refused. A file that is damaged is kept under another name, and what is whole of it continues in a new one.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path
from uuid import uuid4

from ..errors import RecordsError
from ..resources import synced
from .record import REPAIRED, Damage, Record, Row, checked, checksum_of
from .record_file import (
    APPLICATION,
    AS_TEXT,
    CHECKSUM,
    EMPTY,
    MANY,
    PATIENCE,
    TABLE,
    TRIGGERS,
    RecordFile,
    Watch,
    is_damage,
    machine_checksum,
    read_records,
    told,
)

SAID = 20           # damages that a record of a repair names
MIGRATIONS = (      # from each version to the next
    ('CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT',
     TABLE, *TRIGGERS,
     "CREATE VIEW loads AS SELECT number, json_extract(data, '$.truck') AS truck, stamp_ns, "
     "json_extract(data, '$.mass') AS mass_kg, json_extract(data, '$.interval[0]') AS lower_kg, "
     "json_extract(data, '$.interval[1]') AS upper_kg, json_extract(data, '$.status') AS status, "
     "json_extract(data, '$.counts') AS counts, number IN (SELECT json_extract(data, '$.load') FROM records "
     "WHERE kind = 'undo') AS undone FROM records WHERE kind = 'load'"),
    (f'ALTER TABLE records ADD COLUMN {CHECKSUM} TEXT',),
)
INSERT = f'INSERT INTO records (number, kind, stamp_ns, key, data, written, {CHECKSUM}) VALUES (?, ?, ?, ?, ?, ?, ?)'


class RecordStore:
    """Records of one ``machine`` at ``path``; the file is made where it is not there. Without a name it must be there,
    and is of whichever it is.

    Several processes may have it open; each sees what the others have added when it adds something. ``notice``: what
    was wrong with the file, '' for nothing; ``trouble``: why it cannot be written now, though what it has was read.
    Raises RecordsError for what is no such file, one of another machine, or of a newer version.
    """

    def __init__(self, path: str | Path, machine: str | None = None) -> None:
        self.path, self.notice, self.trouble = Path(path), '', ''
        self._db: sqlite3.Connection | None = None
        self._found = self._look(machine)
        if self._found is not None and self._found.empty:
            self.notice = f'{self.path}: {EMPTY}'
        self.machine = machine or ('' if self._found is None else self._found.machine)
        try:
            try:
                self._connect(self._found)
            except _DamagedError as error:      # what was to be read is whole, what was to be written is not
                self._open(Damage(None, error.reason))
        except _RefusedError as error:
            if self._found is None:
                raise
            self.trouble = str(error)

    def close(self) -> None:
        """Let go of the file."""
        if self._db is not None:
            self._db.close()
            self._db = None

    def append(self, record: Record, after: int) -> list[Record]:
        """See Journal; a record whose key is there already is not added again."""
        try:
            return self._append(record, after)
        except _DamagedError as error:
            self._open(Damage(None, error.reason))
            return self._append(record, after)

    def read(self, after: int = 0) -> list[Record]:
        """See Journal."""
        found = [] if self._found is None else [record for record in self._found.records if record.number > after]
        if self._db is None:
            return found
        self._found = None      # of long files it is large
        with self._told():
            return found + self._read(found[-1].number if found else after)

    def _append(self, record: Record, after: int) -> list[Record]:
        if self._db is None:
            self._open()
        elif self._place != place_of(self.path):
            self._write_again()
        with self._told(), self._transaction() as db:
            if not record.key or db.execute('SELECT 1 FROM records WHERE key = ?', (record.key,)).fetchone() is None:
                last, = db.execute('SELECT max((SELECT coalesce(max(number), 0) FROM records), coalesce((SELECT seq '
                                   "FROM sqlite_sequence WHERE name = 'records'), 0))").fetchone()
                db.execute(INSERT, row_of(replace(record, number=last + 1), now()))
            return self._read(after)

    def _read(self, after: int) -> list[Record]:
        found = [checked(row) for row in self._rows(after)]
        for item in found:
            if isinstance(item, Damage):
                raise _DamagedError(str(self.path), item.line)
        return [item for item in found if isinstance(item, Record)]

    def _rows(self, after: int) -> list[Row]:
        assert self._db is not None
        return [Row(*row) for row in self._db.execute(
            f'SELECT {AS_TEXT}, CAST({CHECKSUM} AS BLOB) FROM records WHERE number > ? ORDER BY number', (after,))]

    def _look(self, machine: str | None) -> RecordFile | None:
        """What the file has, None where there is none, or nothing in it."""
        if machine is not None and not self.path.exists():
            return None
        found = read_records(self.path, len(MIGRATIONS))
        if machine is not None and found.machine not in ('', machine):
            raise RecordsError(str(self.path), f'records of the machine {found.machine}, expected those of {machine}')
        return found

    def _open(self, *damages: Damage) -> None:
        """Look at the file again, and open it."""
        self.close()
        self._found = self._look(self.machine) if self.machine else self._found
        self._connect(self._found, *damages)

    def _connect(self, found: RecordFile | None, *damages: Damage) -> None:
        """A connection to a file that is whole and up to date; ``damages``: what is wrong besides what was found."""
        with self._told():
            if found is not None and (found.damages or damages):
                self._renew(found, *damages)
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._db = sqlite3.connect(self.path, timeout=PATIENCE, isolation_level=None, check_same_thread=False)
            try:
                self._watch = Watch(self._db)
                self._db.execute('PRAGMA journal_mode = WAL')
                self._db.execute('PRAGMA synchronous = FULL')
                self._db.execute('PRAGMA foreign_keys = ON')
                with self._transaction() as db:
                    migrate(db, self.machine)
                self._place = place_of(self.path)
            except BaseException:
                self.close()
                raise
            self.trouble = ''

    def _renew(self, found: RecordFile, *more: Damage) -> None:
        """Continue in a new file with what is whole; the damaged one is kept beside."""
        aside = aside_of(self.path)
        part = self.path.with_name(f'.{uuid4().hex}{self.path.suffix}')
        damages = *found.damages, *more
        try:
            write_repaired(part, found.rows, self.machine, repaired_record(found, damages, aside.name))
            for ending in ('-wal', '-shm'):
                log = self.path.with_name(self.path.name + ending)
                if log.exists():
                    os.replace(log, aside.with_name(aside.name + ending))
            os.replace(self.path, aside)
            os.replace(part, self.path)
            synced(self.path.parent)
        finally:
            part.unlink(missing_ok=True)
        self.notice = (f'{self.path} was damaged and is kept as {aside.name}; what is whole, {len(found.rows)} of its '
                       'records, continues in a new file: ' + '; '.join(damage.line for damage in damages[:SAID]))
        self._found = read_records(self.path, len(MIGRATIONS))

    def _write_again(self) -> None:
        """The file has been removed, but this process has it open still."""
        with self._told():
            if self.path.exists():
                raise RecordsError(str(self.path), 'another file than the one that was opened is there: start again')
            found = RecordFile(self.path, self.machine, tuple(self._rows(0)), (), (), 1)
            found = replace(found, next_number=max((row.number for row in found.rows), default=0) + 1)
            self.close()
            for ending in ('-wal', '-shm'):
                self.path.with_name(self.path.name + ending).unlink(missing_ok=True)
            why = Damage(None, 'the file was removed while the scale ran')
            write_repaired(self.path, found.rows, self.machine, repaired_record(found, [why], ''))
            synced(self.path.parent)
            self.notice = f'{self.path}: {why.text}; its {len(found.rows)} records were written again'
        self._open()

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        """All or nothing; the file is locked for others from the start."""
        db = self._db
        assert db is not None
        self._watch.begin()
        db.execute('BEGIN IMMEDIATE')
        try:
            yield db
            db.execute('COMMIT')
        except BaseException:
            if db.in_transaction:
                db.execute('ROLLBACK')
            raise

    @contextmanager
    def _told(self) -> Iterator[None]:
        """Errors of SQLite and of the disk as ours; of a damage, and of a disk or another program that refuses, as
        such."""
        try:
            with told(self.path):
                yield
        except RecordsError as error:
            cause = error.__context__
            if isinstance(cause, OSError) or isinstance(cause, sqlite3.Error) and not is_damage(cause):
                raise _RefusedError(error.path, error.reason) from None
            if is_damage(cause) and not isinstance(cause, sqlite3.OperationalError):
                raise _DamagedError(error.path, error.reason) from None
            raise


class _RefusedError(RecordsError):
    """The file cannot be used now."""


class _DamagedError(RecordsError):
    """A file that was whole when it was opened."""


def now() -> str:
    """The computer's clock, UTC."""
    moment = datetime.now(timezone.utc)
    return f'{moment:%Y-%m-%dT%H:%M:%S}.{moment.microsecond // 1000:03d}Z'


def place_of(path: Path) -> tuple[int, int] | None:
    """Which file it is, None for none."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


def aside_of(path: Path) -> Path:
    """A new name for a file that is damaged, with the time."""
    stamp, count = f'{path.stem}.damaged_{datetime.now(timezone.utc):%Y%m%dT%H%M%S}', 1
    while (found := path.with_name(f'{stamp}{f"_{count}" if count > 1 else ""}{path.suffix}')).exists():
        count += 1
    return found


def row_of(record: Record, written: str) -> tuple[object, ...]:
    """A record as the table has it, with its checksum; raises ValueError for numbers that JSON has not."""
    key, data = record.key or None, json.dumps(dict(record.data), allow_nan=False)
    return (record.number, record.kind, record.stamp_ns, key, data, written,
            checksum_of(record.number, record.kind, record.stamp_ns, key, data, written))


def migrate(db: sqlite3.Connection, machine: str) -> None:
    """Bring a file up to date, in a transaction; another process may have done it meanwhile. Loads of two machines in
    one file would make one total: it belongs to one."""
    version, = db.execute('PRAGMA user_version').fetchone()
    for steps in MIGRATIONS[version:]:
        for step in steps:
            db.execute(step)
    if version < len(MIGRATIONS):
        db.execute(f'PRAGMA application_id = {APPLICATION}')
        db.execute(f'PRAGMA user_version = {len(MIGRATIONS)}')
    db.executemany('INSERT INTO meta VALUES (?, ?) ON CONFLICT (key) DO NOTHING',
                   (('machine', machine), ('machine_checksum', machine_checksum(machine))))


def write_repaired(path: Path, rows: Sequence[Row], machine: str, repaired: Record) -> None:
    """A new file with rows as they are, and the record of its repair."""
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute('PRAGMA synchronous = FULL')
        db.execute('BEGIN IMMEDIATE')
        migrate(db, machine)
        db.executemany(INSERT, ([item.decode() if isinstance(item, bytes) else item for item in row] for row in rows))
        db.execute(INSERT, row_of(repaired, now()))
        db.execute('COMMIT')
        db.execute('PRAGMA journal_mode = WAL')
    synced(path)


def repaired_record(found: RecordFile, damages: Sequence[Damage], file: str) -> Record:
    """Of a repair: from which ``file``, how many records were ``kept``, the numbers of those that were ``lost``, other
    numbers that are ``absent``, and why."""
    stamp, there = found.records[-1].stamp_ns if found.records else 0, {row.number for row in found.rows}
    absent = set(range(1, found.next_number)) - there - set(found.lost) if found.next_number < len(there) + MANY else ()
    return Record(REPAIRED, stamp, {'file': file, 'kept': len(found.rows), 'lost': list(found.lost),
                                    'absent': sorted(absent), 'because': [damage.line for damage in damages[:SAID]]},
                  number=found.next_number)


def repair(path: str | Path, output: Path) -> RecordFile:
    """Write what is whole of a damaged file into a new one, and return what was found; the file itself stays as it is,
    and of one that is whole no other is made.

    Raises RecordsError, also where ``output`` is there already.
    """
    found = read_records(path, len(MIGRATIONS))
    if not found.damages:
        return found
    with told(output):
        if output.exists():
            raise RecordsError(str(output), 'is there already; expected a new file for what is whole')
        part = output.with_name(f'.{uuid4().hex}{output.suffix}')
        try:
            write_repaired(part, found.rows, found.machine, repaired_record(found, found.damages, Path(path).name))
            os.replace(part, output)
            synced(output.absolute().parent)
        finally:
            part.unlink(missing_ok=True)
    return found
