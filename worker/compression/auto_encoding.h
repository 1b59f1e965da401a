// The encoding of one direction, chosen while the job runs.
//
// A check takes some rounds: a few send values as they are, which tells what the link carries; then
// all candidates are tried on the job's own values, and the best is used until the next check.

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
#include "common/protocol/encoding_report.h"
#include "common/tensor/layout.h"
#include "worker/connection/server_connection.h"

namespace sluice {

// Externally synchronized.
class AutoEncoding {
 public:
  static constexpr int kRoundsBefore = 1;        // the first check: they are like no others
  static constexpr int kTransfers = 4;           // that a check measures
  static constexpr int kRoundsBetween = 500;     // checks
  static constexpr int kMostRoundsOfCheck = 20;  // without enough transfers: then it is given up

  // Of vectors of that layout; `choice` is automatic, and `clock` outlives this. `feedback`: what
  // lossy encodings lose is kept.
  AutoEncoding(const Layout& layout, const EncodingChoice& choice, Pipeline pipeline, bool feedback,
               const Clock& clock);

  AutoEncoding(const AutoEncoding&) = delete;
  AutoEncoding& operator=(const AutoEncoding&) = delete;

  // Whether the next round is to send all at once, as it is, for the link to be measured.
  bool measures_link() const { return measuring_; }

  // What the next round is to use, and for which planned chunks it is not worth it.
  const Encoding& encoding() const;
  const std::vector<bool>& hardly_shrinks() const;

  // A round is over, in which `values` were sent: in that much time, if that is known.
  void EndRound(const Transfer& transfer, absl::Span<const float> values);

  // What was chosen. Changes with each check.
  const ChosenEncoding& chosen() const { return chosen_; }

 private:
  void Check(absl::Span<const float> values);
  void Describe();

  const EncodingChoice choice_;
  const std::vector<PlannedChunk> chunks_;
  const bool feedback_;
  const Clock& clock_;
  EncodingChooser chooser_;
  bool measuring_ = false;
  int rounds_ = 0;                     // since the last check, or of this one
  int transfers_ = 0;                  // of this check
  std::vector<EncodingTrial> trials_;  // of the last check, each candidate; empty before
  size_t best_ = 0;
  ChosenEncoding chosen_;
};

}  // namespace sluice

#endif  // SLUICE_WORKER_COMPRESSION_AUTO_ENCODING_H_
