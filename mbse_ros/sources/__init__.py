# SPDX-License-Identifier: Apache-2.0
"""Channels of a machine out of messages of any type, by a map: which topic, which field, which unit, which stamp."""
