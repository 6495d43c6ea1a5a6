# SPDX-License-Identifier: Apache-2.0
"""The commands of `mbse` with their options: a function each; what it does is imported when it is called."""
