# SPDX-License-Identifier: Apache-2.0
# The ROS 2 wheels export CMake targets <package>__rosidl_generator_py that name the include folders of the machine
# that built the wheels.  Take those out before CMake generates; the Python in use is found by find_package anyway.
include_guard(GLOBAL)

function(_mbse_ros_fix_wheel_targets)
  get_property(targets DIRECTORY PROPERTY IMPORTED_TARGETS)
  set(corrected 0)
  foreach(target IN LISTS targets)
    get_target_property(folders "${target}" INTERFACE_INCLUDE_DIRECTORIES)
    if(folders MATCHES "/opt/python/")
      list(FILTER folders EXCLUDE REGEX "^/opt/python/")
      set_target_properties("${target}" PROPERTIES INTERFACE_INCLUDE_DIRECTORIES "${folders}")
      math(EXPR corrected "${corrected} + 1")
    endif()
  endforeach()
  message(STATUS "ROS 2 wheels: include folders corrected in ${corrected} targets")
endfunction()

cmake_language(DEFER CALL _mbse_ros_fix_wheel_targets)
