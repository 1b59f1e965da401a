// Commands a participant of a cell from the measuring process; participant.h is the other end.

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

// The resources that a process has used since it started.
struct Usage {
  double cpu_seconds = 0;
  uint64_t peak_bytes = 0;
};

// Externally synchronized. An error names the participant, which itself prints the reason to
// stderr. The caller must ignore SIGPIPE. The destructor closes the participant's stdin, which ends
// it.
class ParticipantLink {
 public:
  // Owns the descriptors. Errors contain `name`, for example "sluice-tcp's worker 2 of 4".
  ParticipantLink(const std::string& name, int to, int from);

  // Waits until the participant is ready. Returns a server's address, or an empty string for a
  // worker. Call it once, before the other methods.
  absl::StatusOr<std::string> AwaitReady();

  // BeginRound() starts a round. EndRound() waits for its end and returns its seconds.
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
