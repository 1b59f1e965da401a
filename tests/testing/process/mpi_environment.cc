#include "tests/testing/process/mpi_environment.h"

#include <string>

#include "gtest/gtest.h"

namespace sluice {

Process::Environment MpiEnvironment() {
  const std::string directory = ::testing::TempDir();
  return {{"OMPI_ALLOW_RUN_AS_ROOT", "1"},
          {"OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"},
          {"PRTE_ALLOW_RUN_AS_ROOT", "1"},
          {"PRTE_ALLOW_RUN_AS_ROOT_CONFIRM", "1"},
          {"TMPDIR", directory},
          {"OMPI_MCA_btl_vader_backing_directory", directory},
          {"OMPI_MCA_btl_sm_backing_directory", directory},  // its name since Open MPI 5
          // What Open MPI leaves behind is not ours to mend.
          {"ASAN_OPTIONS", "detect_leaks=0"}};
}

Process::Environment PatientMpi() {
  return {{"OMPI_MCA_odls_base_sigkill_timeout", "5"},
          {"PRTE_MCA_odls_base_sigkill_timeout", "5"}};  // its name since Open MPI 5
}

}  // namespace sluice
