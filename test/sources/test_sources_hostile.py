# SPDX-License-Identifier: Apache-2.0
"""Definitions and messages of strangers: whatever they say, an error of ours or a sample, and no code of theirs."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from cli_support import mbse
from hypothesis import given
from hypothesis import strategies as st
from rosbags.typesys import Stores, get_types_from_msg, get_typestore
from sources_support import make, write

from mbse_ros.bags.bag import Bag, RawMessage, decode
from mbse_ros.errors import BagError, SampleError
from mbse_ros.sources.fields import LONGEST, bag_store, store_fields
from mbse_ros.sources.map import parse_sources
from mbse_ros.sources.survey import survey_bag
from mbse_ros.sources.topic_samples import TopicSamples

NAME = 'a_msgs/msg/A'
MAP = 'format: mbse/sources/1\nchannels:\n  position/lift: {topic: a, path: x, unit: m, stamp: arrival}\n'
lines = st.sampled_from([
    'float64 x', 'A[] a', 'string X="a', "string X='''", 'float64 X=inf', 'int8 class', 'int8 __init__', 'b/C c',
    'std_msgs/Header header', 'float64[999999999999] y', 'int8 x', '=' * 80, 'MSG: b/C', 'MSG: ../x', 'int8 np',
    'string<=3 s', 'float64[<=2] z', '# """', 'int8 X=__import__("os")'])


def stored(text, name=NAME):
    return bag_store(SimpleNamespace(definitions={name: text}, path='bag'), [name])


@given(st.lists(lines, max_size=8).map('\n'.join) | st.text(max_size=80), st.binary(max_size=60))
def test_any_definition_and_any_bytes(text, data):
    try:
        store = stored(text)
    except BagError:
        return
    if NAME not in store.fielddefs:
        return
    try:
        message = decode(RawMessage(0, '/a', NAME, b'\0\1\0\0' + data), store)
    except SampleError:
        return
    survey = SimpleNamespace(path='bag', definitions={NAME: text}, topics={'/a': NAME},
                             messages=lambda: [RawMessage(0, '/a', NAME, b'\0\1\0\0' + data)])
    assert survey_bag(survey).topics['/a'].count == 1 and message is not None


@pytest.mark.parametrize('text, name', [
    ('int8 x\n', '1a/msg/B'), ('int8 x\n', 'a/msg/B(object)'), ('int8 x\n', ''),
    ('int8 x\nint8 x\n', NAME), ('#' * (LONGEST + 1), NAME)])
def test_what_is_refused(text, name):
    with pytest.raises(BagError):
        stored(text, name)


def test_types_in_themselves_are_unknown():
    line = '=' * 80 + '\n'
    chain = line.join([*(f'MSG: b/T{k}\nb/T{k + 1} t\n' for k in range(100)), 'MSG: b/T100\nint8 x\n'])
    for text in ('A[] a\n', f'b/C c\n{line}MSG: b/C\na_msgs/A a\n', f'b/T0 t\n{line}{chain}'):
        assert NAME not in stored(text).fielddefs
    assert NAME in stored(f'b/C c\n{line}MSG: b/C\nint8 x\n').fielddefs


def test_no_code_of_a_definition_runs(tmp_path):
    mark = tmp_path / 'mark'
    call = f"__import__('pathlib').Path({str(mark)!r}).touch()"
    for text in (f'string X={call}\nint8 x\n', f'int8 x # """\n{call}\n', f'int8 X={call}\n',
                 f'string X="\n{call}\n"\n', f"string x '{call}'\n", f'int8[{call}] x\n',
                 f'MSG: a/B:\n  {call}\nint8 x\n'):
        try:
            stored(text)
        except BagError:
            continue
    assert not mark.exists()


def test_a_bag_whose_messages_lie(tmp_path):
    """A type that is not what its name says; text where a number was: samples of others go on."""
    types = get_typestore(Stores.ROS2_JAZZY)
    types.register(get_types_from_msg('string x\nint8 secret\n', NAME))
    bag = write(tmp_path / 'bag', types, [('/a', NAME, 10 ** 9 * k, make(types, NAME, x='1.0', secret=1))
                                          for k in range(1, 9)])
    (tmp_path / 'map.yaml').write_text(MAP)
    done = mbse('import', bag, '--machine', 'patu655_lift', '--valve', 'unknown', '--sources', tmp_path / 'map.yaml',
                '-o', tmp_path / 'out')
    assert done.status == 2 and 'a path to a number, not to a string' in done.err
    assert mbse('topics', bag).status == 0 and len(Bag(bag).topics) == 1


def test_values_that_are_no_numbers_are_left_out():
    """As rclpy may give them: the node must not die of a message."""
    store = stored('float64 x\n')
    topic = TopicSamples('/a', parse_sources(MAP).channels['position/lift'], NAME, store_fields(store))
    refused = []
    for value in ('text', None, [1.0], 10 ** 400, {}):
        assert topic.samples(SimpleNamespace(x=value), 5, refused.append) == []
    assert len(refused) == 5 and {error.why for error in refused} <= {'not readable', 'not finite'}
    assert topic.samples(SimpleNamespace(x=True), 5, refused.append) == [('position/lift', 5, 1.0, 1.0)]
