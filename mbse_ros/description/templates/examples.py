# SPDX-License-Identifier: Apache-2.0
"""Answers of an invented machine of each kind, which closes over all strokes: examples, and the files to be changed."""

from __future__ import annotations

EXCAVATOR = {
    'name': 'mini8', 'mass': '8 t', 'boom': '3.84 m', 'boom_base': '0.315 m, -0.41 m', 'boom_eye': '1.65 m, 2.41 m',
    'boom_cylinder': '100 mm, 65 mm, 1.65 m, 2.075 m', 'arm': '1.965 m', 'arm_base': '2.45 m, 1.705 m',
    'arm_eye': '0.595 m, 0.84 m', 'arm_cylinder': '95 mm, 65 mm, 1.23 m, 2.24 m', 'bucket': '0.32 m, 1.03 m, 1.135 m',
    'bucket_base': '0.53 m, 1.755 m', 'rocker_pin': '0.295 m, 0.03 m', 'rocker': '0.395 m', 'link': '0.38 m',
    'bucket_cylinder': '85 mm, 55 mm, 1.125 m, 1.81 m', 'positions': 'angles, 0.1 deg'}
ONE_BOOM = {
    'name': 'crane_9', 'mass': '1.1 t', 'boom': '2.70 m', 'lift_base': '0.25 m, -1.05 m', 'lift_eye': '0.33 m, 2.42 m',
    'lift_cylinder': '110 mm, 63 mm, 0.82 m, 1.34 m', 'positions': 'strokes, 1 mm'}
EXAMPLES = {
    'excavator': EXCAVATOR,
    'two_piece_excavator': {
        'name': 'two_piece', 'mass': '9 t', 'boom': '1.9 m', 'boom_base': '0.30 m, -0.35 m',
        'boom_eye': '1.3 m, 0.75 m', 'boom_cylinder': '110 mm, 70 mm, 1.12 m, 1.70 m', 'upper_boom': '2.1 m',
        'adjust_base': '1.0 m, 1.0 m', 'adjust_eye': '0.45 m, 1.75 m',
        'adjust_cylinder': '120 mm, 80 mm, 0.75 m, 1.20 m', 'arm': '1.85 m', 'arm_base': '1.15 m, 1.15 m',
        'arm_eye': '0.50 m, 0.70 m', 'arm_cylinder': '95 mm, 65 mm, 0.90 m, 1.50 m',
        'bucket': '0.32 m, 1.03 m, 1.135 m', 'bucket_base': '0.45 m, 1.72 m', 'rocker_pin': '0.30 m, 0.03 m',
        'rocker': '0.40 m', 'link': '0.38 m', 'bucket_cylinder': '80 mm, 55 mm, 1.10 m, 1.70 m',
        'positions': 'inclinations, 0.2 deg'},
    'wheel_loader': {
        'name': 'loader12', 'mass': '12 t', 'boom': '2.6 m', 'lift_base': '-0.25 m, -0.75 m',
        'lift_eye': '1.35 m, 1.35 m', 'lift_cylinder': '110 mm, 60 mm, 1.11 m, 1.97 m',
        'bucket': '0.45 m, 1.25 m, 1.30 m', 'tilt_base': '0.05 m, 0.45 m', 'bellcrank_pin': '1.5 m, 1.15 m',
        'bellcrank': '0.60 m, 0.65 m, 1.20 m', 'link': '1.20 m', 'tilt_cylinder': '130 mm, 70 mm, 1.05 m, 1.60 m',
        'positions': 'angles, 0.1 deg'},
    'loader_crane': {
        **ONE_BOOM, 'outer_boom': '2.60 m', 'tilt_base': '1.30 m, 1.46 m', 'tilt_eye': '0.32 m, 2.66 m',
        'tilt_cylinder': '90 mm, 50 mm, 1.20 m, 1.74 m'},
    'forwarder_crane': {
        **ONE_BOOM, 'name': 'forwarder', 'outer_boom': '2.60 m', 'tilt_base': '1.30 m, 1.46 m',
        'tilt_eye': '0.32 m, 2.66 m', 'tilt_cylinder': '90 mm, 50 mm, 1.20 m, 1.74 m',
        'telescope_cylinder': '50 mm, 32 mm, 1.9 m, 3.3 m', 'grapple': '180 kg', 'hanging': '1 m'},
    'telehandler': {
        'name': 'tele9', 'mass': '9 t', 'boom': '3.2 m', 'lift_base': '0.9 m, -0.55 m', 'lift_eye': '1.5 m, 1.78 m',
        'lift_cylinder': '125 mm, 70 mm, 0.80 m, 1.50 m', 'telescope_cylinder': '80 mm, 50 mm, 2.2 m, 4.2 m',
        'carriage': '0.9 m', 'tilt_base': '2.55 m, 0.70 m', 'tilt_eye': '0.30 m, 0.95 m',
        'tilt_cylinder': '100 mm, 60 mm, 0.52 m, 0.82 m', 'positions': 'angles, 0.1 deg'},
    'one_boom_crane': ONE_BOOM,
    'single_cylinder': {
        'name': 'arm', 'mass': '300 kg', 'arm': '2 m', 'lift_base': '0.3 m, -0.8 m', 'lift_eye': '0.7 m, 1.4 m',
        'lift_cylinder': '80 mm, 45 mm, 0.75 m, 1.15 m', 'positions': 'strokes, 1 mm'}}
"""By kind, to each question that needs an answer."""
