# SPDX-License-Identifier: Apache-2.0
"""``python -m mbse_ros.cli``."""

from . import main

if __name__ == '__main__':
    main()
