// The encodings of a worker that chooses them by itself: of pushes, of pulls, or of both.

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

// To be used by one thread at a time. On one machine all stays plain; elsewhere, until it is
// settled how many connections there are.
class AutoEncodings {
 public:
  // Of a worker of that name; `clock` outlives this. A direction whose choice is not automatic is
  // left alone.
  AutoEncodings(const Layout& layout, const GradientEncoding& push, const EncodingChoice& pull,
                const std::string& worker, const Clock& clock);

  // Before a round: tells `encoder`, if there is one, and `connection` what they are to use.
  void BeginRound(GradientEncoder* encoder, ServerConnection& connection);

  // Whether gradients must not leave early, since their transfer is measured.
  bool holds_back() const { return active_ && push_ != nullptr && push_->measures_link(); }

  // Whether the transfer of parameters is measured.
  bool measures_pull() const { return active_ && pull_ != nullptr && pull_->measures_link(); }

  // The round's gradient was pushed; its parameters were pulled.
  void EndPush(const Transfer& transfer, absl::Span<const float> gradient);
  void EndPull(const Transfer& transfer, absl::Span<const float> parameters);

  // What the server is to be told with the next push, if there is anything new; once.
  absl::optional<EncodingReport> TakeReport();
  // The server may have forgotten it.
  void ReportAgain();

 private:
  void EndRound(const char* what, AutoEncoding& direction, const Transfer& transfer,
                absl::Span<const float> values);

  const std::string worker_;
  std::unique_ptr<AutoEncoding> push_;  // null: not automatic; as the next
  std::unique_ptr<AutoEncoding> pull_;
  bool active_ = false;  // the server is on another machine, and the way there is settled
  absl::optional<EncodingReport> report_;
};

}  // namespace sluice

#endif  // SLUICE_WORKER_COMPRESSION_AUTO_ENCODINGS_H_
