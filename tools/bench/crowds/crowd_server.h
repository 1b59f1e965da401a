// The real server of a row.

#ifndef SLUICE_TOOLS_BENCH_CROWDS_CROWD_SERVER_H_
#define SLUICE_TOOLS_BENCH_CROWDS_CROWD_SERVER_H_

#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/net/private_directory.h"
#include "tests/testing/process/process.h"
#include "tools/bench/crowds/crowd_result.h"
#include "tools/bench/crowds/crowd_row.h"

namespace sluice::bench {

// Externally synchronized. The destructor kills the server.
class CrowdServer {
 public:
  // Returns once it answers.
  static absl::StatusOr<std::unique_ptr<CrowdServer>> Start(const CrowdCase& of,
                                                            const CrowdSetup& setup);

  const std::string& address() const { return address_; }
  pid_t pid() const { return process_->pid(); }

  // Lets so much time pass, and takes what the server writes meanwhile. An error if it ends.
  absl::Status Pass(absl::Duration time);

  // Waits until it has listed so many workers as evicted. Returns how long that took.
  // DEADLINE_EXCEEDED after `limit`.
  absl::StatusOr<absl::Duration> AwaitEvictions(uint32_t workers, absl::Duration limit);

  // Waits until it ends, since all workers have left. Returns the rows of its closing table.
  absl::StatusOr<std::map<std::string, std::string>> AwaitEnd();

 private:
  CrowdServer(std::unique_ptr<PrivateDirectory> directory, std::string address,
              std::unique_ptr<Process> process)
      : directory_(std::move(directory)),
        address_(std::move(address)),
        process_(std::move(process)) {}

  absl::Status AwaitAnswer();

  const std::unique_ptr<PrivateDirectory> directory_;  // of the unix socket; null with TCP
  const std::string address_;
  const std::unique_ptr<Process> process_;
};

}  // namespace sluice::bench

#endif  // SLUICE_TOOLS_BENCH_CROWDS_CROWD_SERVER_H_
