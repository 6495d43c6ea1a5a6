# SPDX-License-Identifier: Apache-2.0
"""Random mechanism files: a description of finite numbers or a DescriptionError, never anything else.

``benchmarks/mechanism_fuzz.py`` does the same many thousand times.
"""

import math
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from linkage_mutations import WORDS, dump, good_trees, mutated, random_document, random_mechanism
from linkage_soundness import Unsound, check, outcome

from mbse_ros.description.basics import scalars
from mbse_ros.description.explain import explain
from mbse_ros.description.load import load_mechanism, parse_mechanism
from mbse_ros.description.model import GROUND
from mbse_ros.dynamics.model import Model
from mbse_ros.errors import DescriptionError

TEXTS = [dump(tree) for tree in good_trees()]
RANDOM = st.integers(0, 2 ** 48).map(Random)


def check_valid(mechanism):
    """What every later room relies on."""
    size = mechanism.dimension
    for key, item in scalars(mechanism).items():
        assert math.isfinite(item.value) and math.isfinite(item.stddev) and item.stddev >= 0.0, key
    for body in mechanism.bodies.values():
        assert body.mass.value > 0.0 and body.points
        assert len(body.position) == len(body.rotation) == size and all(map(math.isfinite, body.position))
        assert body.uniform == (not body.inertia) == (not body.center_of_mass)
    for joint in mechanism.joints.values():
        assert joint.child.body in mechanism.bodies and joint.child.point in mechanism.bodies[joint.child.body].points
        owner = mechanism.ground if joint.parent.body == GROUND else mechanism.bodies[joint.parent.body].points
        assert joint.parent.point in owner
    driven = [driver.coordinate for driver in mechanism.drivers.values()]
    used = [*mechanism.independent, *mechanism.initial.position, *driven]
    assert set(used) <= set(mechanism.coordinates)
    assert all(row.value for section in explain(mechanism) for row in section.rows)


def loads_or_is_refused(text):
    try:
        mechanism = parse_mechanism(text)
    except DescriptionError as error:
        for one in getattr(error, 'errors', [error]):
            assert one.expected and '\n' not in one.expected and len(str(one)) < 1500
    else:
        check_valid(mechanism)


@pytest.mark.parametrize('text', TEXTS)
def test_the_files_as_they_are(text):
    check_valid(parse_mechanism(text))


@settings(max_examples=300)
@given(RANDOM)
def test_changed_files(random):
    loads_or_is_refused(dump(mutated(random)))


@settings(max_examples=150)
@given(RANDOM)
def test_random_linkages(random):
    loads_or_is_refused(dump(random_mechanism(random)))


@settings(max_examples=150)
@given(RANDOM)
def test_random_documents(random):
    loads_or_is_refused(dump(random_document(random)))


@settings(max_examples=150)
@given(st.sampled_from(TEXTS), st.integers(0, 3000), st.integers(0, 20), st.text(max_size=5) | st.sampled_from(WORDS))
def test_damaged_text(text, start, length, insert):
    loads_or_is_refused(text[:start] + insert + text[start + length:])


@settings(max_examples=60)
@given(RANDOM, st.sampled_from([mutated, random_mechanism]))
def test_models_are_sound_or_refused(random, kind):
    outcome(dump(kind(random)))


def test_an_unsound_model_is_seen(monkeypatch):
    model = Model(load_mechanism('four_bar'), backend='vm')
    check(model)
    true = model.accelerations
    monkeypatch.setattr(model, 'accelerations', lambda q, qd: true(q, qd) + 1e-3)
    with pytest.raises(Unsound):
        check(model)
