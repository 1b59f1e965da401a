// The environment in which tests run mpirun.

#ifndef SLUICE_TESTS_TESTING_PROCESS_MPI_ENVIRONMENT_H_
#define SLUICE_TESTS_TESTING_PROCESS_MPI_ENVIRONMENT_H_

#include "tests/testing/process/process.h"

namespace sluice {

// Variables for mpirun, or for a program that uses MPI without mpirun. Open MPI names its files
// after process ids, and several sandboxes have the same process ids. With these variables, it
// keeps the files in the test's own directory, so that tests can run at the same time.
Process::Environment MpiEnvironment();
// Variables to add, so that mpirun waits five seconds in place of one before it kills the ranks of
// a job that it ends: the machine may be busy.
Process::Environment PatientMpi();

}  // namespace sluice

#endif  // SLUICE_TESTS_TESTING_PROCESS_MPI_ENVIRONMENT_H_
