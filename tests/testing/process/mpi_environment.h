// What mpirun needs to run as part of a test.

#ifndef SLUICE_TESTS_TESTING_PROCESS_MPI_ENVIRONMENT_H_
#define SLUICE_TESTS_TESTING_PROCESS_MPI_ENVIRONMENT_H_

#include "tests/testing/process/process.h"

namespace sluice {

// To add to the environment of mpirun, or of a program that uses MPI without it. Open MPI names its
// files after process numbers, which several sandboxes share: here it keeps them in the test's own
// directory, so that tests may run side by side.
Process::Environment MpiEnvironment();

}  // namespace sluice

#endif  // SLUICE_TESTS_TESTING_PROCESS_MPI_ENVIRONMENT_H_
