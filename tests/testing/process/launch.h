// Whole jobs, launched as a user launches them, and what they say.
//
//   const auto job = Mpirun({1, {kServer}}, {3, {kTrain, "--max-steps=20"}});
//   EXPECT_THAT(job->Wait(), IsOkAndHolds(0)) << job->output();
//   EXPECT_EQ(Counters(job->output()), "20 steps, 60 received: 60 accepted");

#ifndef SLUICE_TESTS_TESTING_PROCESS_LAUNCH_H_
#define SLUICE_TESTS_TESTING_PROCESS_LAUNCH_H_

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tests/testing/process/process.h"

namespace sluice {

using Words = std::vector<std::string>;  // of a command line

// A part of a launch by mpirun: so many ranks of one program.
struct Ranks {
  int count = 1;
  Words argv;
};

// Starts a program, which must exist.
std::unique_ptr<Process> Start(const Words& argv);

// What mpirun does about a rank that was killed.
enum class RankDeath { kEndsTheJob, kIsRecovered };

// Starts mpirun, with what it needs where there are more ranks than cores and everybody is root.
// The mpirun of Debian 13 crashes if there are several parts (open-mpi/ompi#13303): prterun, on
// which it builds, does its work there.
std::unique_ptr<Process> Mpirun(const std::vector<Ranks>& parts,
                                RankDeath death = RankDeath::kEndsTheJob);

// A TCP port of 127.0.0.1 on which nobody listens, and which no connection gets by chance.
uint16_t FreePort();

// Waits until the server at `address`, which runs already, has accepted so many pushes.
absl::Status WaitForAccepted(const std::string& address, uint64_t pushes);

// Waits until somebody observes the job of the server at `address`.
absl::Status WaitForObserver(const std::string& address);

// The step of the server at `address`.
absl::StatusOr<uint64_t> StepOf(const std::string& address);

// The process of the worker with that index, once it has joined.
absl::StatusOr<pid_t> PidOfWorker(const std::string& address, uint32_t index);

// Waits until the server says that of the worker: "EVICTED".
absl::Status WaitForPresence(const std::string& address, const std::string& worker,
                             const std::string& presence);

// The rows of the closing table, by name; empty unless `output` holds exactly one.
std::map<std::string, std::string> ClosingRows(absl::string_view output);

// The closing table's steps and pushes, "20 steps, 61 received: 60 accepted, 1 aborted"; ends with
// ", unbalanced" if the pushes do not add up. Empty unless `output` holds exactly one table.
std::string Counters(absl::string_view output);

// The lines of `output` that contain `part`.
std::vector<std::string> LinesWith(absl::string_view output, absl::string_view part);

}  // namespace sluice

#endif  // SLUICE_TESTS_TESTING_PROCESS_LAUNCH_H_
