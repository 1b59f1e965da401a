// Chooses the encoding of one direction (pushes or pulls) while the job runs.
//
// It checks every kRoundsBetween rounds. A check first sends values unencoded for a few rounds,
// which measures the link. Then it tries all candidates on the job's own values, and uses the best
// until the next check. AutoEncodings owns one for each direction.

#ifndef SLUICE_WORKER_COMPRESSION_AUTO_ENCODING_H_
#define SLUICE_WORKER_COMPRESSION_AUTO_ENCODING_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "common/base/clock.h"
#include "common/encoding/encoding_chooser.h"
#include "common/encoding/encoding_plan.h"
#include "common/encoding/encoding_trial.h"
#include "common/encoding/transform_registry.h"
#include "common/protocol/encoding_report.h"
#include "common/tensor/layout.h"
#include "common/tensor/stripes.h"
#include "worker/connection/server_connection.h"

namespace sluice {

// Externally synchronized.
class AutoEncoding {
 public:
  static constexpr int kRoundsBefore = 1;        // skipped before the first check: they are slower
  static constexpr int kTransfers = 4;           // transfers that a check measures
  static constexpr int kRoundsBetween = 500;     // rounds between two checks
  static constexpr int kMostRoundsOfCheck = 20;  // a check without enough transfers ends then

  // `choice` is automatic, and `transforms` has every transform that it names. `feedback`: whether
  // error feedback keeps what lossy encodings lose. `servers` servers hold the vector. `clock`
  // outlives this.
  AutoEncoding(const Layout& layout, const EncodingChoice& choice, Pipeline pipeline, bool feedback,
               TransformRegistry transforms, uint32_t servers, const Clock& clock);

  AutoEncoding(const AutoEncoding&) = delete;
  AutoEncoding& operator=(const AutoEncoding&) = delete;

  // Whether the next round should send everything unencoded, without pauses, to measure the link.
  bool measures_link() const { return measuring_; }

  // The encoding of the next round, and which planned chunks hardly shrink, so that they are sent
  // as they are: see GradientEncoder::Use().
  const Encoding& encoding() const;
  const std::vector<bool>& hardly_shrinks() const;

  // A round has ended, in which `values` were sent. `transfer` may be unknown.
  void EndRound(const Transfer& transfer, absl::Span<const float> values);

  // The choice and its numbers. Changes with each check.
  const ChosenEncoding& chosen() const { return chosen_; }

 private:
  void Check(absl::Span<const float> values);
  EncodingTrial Try(const Encoding& candidate, absl::Span<const float> values) const;
  void Describe();

  const EncodingChoice choice_;
  const Stripes stripes_;
  const std::vector<std::vector<PlannedChunk>> chunks_;  // of each stripe
  const bool feedback_;
  const TransformRegistry transforms_;
  const Clock& clock_;
  EncodingChooser chooser_;
  bool measuring_ = false;
  int rounds_ = 0;                     // since the last check, or since this one began
  int transfers_ = 0;                  // measured by this check
  std::vector<EncodingTrial> trials_;  // one for each candidate, by the last check; empty before
  size_t best_ = 0;
  ChosenEncoding chosen_;
};

}  // namespace sluice

#endif  // SLUICE_WORKER_COMPRESSION_AUTO_ENCODING_H_
