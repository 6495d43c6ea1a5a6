# SPDX-License-Identifier: Apache-2.0
"""The scale: loads out of the stream of masses, what they weigh together, limits, records that survive a crash."""
