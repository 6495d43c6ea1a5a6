# SPDX-License-Identifier: Apache-2.0
"""``mbse new``: a machine file from what a tape measure, a data plate and a data sheet give."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import mbse_ros as mbse

from ..resources import write_whole

if TYPE_CHECKING:
    from ..api.new import NewMachine

Answers = dict[str, str]


def new(
        output: Annotated[Path | None, typer.Option('--output', '-o', help='The machine file to write.')] = None,
        answers: Annotated[Path | None, typer.Option(
            help='File of answers, .yaml. [asked in the terminal, and written beside the machine file]')] = None,
        questions: Annotated[str | None, typer.Option(
            help='Print the questions for a kind of machine, as a file of answers to be filled in.')] = None,
        draw: Annotated[Path | None, typer.Option(
            help='Draw the machine into this .png, or .html: a page for a browser, redrawn at each answer.')] = None
        ) -> None:
    """Write a machine file from lengths by tape measure.

    Data plate and data sheets give the rest. What cannot be measured so is typical of the kind, and marked as assumed.
    """
    from ..description.language.entry import Entry
    from ..description.templates.answers import template
    from ..description.templates.kinds import KINDS
    from ..errors import SettingError
    from ..report.files import check_file, check_new
    if questions is not None:
        typer.echo(template(KINDS[Entry('--questions', '', questions).choice(KINDS, 'a kind of machine')]), nl=False)
        return
    if output is None:
        raise SettingError('output', None, 'the machine file to write, -o machine.yaml')
    check_new(output, check=lambda path, option: check_file(path, option, ('.yaml', '.yml')))
    if answers is None:
        check_new(_kept(output), check=check_file)
    check_file(draw, 'draw', ('.png', '.html'))
    page = draw if draw is not None and draw.suffix == '.html' else None
    given: Answers = {}
    found = mbse.new(answers) if answers is not None else _asked(output, given, page)
    found.write(output)
    checked = mbse.check(output)
    for warning in checked.warnings:
        typer.echo(f'warning: {warning}', err=True)
    if page is not None:
        _look(given if answers is None else answers, page, (*checked.summary(), *found.summary()))
    elif draw is not None:
        checked.draw(draw)
    if draw is not None:
        typer.echo(f'drawn: {draw}')
    if checked.trouble is not None:
        raise checked.trouble
    for line in (*checked.summary(), *found.summary()):
        typer.echo(line)


def _kept(output: Path) -> Path:
    """Where the answers that were given in the terminal are kept."""
    return output.with_name(f'{output.stem}_answers.yaml')


def _look(given: Answers | Path, page: Path | None, done: Sequence[str] = ()) -> str:
    """What does not fit together of the answers so far, '' where all does; drawn into a ``page``."""
    from ..description.language.document import read_document
    from ..description.templates.answers import read_some
    from ..description.templates.chain import begun
    from ..report.sketch import sketch_page
    from ..resources import read_text
    tree: Any = read_document(read_text(given), str(given)) if isinstance(given, Path) else given
    some = read_some(tree)
    layout, error = (None, None) if some is None else begun(some)
    wrong = '' if error is None else error.finding
    if page is not None:
        write_whole(page, sketch_page(layout, tree, wrong, done))
    return wrong


def _asked(output: Path, given: Answers, page: Path | None) -> NewMachine:
    """By questions in the terminal, each again until its answer has the right form, and where answers do not fit
    together; the answers ``given`` are kept beside the file, also those before Ctrl-C, and drawn into a ``page``."""
    try:
        return _found(given, page)
    except (typer.Abort, KeyboardInterrupt):
        if given:
            typer.echo(f'\nthe answers so far are in {_kept(output)}: add the others, and give it with --answers',
                       err=True)
        raise
    finally:
        if given:
            write_whole(_kept(output), ''.join(f'{key}: {value}\n' for key, value in given.items()))


def _found(given: Answers, page: Path | None) -> NewMachine:
    """The machine; ``given``: the answers as they come."""
    from ..description.language.entry import Entry
    from ..description.templates.answers import questions
    from ..description.templates.examples import EXAMPLES
    from ..description.templates.kinds import KINDS
    from ..errors import DescriptionError
    for kind in KINDS.values():
        typer.echo(f'{kind.name}: {kind.text}')
    chosen = typer.prompt('kind', default=next(iter(KINDS)))
    while chosen not in KINDS:
        chosen = typer.prompt(f'kind, one of {", ".join(KINDS)}')
    given['kind'] = chosen
    wrong = _look(given, page)
    if page is not None:
        typer.echo(f'open {page} in a browser: it is drawn again at each answer')
    asked = {item.key: item for item in questions(KINDS[chosen])}

    def ask(key: str) -> None:
        nonlocal wrong
        item = asked[key]
        hint = '' if item.default else f' (such as {EXAMPLES[chosen][key]})'
        while True:
            answer = typer.prompt(f'{item.text}{hint}\n  {key}', default=item.default or None)
            if answer == item.default:
                given.pop(key, None)
                return
            try:
                item.read(Entry('', key, answer))
            except DescriptionError as error:
                typer.echo(error.finding, err=True)
            else:
                given[key] = answer
                before, wrong = wrong, _look(given, page)
                if wrong not in ('', before):
                    typer.echo(wrong, err=True)
                return

    for key in asked:
        ask(key)
    while True:
        try:
            return mbse.new(given)
        except DescriptionError as error:
            typer.echo(f'{error}', err=True)
            again = error.key.partition('[')[0]
            key = typer.prompt('which answer is to be changed', default=again if again in asked else None)
            if key in asked:
                ask(key)
