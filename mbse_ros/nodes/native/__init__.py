# SPDX-License-Identifier: Apache-2.0
"""The compiled estimator: messages in, messages out, without Python between them."""
