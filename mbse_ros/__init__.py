# SPDX-License-Identifier: Apache-2.0
"""State, force and payload estimation of machines from a multibody model and a few sensors."""

from pkgutil import extend_path

# Running from the source tree finds this file first, where the generated mbse_ros.msg is not:
# look for it in the other mbse_ros folders on sys.path (those of the installed package).
__path__ = extend_path(__path__, __name__)
__version__ = '0.1.0'
