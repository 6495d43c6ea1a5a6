# SPDX-License-Identifier: Apache-2.0
"""``examples/``: each runs, is short, and shows what it says; so do the scripts of README and docs."""

import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from matplotlib import pyplot
from source_tree import example

import mbse_ros as mbse

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted((ROOT / 'examples').glob('*.py'))
LONGEST = {'cubature_filter': 80}       # else 40 lines


@pytest.fixture(autouse=True)
def workplace(tmp_path, monkeypatch):
    """Examples write beside the caller."""
    monkeypatch.chdir(tmp_path)
    yield
    pyplot.close('all')


def blocks(page):
    """Python of a page."""
    return re.findall(r'^```python\n(.*?)^```$', (ROOT / page).read_text(), re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize('path', EXAMPLES, ids=lambda path: path.stem)
def test_examples_are_short_and_named(path):
    text = path.read_text()
    assert len(text.splitlines()) < LONGEST.get(path.stem, 40)
    assert "if __name__ == '__main__':" in text and 'import mbse_ros as mbse' in text
    assert f'{path.stem}' in (ROOT / 'docs' / 'python_api.md').read_text() + (
        ROOT / 'docs' / 'your_own_filter.md').read_text()


def test_every_example_is_tested():
    texts = [path.read_text() for path in (Path(__file__), ROOT / 'test' / 'nodes' / 'test_nodes_example.py')]
    assert all(any(f"example('{path.stem}')" in text for text in texts) for path in EXAMPLES)


def test_simulate_and_plot(capsys):
    run = example('simulate_and_plot').main(seconds=0.5)
    assert np.abs(run.motion.balance).max() < 0.1 and Path('motion.png').stat().st_size > 10_000
    assert 'independent: theta' in capsys.readouterr().out


def test_all_filters_one_gyro():
    """What the review of the field found: a gyro alone corrects no position, but for those who know the dynamics."""
    errors = example('all_filters_one_gyro').main(3.0, ('DEKF', 'errorEKF_FE', 'UKF'))
    assert errors['DEKF'] > 0.15 and errors['errorEKF_FE'] < 0.01 and errors['UKF'] < 0.01


def test_your_own_filter():
    errors = example('your_own_filter').main(2.0)
    assert set(errors) == {'ConstantGain', 'errorEKF_FE'} and max(errors.values()) < 0.017     # the encoder's noise


def test_cubature_filter_is_the_unscented_one():
    """With the same noise: their points differ in the distance from the mean, so their results by the fourth order."""
    module = example('cubature_filter')
    truth = mbse.simulate('four_bar', 1.0, sensors=['encoder', 'crank_gyro'])
    found = [mbse.Observer('four_bar', estimator, ['encoder', 'crank_gyro'], **options).start().run(truth.samples)
             for estimator, options in ((module.CubatureFilter, {'acceleration': 0.0916298}), ('UKF', {}))]
    np.testing.assert_allclose(found[0].mean, found[1].mean, atol=1e-4)
    np.testing.assert_allclose(found[0].stddev, found[1].stddev, rtol=1e-2)
    np.testing.assert_allclose(found[0].nis, found[1].nis, rtol=0.05, atol=1e-2)
    results = module.main(1.0)
    assert list(results) == ['CubatureFilter', 'UKF', 'errorEKF_FE'] and max(results.values()) < 0.01


def test_cubature_filter_on_two_degrees_of_freedom():
    module, sensors = example('cubature_filter'), ['encoder_1', 'encoder_2']
    truth = mbse.simulate('five_bar', 0.5, sensors=sensors)
    found = mbse.Observer('five_bar', module.CubatureFilter, sensors, acceleration=0.5).run(truth.samples)
    stddev = found.stddev[-1, :2]
    error = [found[name][-1] - truth[name][-1] for name in truth.model.independent]
    assert found.mean.shape == (100, 4) and (np.abs(error) < 4 * stddev).all()


def test_crane_from_csv():
    found = example('crane_from_csv').main(seconds=6.0)
    assert found.lower[-1] < 80.0 < found.upper[-1] and found.upper[-1] - found.lower[-1] < 20.0


def test_excavator_payload(capsys):
    found = example('excavator_payload').main(seconds=5.0)
    assert found.lower[-1] < 1200.0 < found.upper[-1] and 'carried' in capsys.readouterr().out


def test_factor_graph(capsys):
    pytest.importorskip('gtsam', reason='GTSAM is not installed (extra "graph")')
    found = example('factor_graph').main(seconds=4.0, lag=0.4)
    assert found.lower[-1] < 80.0 < found.upper[-1] and 'cylinders.lift.friction' in capsys.readouterr().out


@pytest.mark.skipif(shutil.which('cc') is None, reason='no C compiler')
def test_c_by_ctypes():
    status, compiled, python = example('c_by_ctypes').main()
    assert status == 0
    np.testing.assert_allclose(compiled, python, rtol=1e-10, atol=1e-10)


@pytest.fixture
def bag():
    """The bag that the pages speak of."""
    return mbse.write_bag('out/bag', mbse.simulate('patu655_lift', 3.0, payload=80.0))


@pytest.mark.parametrize('page', ['README.md', 'docs/python_api.md'])
def test_the_two_scripts_of_a_newcomer(page, capsys):
    """At most six lines each, from one import, by themselves, without files of other commands."""
    scripts = blocks(page)[:2]
    assert len(scripts) == 2
    for script in scripts:
        assert len(script.splitlines()) <= 6 and script.count('import') == 1
        names = {}
        exec(compile(script, page, 'exec'), names)
    assert Path('four_bar.png').stat().st_size > 10_000 and Path('payload.png').stat().st_size > 10_000
    mass = float(capsys.readouterr().out.split(' kg')[0])
    assert names['estimate'].lower[-1] < 80.0 < names['estimate'].upper[-1] and mass == pytest.approx(80.0, abs=3.0)


def test_the_other_blocks_of_the_pages(bag):
    for page in ('docs/python_api.md', 'docs/first_steps.md'):
        exec(compile('\n'.join(blocks(page)), page, 'exec'), {})
    names = {'CubatureFilter': example('cubature_filter').CubatureFilter}
    exec(compile('\n'.join(blocks('docs/your_own_filter.md')), 'docs/your_own_filter.md', 'exec'), names)
    observer = mbse.Observer('four_bar', names['MyFilter'], ['encoder'])
    assert observer.run([0.005, 0.01], [[1.0], [np.nan]]).nis[1] == 0.0
