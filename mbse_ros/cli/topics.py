# SPDX-License-Identifier: Apache-2.0
"""``mbse topics``: what there is on the topics of a bag or of the running graph, and a map for a machine or a
mechanism."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import mbse_ros as mbse

from ..errors import MbseError
from .arguments import hand_over

if TYPE_CHECKING:
    from ..sources.survey import Survey

SECONDS = 5.0


def topics(
        bag: Annotated[Path | None, typer.Argument(help='Folder of a bag. [the running graph]')] = None,
        machine: Annotated[str | None, typer.Option(
            help='Propose a map for this machine: name of a file in config/machines, or a path to a .yaml file.')
        ] = None,
        mechanism: Annotated[str | None, typer.Option(
            help='Propose a map for this mechanism: name of a file in config/mechanisms, or a path.')] = None,
        output: Annotated[Path | None, typer.Option(
            '-o', '--output', help='New .yaml file for the map. [printed]')] = None,
        seconds: Annotated[float, typer.Option(
            min=0.1, max=3600, help='Of the running graph: how long to listen, s.')] = SECONDS) -> None:
    """List what is on the topics, or propose a map of them.

    Types, rates and stamps; with --machine NAME or --mechanism NAME, YAML that --sources takes. Exit status 1 where no
    channel of it was found.
    """
    if output is not None and machine is None and mechanism is None:
        raise MbseError('-o, --output: is the file for a map, which needs a machine: --machine NAME, or --mechanism '
                        'NAME')
    found = mbse.topics(partial(_live, seconds) if bag is None else bag, machine, mechanism=mechanism,
                        output=output)
    hand_over(found, None)
    if found.proposal is not None and not found.proposal.guesses:
        raise typer.Exit(1)


def _live(seconds: float) -> Survey:
    try:
        from ..nodes.checks.listening import survey_graph
    except ImportError as error:
        raise MbseError(f'without ROS 2 (rclpy) topics are those of a bag: mbse topics BAG ({error})') from None
    survey = survey_graph(seconds)
    if not survey.topics:
        domain = os.environ.get('ROS_DOMAIN_ID', '') or '0'
        raise MbseError(f'no topic of the ROS graph was heard within {seconds:g} s in domain {domain} (ROS_DOMAIN_ID): '
                        'longer with --seconds, or see mbse doctor')
    return survey
