# SPDX-License-Identifier: Apache-2.0
"""What ``import mbse_ros as mbse`` gives: models by name, and arrays in, arrays out; docs/python_api.md."""
