# SPDX-License-Identifier: Apache-2.0
# A full ROS 2 with this package built by colcon: launch, RViz, robot_state_publisher, tf2; it runs as a user, not as root.
#   docker build -t mbse_ros . && docker run --rm -it --net=host mbse_ros
# Not run by our tests, which have no Docker: docs/installation.md. hadolint reads it in `make lint`.
# The tag moves with the updates of this ROS 2; for builds that repeat: --build-arg BASE=ros@sha256:...
ARG ROS_DISTRO=jazzy
ARG BASE=ros:${ROS_DISTRO}-ros-base
FROM ${BASE}
SHELL ["/bin/bash", "-o", "pipefail", "-c"]

# What package.xml names; first and alone, so that a changed module does not repeat it. The base sets ROS_DISTRO.
WORKDIR /ws
COPY package.xml src/mbse_ros/
COPY tools src/mbse_ros/tools
RUN src/mbse_ros/tools/ros_packages.sh \
      "ros-${ROS_DISTRO}-robot-state-publisher" "ros-${ROS_DISTRO}-rviz2" "ros-${ROS_DISTRO}-tf2-msgs" && \
    rm -rf /var/lib/apt/lists/*

# Python packages that Ubuntu lacks come as wheels of the lock, by their SHA-256.
COPY . src/mbse_ros
RUN src/mbse_ros/tools/in_ros.sh colcon build --packages-select mbse_ros --cmake-args -DBUILD_TESTING=OFF && \
    printf '#!/bin/bash\nsource /ws/install/setup.bash\nexec "$@"\n' >/entry && chmod +x /entry && \
    useradd --create-home --uid 1001 mbse

USER 1001
WORKDIR /home/mbse
ENTRYPOINT ["/entry"]
CMD ["ros2", "launch", "mbse_ros", "machine.launch.py"]
