# SPDX-License-Identifier: Apache-2.0
"""Records in an SQLite file: what is confirmed survives a killed process and a power cut.

A write-ahead log that is synced with each record (WAL, synchronous=FULL): a record is in the file before the scale says
that it is. Nothing is ever changed or removed; triggers refuse it to everybody. The version of the schema is SQLite's
``user_version``: an older file is brought up to date in one transaction, a newer one is refused.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ..errors import RecordsError
from .record import Record

APPLICATION = 0x4D425345        # 'MBSE': what SQLite calls application_id
PATIENCE = 1.0      # s that another process may hold the file
MIGRATIONS = (      # from each version to the next
    ('CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT',
     'CREATE TABLE records (number INTEGER PRIMARY KEY AUTOINCREMENT, kind TEXT NOT NULL, stamp_ns INTEGER NOT NULL, '
     'key TEXT UNIQUE, data TEXT NOT NULL CHECK (json_valid(data)), written TEXT NOT NULL) STRICT',
     "CREATE TRIGGER records_stay BEFORE UPDATE ON records BEGIN SELECT RAISE(ABORT, 'records are never changed'); END",
     "CREATE TRIGGER records_keep BEFORE DELETE ON records BEGIN SELECT RAISE(ABORT, 'records are never removed'); END",
     "CREATE VIEW loads AS SELECT number, json_extract(data, '$.truck') AS truck, stamp_ns, "
     "json_extract(data, '$.mass') AS mass_kg, json_extract(data, '$.interval[0]') AS lower_kg, "
     "json_extract(data, '$.interval[1]') AS upper_kg, json_extract(data, '$.status') AS status, "
     "json_extract(data, '$.counts') AS counts, number IN (SELECT json_extract(data, '$.load') FROM records "
     "WHERE kind = 'undo') AS undone FROM records WHERE kind = 'load'"),
)


class RecordStore:
    """Records of one ``machine`` at ``path``; the file is made where it is not there. Without a name it must be there,
    and is of whichever it is.

    Several processes may have it open; each sees what the others have added when it adds something. Raises RecordsError
    for what is no such file, one of another machine, or of a newer version.
    """

    def __init__(self, path: str | Path, machine: str | None = None) -> None:
        self.path = Path(path)
        with self._told():
            if machine is None and not self.path.is_file():
                raise RecordsError(str(path), 'no such file; expected the records of a scale, such as loads_zx200.db')
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._db = sqlite3.connect(self.path, timeout=PATIENCE, isolation_level=None, check_same_thread=False)
            try:
                self._open()
                self.machine = self._machine(machine)
            except BaseException:
                self._db.close()
                raise

    def close(self) -> None:
        """Let go of the file."""
        self._db.close()

    def append(self, record: Record, after: int) -> list[Record]:
        """See Journal; a record whose key is there already is not added again."""
        with self._told(), self._transaction():
            self._db.execute(
                "INSERT INTO records (kind, stamp_ns, key, data, written) VALUES (?, ?, ?, ?, "
                "strftime('%Y-%m-%dT%H:%M:%fZ', 'now')) ON CONFLICT (key) DO NOTHING",
                (record.kind, record.stamp_ns, record.key or None, json.dumps(dict(record.data), allow_nan=False)))
            return self._read(after)

    def read(self, after: int = 0) -> list[Record]:
        """See Journal."""
        with self._told():
            return self._read(after)

    def _read(self, after: int) -> list[Record]:
        rows = self._db.execute('SELECT number, kind, stamp_ns, key, data FROM records WHERE number > ? '
                                'ORDER BY number', (after,))
        return [Record(kind, stamp_ns, json.loads(data), key or '', number)
                for number, kind, stamp_ns, key, data in rows]

    def _open(self) -> None:
        """Check what the file is, and bring it up to date."""
        version, = self._db.execute('PRAGMA user_version').fetchone()
        application, = self._db.execute('PRAGMA application_id').fetchone()
        tables, = self._db.execute('SELECT count(*) FROM sqlite_master').fetchone()
        if application != APPLICATION and (tables or version):
            raise RecordsError(str(self.path), 'an SQLite file, but none of loads; expected the records of a scale, '
                                               'such as loads_zx200.db')
        if version > len(MIGRATIONS):
            raise RecordsError(str(self.path), f'records of version {version}, written by a newer mbse_ros; this one '
                                               f'reads versions up to {len(MIGRATIONS)}: update it')
        self._db.execute('PRAGMA journal_mode = WAL')
        self._db.execute('PRAGMA synchronous = FULL')
        self._db.execute('PRAGMA foreign_keys = ON')
        if version < len(MIGRATIONS):
            self._migrate()

    def _migrate(self) -> None:
        """Bring the file up to date; another process may have done it meanwhile."""
        with self._transaction():
            version, = self._db.execute('PRAGMA user_version').fetchone()
            for steps in MIGRATIONS[version:]:
                for step in steps:
                    self._db.execute(step)
            self._db.execute(f'PRAGMA application_id = {APPLICATION}')
            self._db.execute(f'PRAGMA user_version = {len(MIGRATIONS)}')

    def _machine(self, machine: str | None) -> str:
        """Name of the machine that the records are of: loads of two machines in one file would make one total."""
        with self._transaction():
            if machine is not None:
                self._db.execute("INSERT INTO meta VALUES ('machine', ?) ON CONFLICT (key) DO NOTHING", (machine,))
            row = self._db.execute("SELECT value FROM meta WHERE key = 'machine'").fetchone()
        found = row[0] if row else ''
        if machine not in (None, found):
            raise RecordsError(str(self.path), f'records of the machine {found}, expected those of {machine}')
        return found

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        """All or nothing; the file is locked for others from the start."""
        self._db.execute('BEGIN IMMEDIATE')
        try:
            yield
            self._db.execute('COMMIT')
        except BaseException:
            if self._db.in_transaction:
                self._db.execute('ROLLBACK')
            raise

    @contextmanager
    def _told(self) -> Iterator[None]:
        """Errors of SQLite and of the disk as ours."""
        try:
            yield
        except sqlite3.Error as error:
            raise RecordsError(str(self.path), f'{error}') from None
        except OSError as error:
            raise RecordsError(str(self.path), error.strerror or str(error)) from None
