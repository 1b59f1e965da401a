# find_package(Sluice COMPONENTS torch) makes the target Sluice::torch: the library libsluice-torch, its header
# <sluice/torch.h>, and the LibTorch of Debian, with which the library was built. This file lies beside SluiceConfig.cmake.

if(NOT TARGET Sluice::torch)
  include(CMakeFindDependencyMacro)
  find_dependency(absl)
  find_path(_sluice_torch_include torch/torch.h
    HINTS "${_sluice_prefix}/include" PATH_SUFFIXES torch/csrc/api/include NO_CACHE)
  foreach(_sluice_library torch torch_cpu c10)
    find_library(_sluice_${_sluice_library} ${_sluice_library} HINTS "${_sluice_libraries}" NO_CACHE)
  endforeach()
  if(NOT _sluice_torch_include OR NOT _sluice_torch OR NOT _sluice_torch_cpu OR NOT _sluice_c10)
    set(Sluice_NOT_FOUND_MESSAGE "Sluice::torch needs Debian's LibTorch: apt install libtorch-dev")
  else()
    add_library(Sluice::torch SHARED IMPORTED)
    set_target_properties(Sluice::torch PROPERTIES
      IMPORTED_LOCATION "${_sluice_libraries}/libsluice-torch.so.0"
      IMPORTED_SONAME libsluice-torch.so.0
      INTERFACE_COMPILE_FEATURES cxx_std_17
      INTERFACE_INCLUDE_DIRECTORIES "${_sluice_prefix}/include;${_sluice_torch_include}"
      INTERFACE_LINK_LIBRARIES
        "${_sluice_torch};${_sluice_torch_cpu};${_sluice_c10};absl::optional;absl::status;absl::statusor;absl::strings")
  endif()
  unset(_sluice_torch_include)
  unset(_sluice_torch)
  unset(_sluice_torch_cpu)
  unset(_sluice_c10)
  unset(_sluice_library)
endif()
