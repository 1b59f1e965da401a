// How a program says why it ends, and with which exit code; and how the ranks of a launch say it
// once, though all of them know.
//
// When a rank ends with another exit code than 0, mpirun ends the whole job, and may kill other
// ranks before they have written anything. So only the rank that says why ends with such a code.
// The others end with 0; mpirun's exit code is that of the rank that speaks.

#ifndef SLUICE_COMMON_LAUNCH_FAILURE_H_
#define SLUICE_COMMON_LAUNCH_FAILURE_H_

#include <CLI/CLI.hpp>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"

namespace sluice {

// Tells the other ranks, through MPI, that this one cannot take part because of `why`. Call it
// instead of MpiBootstrap(). Returns the error to report. Without a launch, and in a program that
// has a supervisor, which has passed these checks before, that is `why`.
absl::Status ShareFailure(const absl::Status& why);

// Marks the error of a launch for the rank that says it, and for the others.
absl::Status SaidForAllRanks(absl::Status why);
absl::Status SaidByRank(int rank, const absl::Status& why);

// Whether another rank says this error. Then this rank says nothing and ends with exit code 0. That
// training diverged is said by the server, if it is in the same launch.
bool IsSaidByAnotherRank(const absl::Status& why);

// The exit code of a worker's program that ends because of `why`: 0 for OK, 2 for INVALID_ARGUMENT,
// 3 for UNAVAILABLE (there is no server, or it is gone), 7 for DIVERGED, else 1. The supervisor of
// --max-restarts starts a program again only after 1.
int ExitCodeOf(const absl::Status& why);

// Prints why this program ends, unless another rank does, or it was told to stop. Returns the exit
// code: `code`, or 0 if another rank says it.
int ReportFailure(absl::string_view program, const absl::Status& why, int code);
// The same with ExitCodeOf(why).
int ReportFailure(absl::string_view program, const absl::Status& why);

// ExitCodeOfUsage() for a program that may be part of a launch: one rank prints the help or the
// error.
absl::optional<int> ExitCodeOfLaunchedUsage(CLI::App& app, int argc, const char* const* argv);

}  // namespace sluice

#endif  // SLUICE_COMMON_LAUNCH_FAILURE_H_
