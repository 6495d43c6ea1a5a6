# SPDX-License-Identifier: Apache-2.0
"""The server of the operator's page."""
