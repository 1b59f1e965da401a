// The flags of a job, for programs that parse their command line with CLI11. Other programs call
// Job::Start(&argc, &argv), which finds Sluice's flags, with the prefix --sluice-, by itself.

#ifndef SLUICE_WORKER_JOB_FLAGS_H_
#define SLUICE_WORKER_JOB_FLAGS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/protocol/learning_rate_schedule.h"

namespace CLI {
class App;
}

namespace sluice {

struct ServerFlags;

// The flags of a worker; rank 0 also uses the server's.
struct JobFlags {
  JobFlags();
  ~JobFlags();

  std::string server;                  // address; empty: rank 0 of mpirun is the server
  std::string name;                    // of this worker; empty: made of host name and process id
  double connect_timeout = 60;         // seconds
  std::string push_encoding = "none";  // syntax: ParseEncodingChoice()
  std::string pull_encoding = "none";  // the same, without exceptions for tensors
  bool error_feedback = true;
  bool options_must_agree = false;            // with those of the other workers
  uint64_t row_cache = 0;                     // steps; see RowCacheOptions
  double row_cache_memory = 256;              // MB
  std::string connections = "auto";           // "auto" or a number
  std::unique_ptr<ServerFlags> server_flags;  // includes --token-file and --trace
};

// Adds the flags to `app`, in groups of their own. `flags` outlives the parsing.
void AddJobFlags(CLI::App& app, JobFlags& flags);

// Adds only the flags that an observer needs to reach a running server: address, token, TLS.
void AddConnectionFlags(CLI::App& app, JobFlags& flags);

// INVALID_ARGUMENT if the server runs elsewhere (--server), and the words of the command line have
// flags that only a server reads; names them. The environment and files of flags may have such
// flags, since programs share them. `app` has parsed the command line; flags of its own are no
// server's.
absl::Status CheckFlagsOfServer(const CLI::App& app, const JobFlags& flags,
                                const std::vector<std::string>& words);

// The learning-rate schedule of a server with these flags.
absl::StatusOr<LearningRateSchedule> ScheduleFrom(const JobFlags& flags);

bool WantsTrace(const JobFlags& flags);

// Whether this process serves or trains alone with a cosine schedule whose end the flags do not
// say.
bool NeedsPushes(const JobFlags& flags);

// Sets how many pushes all workers together make until training ends. With that, a cosine schedule
// needs no --lr-total-steps.
void SetPushes(uint64_t pushes, JobFlags& flags);

// Tells that training may end before the pushes of SetPushes(): after so many pushes of each
// worker, or when the parameters have reached that step. 0: it does not.
void SetSoonerEnd(uint64_t pushes_of_each, uint64_t last_step, JobFlags& flags);

}  // namespace sluice

#endif  // SLUICE_WORKER_JOB_FLAGS_H_
