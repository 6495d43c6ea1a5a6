# SPDX-License-Identifier: Apache-2.0
"""The sections of a mechanism or machine file, one module each."""
