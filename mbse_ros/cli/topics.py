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
        sources: Annotated[str | None, typer.Option(
            help='Map of topics to read the bag by: lists the channels of the machine, with what is missing or odd. '
                 'none: the topics of this package.')] = None,
        output: Annotated[Path | None, typer.Option(
            '-o', '--output', help='New .yaml file for the map. [printed]')] = None,
        seconds: Annotated[float, typer.Option(
            min=0.1, max=3600, help='Of the running graph: how long to listen, s.')] = SECONDS) -> None:
    """List what is on the topics, or propose a map of them.

    Types, rates and stamps; with --machine NAME or --mechanism NAME, YAML that --sources takes. With --machine and
    --sources: of each channel of the machine its topic, field, rate and range, and what is missing or odd. Exit status
    1 where no channel was found, or one is missing or odd.
    """
    if output is not None and machine is None and mechanism is None:
        raise MbseError('-o, --output: is the file for a map, which needs a machine: --machine NAME, or --mechanism '
                        'NAME')
    if sources is not None and (bag is None or machine is None):
        raise MbseError('--sources: needs a bag and --machine NAME; of the running graph: mbse doctor --machine NAME '
                        '--sources MAP')
    found = mbse.topics(partial(_live, seconds) if bag is None else bag, machine, mechanism=mechanism,
                        output=output, sources=sources)
    hand_over(found, None)
    if any(row.odd for row in found.channels):
        raise typer.Exit(1)
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
