# SPDX-License-Identifier: Apache-2.0
"""The error-state EKF of a mechanism as a node of this name (Naya et al., review, section 7): ``linkage_node``, whose
default filter is errorEKF_FE; ``errorEKF``, ``errorEKF_EJ`` and all others by the parameter ``estimator``."""

from __future__ import annotations

from .linkage_node import LinkageNode


class ErrorEkfNode(LinkageNode):
    """``linkage_node`` by another name."""

    executable = 'errorekf_node'


main = ErrorEkfNode.main

if __name__ == '__main__':
    main()
