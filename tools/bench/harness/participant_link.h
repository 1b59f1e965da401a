// The line to a participant of a cell; tools/bench/harness/participant.h is its other half.

#ifndef SLUICE_TOOLS_BENCH_HARNESS_PARTICIPANT_LINK_H_
#define SLUICE_TOOLS_BENCH_HARNESS_PARTICIPANT_LINK_H_

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace sluice::bench {

// Of a process since it started.
struct Usage {
  double cpu_seconds = 0;
  uint64_t peak_bytes = 0;
};

// Externally synchronized. An error names the participant; why it failed, the participant itself
// has said on stderr. The caller ignores SIGPIPE. The end of the link is the end of the
// participant.
class ParticipantLink {
 public:
  // Takes the descriptors; `name` is for errors: "sluice-tcp's worker 2 of 4".
  ParticipantLink(const std::string& name, int to, int from);

  // Waits until the participant is ready; a server's address, or nothing. Once, before all else.
  absl::StatusOr<std::string> AwaitReady();

  // Lets the participant begin a round, then waits for its end: the seconds it took.
  absl::Status BeginRound();
  absl::StatusOr<double> EndRound();

  absl::StatusOr<Usage> AskUsage();

 private:
  struct Closer {
    void operator()(FILE* file) const { fclose(file); }
  };
  using File = std::unique_ptr<FILE, Closer>;

  absl::Status Write(absl::string_view line);
  absl::StatusOr<std::string> ReadLine();
  absl::Status Unexpected(absl::string_view line, absl::string_view expected) const;

  const std::string name_;
  const File to_;
  const File from_;
};

}  // namespace sluice::bench

#endif  // SLUICE_TOOLS_BENCH_HARNESS_PARTICIPANT_LINK_H_
