# SPDX-License-Identifier: Apache-2.0
"""What benchmarks/mutations.py throws at the package: mutators, kinds of cases, and the processes that run them."""
