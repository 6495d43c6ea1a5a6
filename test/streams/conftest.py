# SPDX-License-Identifier: Apache-2.0
"""What the tests of the linkage stage have in common."""

import pytest
from linkage_stages import four_bar


@pytest.fixture
def model():
    return four_bar()[0]


@pytest.fixture
def motion():
    return four_bar()[1]


@pytest.fixture
def measured():
    return four_bar()[2]
