// Launches whole jobs as a user does, and reads their output.
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
#include "absl/time/time.h"
#include "tests/testing/process/process.h"

namespace sluice {

using Words = std::vector<std::string>;  // the words of a command line

// A part of a launch by mpirun: `count` ranks of one program.
struct Ranks {
  int count = 1;
  Words argv;
};

// How long a test waits for a program that measures or trains for long, on a busy machine.
inline constexpr absl::Duration kMeasurement = absl::Minutes(10);

// Starts a program, which must exist.
std::unique_ptr<Process> Start(const Words& argv);

// The reaction of mpirun to a rank that was killed.
enum class RankDeath { kEndsTheJob, kIsRecovered };

// Starts mpirun, with the flags that allow more ranks than cores and a user who is root. The mpirun
// of Debian 13 crashes if there are several parts (open-mpi/ompi#13303). There, this starts prterun
// instead, on which mpirun is built. Its environment is MpiEnvironment() with `extra` on top.
std::unique_ptr<Process> Mpirun(const std::vector<Ranks>& parts,
                                RankDeath death = RankDeath::kEndsTheJob,
                                const Process::Environment& extra = {});

// A TCP port of 127.0.0.1 on which nobody listens. The system does not give it to outgoing
// connections, and no other test gets it as long as this process lives. One thread at a time calls
// it.
uint16_t FreePort();

// Waits until the server at `address`, which runs already, has accepted `pushes` pushes.
absl::Status WaitForAccepted(const std::string& address, uint64_t pushes);

// Waits until an observer has joined the server at `address`.
absl::Status WaitForObserver(const std::string& address);

// Waits until all workers that the server at `address` expects have joined: it trains, or has.
absl::Status WaitForTraining(const std::string& address);

// Waits until the server at `address` has made `steps` steps. In sync and backup the first one
// waits for all workers.
absl::Status WaitForStep(const std::string& address, uint64_t steps);

// The current step of the server at `address`.
absl::StatusOr<uint64_t> StepOf(const std::string& address);

// The process of the worker with that index, once it has joined.
absl::StatusOr<pid_t> PidOfWorker(const std::string& address, uint32_t index);

// Waits until the server reports this presence of the worker, for example "EVICTED".
absl::Status WaitForPresence(const std::string& address, const std::string& worker,
                             const std::string& presence);

// How many workers of the server at `address` have that presence.
absl::StatusOr<uint32_t> CountWorkers(const std::string& address, const std::string& presence);

// The rows of the closing table, by name; empty unless `output` holds exactly one.
std::map<std::string, std::string> ClosingRows(absl::string_view output);

// The steps and push counters of the closing table: "20 steps, 61 received: 60 accepted, 1
// aborted". Ends with ", unbalanced" if the counters do not add up. Empty unless `output` holds
// exactly one table.
std::string Counters(absl::string_view output);

// The lines of `output` that contain `part`.
std::vector<std::string> LinesWith(absl::string_view output, absl::string_view part);

}  // namespace sluice

#endif  // SLUICE_TESTS_TESTING_PROCESS_LAUNCH_H_
