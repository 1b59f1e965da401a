# find_package(Sluice) makes the target Sluice::worker: the library libsluice, and its header <sluice/sluice.h>.
# With COMPONENTS torch it also makes Sluice::torch (SluiceTorch.cmake). This file lies in LIBRARIES/cmake/Sluice.

get_filename_component(_sluice_here "${CMAKE_CURRENT_LIST_DIR}" REALPATH)
get_filename_component(_sluice_libraries "${_sluice_here}/../.." REALPATH)
string(REGEX REPLACE "/lib(/[^/]+)?$" "" _sluice_prefix "${_sluice_libraries}")

if(NOT TARGET Sluice::worker)
  add_library(Sluice::worker SHARED IMPORTED)
  set_target_properties(Sluice::worker PROPERTIES
    IMPORTED_LOCATION "${_sluice_libraries}/libsluice.so.0"
    IMPORTED_SONAME libsluice.so.0
    INTERFACE_INCLUDE_DIRECTORIES "${_sluice_prefix}/include")
  # The definitions of the messages, for workers that use gRPC without the library.
  set(Sluice_PROTO_DIR "${_sluice_prefix}/share/sluice/proto")
endif()

set(Sluice_worker_FOUND TRUE)
foreach(_sluice_component IN LISTS Sluice_FIND_COMPONENTS)
  if(_sluice_component STREQUAL "torch")
    include("${_sluice_here}/SluiceTorch.cmake" OPTIONAL RESULT_VARIABLE _sluice_included)
    if(NOT _sluice_included)
      set(Sluice_NOT_FOUND_MESSAGE "the component torch is not installed: apt install libsluice-torch-dev")
    elseif(TARGET Sluice::torch)
      set(Sluice_torch_FOUND TRUE)
    endif()
    unset(_sluice_included)
  endif()
  if(NOT Sluice_${_sluice_component}_FOUND AND Sluice_FIND_REQUIRED_${_sluice_component})
    set(Sluice_FOUND FALSE)
    if(NOT Sluice_NOT_FOUND_MESSAGE)
      set(Sluice_NOT_FOUND_MESSAGE "there is no component ${_sluice_component}; expected worker or torch")
    endif()
  endif()
endforeach()
unset(_sluice_component)
unset(_sluice_here)
unset(_sluice_libraries)
unset(_sluice_prefix)
