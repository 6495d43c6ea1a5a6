# SPDX-License-Identifier: Apache-2.0
"""``mbse new``: a machine file from what a tape measure, a data plate and a data sheet give, and from a URDF."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import mbse_ros as mbse

from ..resources import write_whole

if TYPE_CHECKING:
    from ..api.new import NewMachine
    from ..description.templates.answers import Question
    from ..description.templates.layout import PlanarLayout
    from ..errors import DescriptionError

Answers = dict[str, str]


def new(
        output: Annotated[Path | None, typer.Option('--output', '-o', help='The machine file to write.')] = None,
        urdf: Annotated[Path | None, typer.Option(
            help='URDF of the machine or arm: gives frames, joints, masses; only what it lacks is asked.')] = None,
        answers: Annotated[Path | None, typer.Option(
            help='File of answers, .yaml. [asked in the terminal, and written beside the machine file]')] = None,
        questions: Annotated[str | None, typer.Option(
            help='Print the questions for a kind of machine, as a file of answers to be filled in; with --urdf: urdf.'
        )] = None,
        draw: Annotated[Path | None, typer.Option(
            help='Draw the machine into this .png, or .html: a page for a browser, redrawn at each answer.')] = None
        ) -> None:
    """Write a machine file from measured lengths or a URDF.

    Data plate and data sheets give the rest. What cannot be measured so is typical of the kind, and marked as assumed.
    """
    from ..errors import SettingError
    from ..report.files import check_file, check_new
    if questions is not None:
        typer.echo(_template(questions, urdf), nl=False)
        return
    if output is None:
        raise SettingError('output', None, 'the machine file to write, -o machine.yaml')
    check_new(output, check=lambda path, option: check_file(path, option, ('.yaml', '.yml')))
    if answers is None:
        check_new(_kept(output), check=check_file)
    check_file(draw, 'draw', ('.png', '.html'))
    page = draw if draw is not None and draw.suffix == '.html' else None
    given: Answers = {} if urdf is None else {'urdf': str(urdf.resolve())}
    found = _read(answers, urdf, output, page) if answers is not None else _asked(output, given, page)
    found.write(output)
    checked = mbse.check(output)
    for warning in (*found.warnings, *checked.warnings):
        typer.echo(f'warning: {warning}', err=True)
    if page is not None:
        tree = given if answers is None else _tree(answers, urdf)
        _look(tree, page, (*checked.summary(), *found.summary()), str(answers or output))
    elif draw is not None:
        checked.draw(draw)
    if draw is not None:
        typer.echo(f'drawn: {draw}')
    if checked.trouble is not None:
        raise checked.trouble
    for line in (*checked.summary(), *found.summary()):
        typer.echo(line)


def _template(questions: str, urdf: Path | None) -> str:
    from ..description.from_urdf.answers import URDF, robot_template
    from ..description.language.entry import Entry
    from ..description.templates.answers import template
    from ..description.templates.kinds import KINDS
    if urdf is not None:
        Entry('--questions', '', questions).choice((URDF,), 'of a URDF')
        return robot_template(urdf)
    return template(KINDS[Entry('--questions', '', questions).choice(KINDS, 'a kind of machine')])


def _tree(answers: Path, urdf: Path | None) -> Any:
    """Answers of a file."""
    from ..description.language.document import read_document
    from ..resources import read_text
    tree = read_document(read_text(answers), str(answers))
    return tree if urdf is None or not isinstance(tree, dict) else {**tree, 'urdf': str(urdf.resolve())}


def _read(answers: Path, urdf: Path | None, output: Path, page: Path | None) -> NewMachine:
    """The machine; several that the answers leave are drawn first."""
    from ..description.from_urdf.layout import SeveralMachinesError
    try:
        return mbse.new(answers, urdf)
    except SeveralMachinesError:
        place = page or _drawn(output)
        _look(_tree(answers, urdf), place, ('choose one of these',), str(answers))
        typer.echo(f'drawn, to choose from: {place}')
        raise


def _drawn(output: Path) -> Path:
    """Where machines to choose from are drawn."""
    return output.with_name(f'{output.stem}_choice.html')


def _kept(output: Path) -> Path:
    """Where the answers that were given in the terminal are kept."""
    return output.with_name(f'{output.stem}_answers.yaml')


def _look(tree: Any, page: Path | None, done: Sequence[str] = (), file: str = 'answers') -> DescriptionError | None:
    """What does not fit together of the answers so far; drawn into a ``page``."""
    from ..description.from_urdf.answers import is_robot, read_some_robot
    from ..description.from_urdf.layout import SeveralMachinesError, begun_robot
    from ..description.templates.answers import read_some
    from ..description.templates.chain import begun
    from ..report.sketch import sketch_page
    layouts: list[PlanarLayout] = []
    error = None
    if is_robot(tree):
        robot = read_some_robot(tree, file)
        if robot is not None:
            one, error = begun_robot(robot)
            layouts = list(error.layouts) if isinstance(error, SeveralMachinesError) else [one]
    elif (some := read_some(tree)) is not None:
        machine, error = begun(some)
        layouts = [machine]
    if page is not None:
        write_whole(page, sketch_page(layouts, tree, '' if error is None else error.finding, done))
    return error


def _asked(output: Path, given: Answers, page: Path | None) -> NewMachine:
    """By questions in the terminal, each again until its answer has the right form, and where answers do not fit
    together; the answers ``given`` are kept beside the file, also those before Ctrl-C, and drawn into a ``page``."""
    begun = len(given)
    try:
        return _Dialogue(given, output, page).found()
    except (typer.Abort, KeyboardInterrupt):
        if len(given) > begun:
            typer.echo(f'\nthe answers so far are in {_kept(output)}: add the others, and give it with --answers',
                       err=True)
        raise
    finally:
        if len(given) > begun:
            write_whole(_kept(output), ''.join(f'{key}: {value}\n' for key, value in given.items()))


class _Dialogue:
    """Questions and answers in the terminal; ``given``: the answers as they come."""

    def __init__(self, given: Answers, output: Path, page: Path | None) -> None:
        from ..description.templates.examples import EXAMPLES
        self.given, self.output, self.page = given, output, page
        if 'urdf' not in given:
            given['kind'] = _kind()
        else:
            _introduce(given)
        self.examples = EXAMPLES.get(given.get('kind', ''), {})
        self.wrong = _look(given, page)
        if page is not None:
            typer.echo(f'open {page} in a browser: it is drawn again at each answer')

    def questions(self) -> dict[str, Question]:
        """All that the answers so far ask for."""
        from ..description.from_urdf.answers import asked
        from ..description.templates.answers import questions
        from ..description.templates.kinds import KINDS
        found = asked(self.given) if 'urdf' in self.given else questions(KINDS[self.given['kind']])
        return {item.key: item for item in found}

    def found(self) -> NewMachine:
        """The machine, after all questions."""
        from ..errors import DescriptionError
        said: set[str] = set()
        while left := [key for key, item in self.questions().items() if key not in said and not item.late]:
            self.ask(left[0])
            said.add(left[0])
        while True:
            try:
                return mbse.new(self.given)
            except DescriptionError as error:
                typer.echo(f'{error}', err=True)
                again, known = error.key.partition('[')[0], self.questions()
                key = typer.prompt('which answer is to be changed', default=again if again in known else None)
                if key in known:
                    self.ask(key)

    def ask(self, key: str) -> None:
        """One question, until its answer has the right form."""
        from ..description.language.entry import Entry
        from ..errors import DescriptionError
        item = self.questions()[key]
        hint = f' (such as {self.examples[key]})' if key in self.examples and not item.default else ''
        while True:
            answer = typer.prompt(f'{item.text}{hint}\n  {key}', default=item.default or None)
            before = self.given.pop(key, None)
            try:
                if answer != item.default:
                    item.read(Entry('', key, answer))
                    self.given[key] = answer
                self.questions()
            except DescriptionError as error:
                self.given.pop(key, None)
                if before is not None:
                    self.given[key] = before
                typer.echo(error.finding, err=True)
            else:
                self.look()
                return

    def look(self) -> None:
        """Say at once what does not fit, and draw machines to choose from."""
        from ..description.from_urdf.layout import SeveralMachinesError
        before, self.wrong = self.wrong, _look(self.given, self.page)
        if self.wrong is None or before is not None and before.finding == self.wrong.finding:
            return
        typer.echo(self.wrong.finding, err=True)
        if isinstance(self.wrong, SeveralMachinesError):
            place = self.page or _drawn(self.output)
            _look(self.given, place, () if self.page else ('choose one of these',))
            typer.echo(f'drawn, to choose from: {place}')
            self.ask(self.wrong.branch)


def _kind() -> str:
    from ..description.templates.kinds import KINDS
    for kind in KINDS.values():
        typer.echo(f'{kind.name}: {kind.text}')
    chosen: str = typer.prompt('kind', default=next(iter(KINDS)))
    while chosen not in KINDS:
        chosen = typer.prompt(f'kind, one of {", ".join(KINDS)}')
    return chosen


def _introduce(given: Answers) -> None:
    """Which chains are in the URDF; raises DescriptionError."""
    from ..description.from_urdf.answers import chains
    for links, joints in chains(given):
        typer.echo(f'{", ".join(joints)} move {", ".join(links)}')
