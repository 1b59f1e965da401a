// Commands a process that holds many workers; crowd_worker_main.cc is the other end.

#ifndef SLUICE_TOOLS_BENCH_CROWDS_CROWD_PROCESS_H_
#define SLUICE_TOOLS_BENCH_CROWDS_CROWD_PROCESS_H_

#include <sys/types.h>

#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tools/bench/harness/child.h"

namespace sluice::bench {

// Externally synchronized. Errors contain the name; the process itself prints the reason to stderr.
// The caller must ignore SIGPIPE. The destructor ends the process.
class CrowdProcess {
 public:
  // Starts `argv`. Its first answer has no numbers.
  static absl::StatusOr<std::unique_ptr<CrowdProcess>> Start(const std::string& name,
                                                             const std::vector<std::string>& argv);

  // Must not be called after End() or Kill().
  pid_t pid() const { return child_->pid(); }

  // Sends a command; Answer() must take its answer before the next one is sent.
  absl::Status Tell(absl::string_view command);

  // Waits for the next answer, which has at least that many numbers.
  absl::StatusOr<std::vector<double>> Answer(size_t least);

  // Lets the process end, and waits for it. Returns an error unless its exit status is 0.
  absl::Status End();

  // Kills it by SIGKILL. No other method may be called afterwards.
  void Kill();

 private:
  struct Closer {
    void operator()(FILE* file) const { fclose(file); }
  };
  using File = std::unique_ptr<FILE, Closer>;

  CrowdProcess(std::string name, std::unique_ptr<Child> child, File to, File from)
      : name_(std::move(name)),
        child_(std::move(child)),
        to_(std::move(to)),
        from_(std::move(from)) {}

  const std::string name_;
  const std::unique_ptr<Child> child_;
  File to_;
  const File from_;
};

}  // namespace sluice::bench

#endif  // SLUICE_TOOLS_BENCH_CROWDS_CROWD_PROCESS_H_
