# SPDX-License-Identifier: Apache-2.0
# A full ROS 2 with this package built by colcon: launch, RViz, robot_state_publisher, tf2.
#   docker build -t mbse_ros . && docker run --rm -it --net=host mbse_ros ros2 launch mbse_ros machine.launch.py
# Not run by our tests, which have no Docker: docs/installation.md.
ARG ROS_DISTRO=jazzy
FROM ros:${ROS_DISTRO}-ros-base

RUN apt-get update && apt-get install -y --no-install-recommends \
      g++ python3-pip python3-venv ros-${ROS_DISTRO}-robot-state-publisher ros-${ROS_DISTRO}-rviz2 \
      ros-${ROS_DISTRO}-tf2-msgs && rm -rf /var/lib/apt/lists/*

# Python packages beside those of the system, with the numpy that ROS 2 was compiled against.
WORKDIR /ws
COPY tools/requirements /tmp/requirements
RUN python3 -m venv --system-site-packages /venv && touch /venv/COLCON_IGNORE && \
    /venv/bin/pip install --no-cache-dir -r /tmp/requirements/python.in \
      "numpy==$(python3 -c 'import numpy; print(numpy.__version__)')"

COPY . src/mbse_ros
RUN . /opt/ros/${ROS_DISTRO}/setup.sh && . /venv/bin/activate && \
    python3 -m colcon build --packages-select mbse_ros --cmake-args -DBUILD_TESTING=OFF

RUN printf '#!/bin/bash\n. /venv/bin/activate\n. /ws/install/setup.bash\nexec "$@"\n' > /entry && chmod +x /entry
ENTRYPOINT ["/entry"]
CMD ["ros2", "launch", "mbse_ros", "machine.launch.py"]
