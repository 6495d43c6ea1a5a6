# SPDX-License-Identifier: Apache-2.0
"""What sensors see of a state, a pose, a payload."""
