# find_package(Sluice) makes the target Sluice::worker: the library libsluice, and its header <sluice/sluice.h>.
# This file lies in LIBRARIES/cmake/Sluice.

if(NOT TARGET Sluice::worker)
  get_filename_component(_sluice_here "${CMAKE_CURRENT_LIST_DIR}" REALPATH)
  get_filename_component(_sluice_libraries "${_sluice_here}/../.." REALPATH)
  string(REGEX REPLACE "/lib(/[^/]+)?$" "" _sluice_prefix "${_sluice_libraries}")
  add_library(Sluice::worker SHARED IMPORTED)
  set_target_properties(Sluice::worker PROPERTIES
    IMPORTED_LOCATION "${_sluice_libraries}/libsluice.so.0"
    IMPORTED_SONAME libsluice.so.0
    INTERFACE_INCLUDE_DIRECTORIES "${_sluice_prefix}/include")
  # The definitions of the messages, for workers that use gRPC without the library.
  set(Sluice_PROTO_DIR "${_sluice_prefix}/share/sluice/proto")
  unset(_sluice_here)
  unset(_sluice_libraries)
  unset(_sluice_prefix)
endif()
