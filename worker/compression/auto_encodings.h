// Chooses a worker's encodings while the job runs: of pushes, of pulls, or of both
// (`--push-encoding=auto`, `--pull-encoding=auto`). RoundEncodings calls it around each round.

#ifndef SLUICE_WORKER_COMPRESSION_AUTO_ENCODINGS_H_
#define SLUICE_WORKER_COMPRESSION_AUTO_ENCODINGS_H_

#include <memory>
#include <string>

#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "common/base/clock.h"
#include "common/protocol/encoding_report.h"
#include "common/tensor/layout.h"
#include "worker/compression/auto_encoding.h"
#include "worker/compression/gradient_encoder.h"
#include "worker/connection/server_connection.h"

namespace sluice {

// Used by one thread at a time. Everything is sent unencoded if the server is on this machine;
// otherwise, until the number of connections is settled (connection_chooser.h).
class AutoEncodings {
 public:
  // `worker` is the worker's name, for the log. A direction whose choice is not automatic is not
  // changed. `push.transforms` has every transform that the two choices name. `servers` servers
  // hold the vector. `clock` outlives this.
  AutoEncodings(const Layout& layout, const GradientEncoding& push, const EncodingChoice& pull,
                const std::string& worker, uint32_t servers, const Clock& clock);

  // Called before a round: sets the encodings of `encoder`, which may be null, and of `connection`.
  void BeginRound(GradientEncoder* encoder, ServerConnection& connection);

  // Whether gradients must not leave early, because the next push is measured.
  bool holds_back() const { return active_ && push_ != nullptr && push_->measures_link(); }

  // Whether the next pull is measured.
  bool measures_pull() const { return active_ && pull_ != nullptr && pull_->measures_link(); }

  // Called when the round's gradient was pushed, and when its parameters were pulled.
  void EndPush(const Transfer& transfer, absl::Span<const float> gradient);
  void EndPull(const Transfer& transfer, absl::Span<const float> parameters);

  // Returns the report for the next push, if a choice has changed since the last call.
  absl::optional<EncodingReport> TakeReport();

  // TakeReport() returns the report again: the server may have lost it.
  void ReportAgain();

 private:
  void EndRound(const char* what, AutoEncoding& direction, const Transfer& transfer,
                absl::Span<const float> values);

  const std::string worker_;
  std::unique_ptr<AutoEncoding> push_;  // null if not automatic
  std::unique_ptr<AutoEncoding> pull_;  // null if not automatic
  bool active_ = false;  // the server is on another machine, and the connections are settled
  absl::optional<EncodingReport> report_;
};

}  // namespace sluice

#endif  // SLUICE_WORKER_COMPRESSION_AUTO_ENCODINGS_H_
