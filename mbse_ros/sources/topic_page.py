# SPDX-License-Identifier: Apache-2.0
"""The numbers of all topics of a bag over time as one page, before there is a machine's file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ..errors import BagError
from ..resources import write_whole
from .fields import path_text

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

    from .survey import TopicSurvey

HEIGHT, GAP, MARGIN = 280, 80, 90       # pixels: one topic, of it below its chart; the ends of the page


def topic_figure(topics: Mapping[str, TopicSurvey], title: str) -> Figure:
    """One chart for each topic that has numbers, one line for each of them, over the seconds since the first message of
    all; raises BagError where no topic has numbers."""
    from plotly.graph_objects import Scattergl  # here: slow to import
    from plotly.subplots import make_subplots
    shown = {name: topic for name, topic in topics.items() if topic.values and topic.arrivals}
    if not shown:
        raise BagError(title, 'no topic in it has numbers: see mbse topics')
    start = min(topic.first_ns for topic in shown.values())
    figure = make_subplots(len(shown), 1, shared_xaxes=True, vertical_spacing=GAP / (HEIGHT * len(shown)),
                           subplot_titles=[f'{name}  ({topic.msgtype}, {topic.count} messages, {topic.rate:.3g} Hz)'
                                           for name, topic in shown.items()])
    for row, (name, topic) in enumerate(shown.items(), 1):
        t = 1e-9 * (np.array(topic.arrivals) - start)
        order = np.argsort(t, kind='stable')        # in a bag messages may come late
        for path, values in topic.values.items():
            figure.add_trace(Scattergl(x=t[order], y=np.array(values)[order], name=path_text(path),
                                       mode='lines+markers', marker={'size': 3}, legendgroup=name,
                                       legendgrouptitle_text=name), row, 1)
    figure.update_layout(title=title, height=HEIGHT * len(shown) + 2 * MARGIN, template='plotly_white',
                         legend={'groupclick': 'toggleitem'})
    figure.update_xaxes(showticklabels=True)
    figure.update_xaxes(title_text='s since the first message', row=len(shown), col=1)
    return figure


def write_topics(topics: Mapping[str, TopicSurvey], title: str, path: Path) -> None:
    """The page with all it needs inside; raises BagError, OSError."""
    write_whole(path, topic_figure(topics, title).to_html(include_plotlyjs=True, full_html=True))
