# SPDX-License-Identifier: Apache-2.0
"""What a file of records holds: all that is whole, and what is wrong with the rest. Nothing in the file is changed.

SQLite reads it, with nothing of its schema trusted: no view, no trigger, only the columns of two tables. Where it
cannot, or a record is not whole, the bytes of the file are searched as well (``sqlite_cells``).
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path

from ..errors import RecordsError
from ..resources import said_of
from .record import REPAIRED, Damage, Record, Row, checked
from .sqlite_cells import Pages

APPLICATION = 0x4D425345        # 'MBSE': what SQLite calls application_id
PATIENCE = 1.0          # s that another process may hold the file
LONGEST = 120.0         # s that SQLite may work at one statement: more, and something in the file keeps it from ending
STEPS = 50_000          # of its machine, after which it is asked how long it has worked
COLUMNS = ('number', 'kind', 'stamp_ns', 'key', 'data', 'written')
CHECKSUM = 'checksum'
MANY = 10_000           # missing records in a row that are named one by one
TABLE = ('CREATE TABLE records (number INTEGER PRIMARY KEY AUTOINCREMENT, kind TEXT NOT NULL, '
         'stamp_ns INTEGER NOT NULL, key TEXT UNIQUE, '
         'data TEXT NOT NULL CHECK (json_valid(data)), written TEXT NOT NULL) STRICT')
TABLES = TABLE, TABLE.replace(') STRICT', f', {CHECKSUM} TEXT) STRICT')       # of each version
TRIGGERS = (
    "CREATE TRIGGER records_stay BEFORE UPDATE ON records BEGIN SELECT RAISE(ABORT, 'records are never changed'); END",
    "CREATE TRIGGER records_keep BEFORE DELETE ON records BEGIN SELECT RAISE(ABORT, 'records are never removed'); END")
DAMAGES = sqlite3.DatabaseError, MemoryError, OverflowError, UnicodeDecodeError
EMPTY = 'it is empty: either nothing was ever written into it, or all of its records are gone'
EXPECTED = 'the records of a scale, such as loads_zx200.db'
MAGIC = b'SQLite format 3\0'
# What an open file is not damaged by: see https://sqlite.org/rescode.html
PASSING = {3: 'PERM', 5: 'BUSY', 6: 'LOCKED', 7: 'NOMEM', 8: 'READONLY', 9: 'INTERRUPT', 10: 'IOERR', 13: 'FULL',
           14: 'CANTOPEN'}
AS_TEXT = ', '.join(f'CAST({name} AS BLOB)' if name not in ('number', 'stamp_ns') else name for name in COLUMNS)


@dataclass(frozen=True)
class RecordFile:
    """``records`` that are whole, with their ``rows``, in order; ``damages``: what is wrong; ``unverified``: records
    that are older than checksums; ``machine``: '' where it is not known; ``next_number`` for a record to be added;
    ``empty``: the file has not a byte."""

    path: Path
    machine: str
    rows: tuple[Row, ...]
    records: tuple[Record, ...]
    damages: tuple[Damage, ...]
    next_number: int
    empty: bool = False

    @property
    def unverified(self) -> int:
        """Records without a checksum."""
        return sum(row.checksum is None for row in self.rows)

    @property
    def lost(self) -> tuple[int, ...]:
        """Numbers of the records that are not whole."""
        return tuple(sorted({damage.number for damage in self.damages if damage.number is not None}))

    @property
    def lines(self) -> list[str]:
        """What is wrong, and what was before."""
        found = [damage.line for damage in self.damages] + [EMPTY] * self.empty
        found += [f'it was repaired: {record.data["kept"]} records were whole in {record.data["file"]}, lost: '
                  f'{", ".join(map(str, record.data["lost"])) or "none that is known of"}'
                  for record in self.records if record.kind == REPAIRED]
        if self.unverified:
            found.append(f'{self.unverified} of {len(self.records)} records were written without a checksum, by an '
                         'older version: they are not verified, only that their numbers agree with each other')
        return found


def is_records(path: Path) -> bool:
    """Whether a file may be one of records: SQLite's, and not that of a bag."""
    if path.suffix == '.db3' or not path.is_file():
        return False
    with path.open('rb') as file:
        return file.read(len(MAGIC)) == MAGIC


def read_records(path: str | Path, newest: int = 2) -> RecordFile:
    """Read a file; ``newest``: the latest version of the schema that is known.

    Raises RecordsError for what is not a file of records, is of a newer version, or cannot be read now.
    """
    path = Path(path)
    with told(path):
        if path.is_dir():
            raise RecordsError(str(path), f'unable to open a folder, expected {EXPECTED}')
        if not path.is_file():
            raise RecordsError(str(path), f'no such file; expected {EXPECTED}')
        with path.open('rb') as file:
            head = file.read(100)
        found = _Reading(newest, path)
        if head:
            found.damages += [Damage(None, text) for text in _header_faults(head)]
        if head and not found.damages:
            with guarded(found.damages), readable(path) as db:
                found.by_sql(db)
        if found.result().damages:
            found.by_bytes(head)
        return replace(found.result(), empty=not head)


class _Reading:
    """Rows by their number, the machine, and what is wrong."""

    def __init__(self, newest: int, path: Path) -> None:
        self.newest, self.path, self.machine, self.last, self._named = newest, path, '', 0, True
        self.damages: list[Damage] = []
        self._rows: dict[int, tuple[Row, Record]] = {}
        self._bad: dict[int, Damage] = {}

    def by_sql(self, db: sqlite3.Connection) -> None:
        """All that SQLite reads; raises RecordsError for a file of somebody else."""
        version, = db.execute('PRAGMA user_version').fetchone()
        application, = db.execute('PRAGMA application_id').fetchone()
        kinds = {name: (kind, sql) for kind, name, sql in db.execute(
            'SELECT type, name, sql FROM sqlite_master')}
        columns = _columns(db, 'records') if _is_table(kinds.get('records')) else []
        ours = set(COLUMNS) <= set(columns)
        if application != APPLICATION and (kinds or version) and not ours:
            raise RecordsError(str(self.path), f'an SQLite file, but none of loads; expected {EXPECTED}')
        if version > self.newest and (not ours or set(columns) - {*COLUMNS, CHECKSUM}):
            raise RecordsError(str(self.path), f'records of version {version}, written by a newer mbse_ros; this one '
                                               f'reads versions up to {self.newest}: update it')
        if not kinds and not version:
            return
        if application != APPLICATION or not 0 < version <= self.newest:
            self.damages.append(Damage(None, f'its header is damaged: application {application:#x}, version {version}'))
        if not ours or kinds['records'][1] not in TABLES:
            self.damages.append(Damage(None, 'its table `records` is not there, or another than ours'))
        if not ours:
            return
        self.damages += [Damage(None, f'it has a trigger that is not ours: {name}')
                         for name, (kind, sql) in kinds.items() if kind == 'trigger' and sql not in TRIGGERS]
        self._read(db, CHECKSUM in columns)
        self._machine(db, _is_table(kinds.get('meta')))

    def _read(self, db: sqlite3.Connection, checksums: bool) -> None:
        more = f', CAST({CHECKSUM} AS BLOB)' if checksums else ''
        for row in db.execute(f'SELECT {AS_TEXT}{more} FROM records NOT INDEXED ORDER BY number'):
            self.take(Row(*row))
        if any(row.checksum is None for row, _ in self._rows.values()):
            said, = db.execute('PRAGMA integrity_check(1)').fetchone()
            if said != 'ok':
                self.damages.append(Damage(None, f'its structure is damaged: {said}'.replace('\n', ' ')))
        last = db.execute("SELECT seq FROM sqlite_sequence WHERE name = 'records'").fetchone()
        self.last = last[0] if last is not None and isinstance(last[0], int) else 0

    def _machine(self, db: sqlite3.Connection, there: bool) -> None:
        """Its name has a checksum as well, but in a file of an older version."""
        found = dict(db.execute('SELECT key, value FROM meta')) if there else {}
        name, seal = found.get('machine'), found.get('machine_checksum')
        if not isinstance(name, str):
            self.damages.append(Damage(None, 'the name of its machine is not there'))
        elif seal not in (None, machine_checksum(name)):
            self.damages.append(Damage(None, 'the name of its machine does not have its checksum'))
            self._named = False
        else:
            self.machine = name

    def by_bytes(self, head: bytes) -> None:
        """What else is whole in the bytes; raises RecordsError where nothing says that they are of us."""
        pages = Pages(self.path)
        for row in pages.rows():
            self.take(row, True)
        named = len(head) >= 72 and int.from_bytes(head[68:72], 'big') == APPLICATION
        if not self._rows and not named and any(head) and not MAGIC.startswith(head[:16]):
            raise RecordsError(str(self.path), f'{self.damages[0].text}; expected {EXPECTED}')
        self.machine = self.machine or (pages.machine() if self._named else '')

    def take(self, row: Row, searched: bool = False) -> None:
        """A row; one that was ``searched`` for is nothing if it is not whole."""
        found = checked(row)
        number = found.number
        if isinstance(found, Record):
            before = self._rows.get(found.number)
            if before is None or row.checksum is not None and before[0].checksum is None:
                self._rows[found.number] = row, found
                self._bad.pop(found.number, None)
        elif not searched:
            if number is None:
                self.damages.append(found)
            else:
                self._bad[number] = found

    def result(self) -> RecordFile:
        """All of it, in order; records that are missing between those that have checksums are damages, too."""
        order, bad = [], dict(self._bad)
        known = {number for _, record in self._rows.values() if record.kind == REPAIRED
                 for name in ('lost', 'absent') for number in record.data[name]}
        damages, before = list(self.damages), None
        for number in sorted(self._rows):
            row, record = self._rows[number]
            if before is not None and row.checksum is None and before.checksum is not None:
                bad[number] = Damage(number, 'its checksum is missing')
                continue
            if (before or row).checksum is not None:        # numbers of older versions have gaps
                damages += _missing(before.number + 1 if before else 1, number, known | set(bad))
            order.append((row, record))
            before = row
        if before is not None and before.checksum is not None:
            damages += _missing(before.number + 1, min(self.last, before.number + MANY) + 1, known | set(bad))
        last = max([*self._rows, *bad, 0])
        last = max(last, self.last) if self.last < last + MANY else last
        return RecordFile(self.path, self.machine, tuple(row for row, _ in order), tuple(record for _, record in order),
                          (*damages, *(bad[number] for number in sorted(bad))), last + 1)


def _missing(first: int, end: int, known: set[int]) -> list[Damage]:
    """Of numbers from the first on those that nothing is known of."""
    if end - first > MANY:
        return [Damage(None, f'records {first} to {end - 1} are missing')]
    return [Damage(number, 'it is missing') for number in range(first, end) if number not in known]


def machine_checksum(name: str) -> str:
    """Of the name of the machine."""
    return sha256(f'machine {name}'.encode()).hexdigest()


def _is_table(found: tuple[str, object] | None) -> bool:
    return found is not None and found[0] == 'table' and not str(found[1]).upper().startswith('CREATE VIRTUAL')


def _columns(db: sqlite3.Connection, table: str) -> list[str]:
    """Names of columns that are stored, none that is computed."""
    return [name for _, name, _, _, _, _, hidden in db.execute(f'PRAGMA table_xinfo({table})') if not hidden]


def _header_faults(head: bytes) -> list[str]:
    """What SQLite's header has that those of our files have not."""
    if len(head) < 100 or head[:16] != MAGIC:
        return ['file is not a database']
    size, numbers = int.from_bytes(head[16:18], 'big'), [int.from_bytes(head[at:at + 4], 'big') for at in (44, 56)]
    good = (size == 1 or size >= 512 and not size & (size - 1)) and head[18] == head[19] in (1, 2) \
        and head[21:24] == b'\x40\x20\x20' and numbers[0] in (0, 1, 2, 3, 4) and numbers[1] in (0, 1)
    return [] if good else ['its header is damaged']


@contextmanager
def readable(path: Path) -> Iterator[sqlite3.Connection]:
    """A connection that changes nothing. In a folder that cannot be written SQLite does not read a file with a log
    beside it: then both are copied."""
    if os.access(path.parent, os.W_OK):
        with closing(_opened(path)) as db:
            yield db
        return
    with tempfile.TemporaryDirectory(prefix='mbse_ros-') as folder:
        for name in (path.name, path.name + '-wal'):
            if path.with_name(name).is_file():
                shutil.copyfile(path.with_name(name), Path(folder) / name)
        with closing(_opened(Path(folder) / path.name)) as db:
            yield db


def _opened(path: Path) -> sqlite3.Connection:
    db = sqlite3.connect(f'{path.absolute().as_uri()}?mode=ro', uri=True, timeout=PATIENCE, isolation_level=None)
    Watch(db)
    for pragma in ('trusted_schema = OFF', 'cell_size_check = ON', 'ignore_check_constraints = ON'):
        db.execute(f'PRAGMA {pragma}')
    db.execute('BEGIN')     # all statements see the same
    return db


class Watch:
    """No statement runs for ever: from ``begin`` on they have LONGEST."""

    def __init__(self, db: sqlite3.Connection) -> None:
        db.text_factory = _lenient
        self.begin()
        db.set_progress_handler(self._over, STEPS)

    def begin(self) -> None:
        """The time runs from here on."""
        self._started = time.monotonic()

    def _over(self) -> int:
        return int(time.monotonic() - self._started > LONGEST)


def _lenient(text: bytes) -> str:
    return text.decode(errors='replace')


@contextmanager
def guarded(damages: list[Damage]) -> Iterator[None]:
    """What SQLite says of a damaged file, as a damage."""
    try:
        yield
    except DAMAGES as error:
        if not is_damage(error):
            raise
        damages.append(Damage(None, f'its structure is damaged: {_words(error)}'))


def is_damage(error: BaseException | None) -> bool:
    """Whether the file is damaged, else it cannot be used now."""
    if isinstance(error, sqlite3.OperationalError):
        return getattr(error, 'sqlite_errorcode', 9) & 0xFF not in PASSING      # before Python 3.11 it is not known
    return isinstance(error, DAMAGES)


def _words(error: BaseException) -> str:
    if isinstance(error, UnicodeDecodeError):
        return 'text that is not in UTF-8'
    return str(error) or 'it asks for too much memory'


@contextmanager
def told(path: Path) -> Iterator[None]:
    """Errors of SQLite and of the disk as ours."""
    try:
        yield
    except (sqlite3.Error, *DAMAGES) as error:
        raise RecordsError(str(path), _words(error)) from None
    except OSError as error:
        raise RecordsError(str(path), said_of(error)) from None
