# SPDX-License-Identifier: Apache-2.0
"""Presets: a name for the settings of a paper, the same for Python, the command line and the nodes."""

from dataclasses import replace

import numpy as np
import pytest

import mbse_ros as mbse
from mbse_ros.description.presets import known_presets, preset_file, preset_words
from mbse_ros.errors import SettingError
from mbse_ros.nodes.graphs.graph import parse_arguments
from mbse_ros.nodes.graphs.linkage_graph import LinkageArguments, linkage_graph
from mbse_ros.nodes.graphs.machine_graph import MachineArguments, machine_graph
from mbse_ros.offline.bag import parse_tuning


def test_each_preset_is_made_of_settings():
    """A misspelt one, or one that is gone, is refused by its name."""
    assert 'paper' in known_presets()
    for name in known_presets():
        parse_tuning(preset_words(name))


def test_the_paper_weighs_apart():
    settings = parse_tuning(preset_words('paper'))
    assert settings['observer'].weighing == 'apart' and settings['observer'].noise == 'paper'
    assert settings['payload'].guard_time == 0.0


def test_an_estimate_with_a_preset_is_that_with_its_settings():
    lift = mbse.simulate('patu655_lift', payload=50.0, duration=4.0).samples
    by_name, by_words, ours = (mbse.estimate(lift, 'patu655_lift', **how) for how in (
        {'preset': 'paper'}, {'tuning': preset_words('paper')}, {}))
    np.testing.assert_array_equal(by_name.mass, by_words.mass)
    assert np.nanmax(np.abs(by_name.mass - ours.mass)) > 0.01


def test_what_is_set_counts_more():
    lift = mbse.simulate('patu655_lift', payload=50.0, duration=2.0).samples
    found = mbse.estimate(lift, 'patu655_lift', preset='paper', tuning={'observer.weighing': 'joint'})
    assert 'observer.weighing=apart, observer.noise=paper' in found.facts['Tuning']
    assert found.facts['Tuning'].endswith('observer.weighing=joint')


def test_a_filter_that_is_named_counts_more_than_the_one_of_a_preset(tmp_path):
    own = tmp_path / 'own.yaml'
    own.write_text('linkage_node: {ros__parameters: {estimator: UKF}}')
    motion = mbse.simulate('four_bar', 0.5, sensors=['encoder']).samples
    used = [mbse.estimate(motion, mechanism='four_bar', preset=own, backend='vm', **how).estimator for how in (
        {}, {'estimator': 'DEKF'}, {'estimator': 'DEKF', 'tuning': {'linkage.estimator': 'CEKF'}})]
    assert used == ['UKF', 'DEKF', 'CEKF']


def test_a_file_of_ones_own(tmp_path):
    own = tmp_path / 'own.yaml'
    own.write_text('/crane/observer_node:\n  ros__parameters: {gate: 0.99}\nscale_node:\n  ros__parameters: '
                   '{tare: true}\n')
    assert preset_words(own) == ['observer.gate=0.99', 'scale.tare=true'] and preset_file(own) == own


@pytest.mark.parametrize('text, named', [(None, 'expected paper, or a file'), ('observer_node: 3', 'ros__parameters'),
                                         ('- a', 'ros__parameters'), ('a: [', 'line 2.*correct YAML'),
                                         ('', 'file is empty'), ('{}', 'ros__parameters'),
                                         ('observer_node:\n  ros__parameters: {}', 'ros__parameters'),
                                         ('observer_node:\n  ros__parameters: {gate: 0.9, gate: 1.0}', 'line 2.*once'),
                                         ('observer_node: {ros__parameters: {gate: 0.9}}\n/a/observer_node: '
                                          '{ros__parameters: {gate: 1.0}}', 'observer.gate is there twice')])
def test_what_is_no_preset_is_named(tmp_path, text, named):
    path = tmp_path / 'preset.yaml'
    if text is not None:
        path.write_text(text)
    with pytest.raises(SettingError, match=f'preset: .*{named}'):
        preset_words(path)


@pytest.mark.parametrize('preset', ['paper', 5, {'observer.noise': 'paper'}])
def test_what_is_not_for_this_model_is_refused_by_name(preset):
    """Of a mechanism, or no name at all; by the preset's name, not as words that nobody has set."""
    motion = mbse.simulate('four_bar', 1.0).samples
    with pytest.raises(SettingError, match='preset: '):
        mbse.estimate(motion, mechanism='four_bar', preset=preset)


def test_a_graph_without_its_nodes_refuses_a_preset():
    with pytest.raises(SettingError, match='preset: .*/linkage_node.*it has those of /../observer_node, /'):
        linkage_graph(parse_arguments({'preset': 'paper', 'mechanism': 'four_bar'}, LinkageArguments))


@pytest.mark.parametrize('node, setting, said', [
    ('/**', 'frame_id', ''), ('/**/crane/observer_node', 'noise', ''), ('/**/observer_node', 'noise', ''),
    ('/crane/observer_node', 'noise', ''), ('crane/observer_node', 'use_sim_time', ''),
    ('/*/observer_node', 'noise', ''),
    ('observer_node', 'noise', 'has those of observer_node'), ('/observer_node', 'noise', 'has those of /observer'),
    ('/*/*/observer_node', 'noise', 'has those of'), ('/**/obsever_node', 'noise', 'obsever_node has no noise'),
    ('/**/observer_node', 'noice', 'observer_node has no noice'), ('/**', 'noice', r'has no noice'),
    ('/**/observer_node', 'low_pass', 'observer_node has no low_pass'),
    ('/**/observer_node', 'pressure_psd', 'observer_node takes: pressure_psd: got .paper., expected a float'),
    ('/**/observer_node', 'weighing', 'observer_node takes: weighing: got .paper., expected one of')])
def test_a_graph_takes_what_ros_gives_to_one_of_its_nodes(tmp_path, node, setting, said):
    """By its whole name: a preset of another namespace would do nothing."""
    preset = tmp_path / 'own.yaml'
    preset.write_text(f'{node}: {{ros__parameters: {{{setting}: paper}}}}')
    arguments = parse_arguments({'preset': str(preset), 'namespace': 'crane'}, MachineArguments)
    if said:
        with pytest.raises(SettingError, match=f'preset: .*{said}'):
            machine_graph(arguments)
    else:
        assert str(preset) in machine_graph(arguments).processes[0].files


def test_words_of_a_truth_are_as_ros_reads_them(tmp_path):
    own = tmp_path / 'own.yaml'
    own.write_text('scale_node: {ros__parameters: {carry_back: Yes, tare: off, least_load: 1e2, unit: }}')
    assert preset_words(own) == ['scale.carry_back=true', 'scale.tare=false', 'scale.least_load=1e2', 'scale.unit=None']


def test_the_paper_says_that_it_is_for_one_load():
    lift = mbse.simulate('patu655_lift', payload=50.0, duration=2.0).samples
    found = mbse.estimate(lift, 'patu655_lift', preset='paper')
    assert any('one load throughout' in warning for warning in found.warnings)
    assert not any('one load' in warning for warning in mbse.estimate(lift, 'patu655_lift').warnings)


def test_a_low_pass_that_has_no_effect_is_said():
    """That of the paper, where the observer weighs; and ``Observer`` says what its way to weigh gives up."""
    lift = mbse.simulate('patu655_lift', payload=50.0, duration=2.0).samples
    for weighing, said in (('joint', True), ('apart', False)):
        tuning = {'payload.low_pass': 'plain', 'observer.weighing': weighing}
        found = mbse.estimate(lift, 'patu655_lift', tuning=tuning)
        assert any('payload.low_pass plain has no effect' in warning for warning in found.warnings) is said
        seen = mbse.Observer('patu655_lift', 'hydraulic', weighing=weighing).run(lift).warnings
        assert any('the state has no mass' in warning for warning in seen) is not said


def test_spikes_that_no_gate_rejects_are_doubts():
    """With a gate they are said, and the estimate copes with them."""
    lift = mbse.simulate('patu655_lift', payload=50.0, duration=3.0).samples
    values = lift.values.copy()
    values[100::37, lift.names.index('pressure/lift_piston')] += 4e6
    for gate, among in ((0.9999, False), (1.0, True)):
        found = mbse.estimate(replace(lift, values=values), 'patu655_lift', tuning={'observer.gate': gate})
        line, = (warning for warning in found.warnings if 'stand out alone' in warning)
        assert 'rejects them, unless its gate is 1' in line and (line in found.doubts) is among
        assert not any('pressure/lift_rod' in warning for warning in found.warnings)


@pytest.mark.parametrize('load', [50.0, 200.0])
def test_the_first_sample_of_the_plain_low_pass_is_in_the_interval_while_it_lingers(load):
    """It counts alone at first, and the scatter of those that follow says nothing of its error."""
    for seed in (1, 2, 3):
        lift = mbse.simulate('patu655_lift', payload=load, duration=2.0, seed=seed).samples
        found = mbse.estimate(lift, 'patu655_lift', preset='paper')
        counts = np.array(found.status) == 'updating'
        assert np.count_nonzero(counts) > 50
        assert ((found.lower <= load) & (load <= found.upper))[counts].all(), seed
