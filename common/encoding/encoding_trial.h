// Measures an encoding on a job's own values: their encoded size, and the time to encode and
// decode.
//
// AutoEncoding calls TryEncoding() on the worker. Nothing is sent.

#ifndef SLUICE_COMMON_ENCODING_ENCODING_TRIAL_H_
#define SLUICE_COMMON_ENCODING_ENCODING_TRIAL_H_

#include <cstdint>
#include <vector>

#include "absl/time/time.h"
#include "absl/types/span.h"
#include "common/base/clock.h"
#include "common/encoding/encoding.h"
#include "common/encoding/encoding_chooser.h"
#include "common/encoding/encoding_plan.h"
#include "common/encoding/transform_registry.h"
#include "common/tensor/stripe_span.h"

namespace sluice {

struct EncodingTrial {
  // The cost of all chunks that await a choice. Chunks that hardly shrink count as sent plain.
  EncodingCost cost;
  uint64_t elements = 0;  // of those chunks
  // For each chunk of the plan: true if it awaits a choice and hardly shrinks.
  std::vector<bool> hardly_shrinks;

  double ratio() const;  // plain bytes divided by the bytes that are sent

  // Adds the trial of another stripe, whose chunks follow those of this.
  void Append(const EncodingTrial& other);
};

// A chunk whose encoded size is more than this share of its plain size is sent plain.
inline constexpr double kHardlyShrinks = 0.97;

// After about this time a trial stops, and the chunks tried so far stand for the others.
inline constexpr absl::Duration kLongestTrial = absl::Milliseconds(200);

// Tries `encoding` on `values`, a vector or a stripe whose plan is `chunks`. With `feedback`, the
// encoder of a lossy encoding also decodes, to keep what was lost, and this time counts as
// encoding. Random choices differ from those of a real push. `transforms` must have the encoding's
// transform.
EncodingTrial TryEncoding(const Encoding& encoding, absl::Span<const PlannedChunk> chunks,
                          const StripeSpan<const float>& values, bool feedback,
                          const TransformRegistry& transforms, const Clock& clock,
                          absl::Duration longest = kLongestTrial);

}  // namespace sluice

#endif  // SLUICE_COMMON_ENCODING_ENCODING_TRIAL_H_
