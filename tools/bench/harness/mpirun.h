// Starts participants by mpirun. mpirun gives its ranks no stdin of their own and mixes their
// output. So each rank is started through stdio_proxy_main, which connects its stdin and stdout to
// a socket of the measuring process.

#ifndef SLUICE_TOOLS_BENCH_HARNESS_MPIRUN_H_
#define SLUICE_TOOLS_BENCH_HARNESS_MPIRUN_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tools/bench/harness/child.h"
#include "tools/bench/harness/participant_link.h"

namespace sluice::bench {

struct MpiLaunch {
  std::unique_ptr<Child> mpirun;
  std::vector<std::unique_ptr<ParticipantLink>> ranks;
};

// Starts `command` once for each of `names`, bound to no core. Errors contain the rank's name.
// `root` is the folder that holds tools/bench/harness/stdio_proxy_main.
absl::StatusOr<MpiLaunch> LaunchByMpirun(const std::string& root,
                                         const std::vector<std::string>& names,
                                         const std::vector<std::string>& command);

}  // namespace sluice::bench

#endif  // SLUICE_TOOLS_BENCH_HARNESS_MPIRUN_H_
