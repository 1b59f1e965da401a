// A part of a cell under the control of the process that measures; tools/bench/part.h is its other
// half.

#ifndef SLUICE_TOOLS_BENCH_ROUND_PROCESS_H_
#define SLUICE_TOOLS_BENCH_ROUND_PROCESS_H_

#include <sys/types.h>

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tools/bench/part.h"

namespace sluice::bench {

// Of a process since it started.
struct Usage {
  double cpu_seconds = 0;
  uint64_t peak_bytes = 0;
};

// Externally synchronized. An error names the part; why it failed, the part itself has said on
// stderr. The caller ignores SIGPIPE.
class RoundProcess {
 public:
  static absl::StatusOr<std::unique_ptr<RoundProcess>> Start(const Part& part);

  // Stops the process, if End() has not been called: a worker at once, a server after it has
  // cleaned up. To be called on workers first.
  ~RoundProcess();

  RoundProcess(const RoundProcess&) = delete;
  RoundProcess& operator=(const RoundProcess&) = delete;

  // Waits until the part is ready; a server's address, or nothing. Once, before all else.
  absl::StatusOr<std::string> AwaitReady();

  // Lets a worker begin a round, then waits for its end: the seconds it took.
  absl::Status BeginRound();
  absl::StatusOr<double> EndRound();

  absl::StatusOr<Usage> AskUsage();

  // Lets the part end, and waits for it; an error unless all went well. Once, after all else.
  absl::Status End();

 private:
  struct Closer {
    void operator()(FILE* file) const { fclose(file); }
  };
  using File = std::unique_ptr<FILE, Closer>;

  explicit RoundProcess(const Part& part) : part_(part) {}

  absl::Status Launch();
  absl::Status Write(absl::string_view line);
  absl::StatusOr<std::string> ReadLine();

  const Part part_;
  pid_t pid_ = 0;  // 0: not running
  File to_;
  File from_;
};

}  // namespace sluice::bench

#endif  // SLUICE_TOOLS_BENCH_ROUND_PROCESS_H_
