# SPDX-License-Identifier: Apache-2.0
"""Plots, pictures and the web page of a run: arrays in, pictures out.

Describe the run with the dataclasses of :mod:`.data`, then call :func:`mbse_ros.report.writer.write_report`.
"""
