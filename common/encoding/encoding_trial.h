// What an encoding makes of a job's own values, and how fast: measured by encoding and decoding
// them here, without sending anything.

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

namespace sluice {

struct EncodingTrial {
  // Of all chunks that await a choice; those that hardly shrink are sent as they are.
  EncodingCost cost;
  uint64_t elements = 0;  // of those chunks
  // For each planned chunk: whether it awaits a choice and hardly shrinks.
  std::vector<bool> hardly_shrinks;

  double ratio() const;  // of the bytes as they are to those on the link
};

// A chunk that keeps more of its bytes than this is not worth its encoding.
inline constexpr double kHardlyShrinks = 0.97;

// Time that is spent on one trial, about: a slow encoding is then judged by the chunks so far.
inline constexpr absl::Duration kLongestTrial = absl::Milliseconds(200);

// Of `values`, of which `chunks` is the plan. `feedback`: what a lossy encoding loses is kept, so
// its encoder decodes too. What is drawn at random is not drawn as it will be.
EncodingTrial TryEncoding(const Encoding& encoding, absl::Span<const PlannedChunk> chunks,
                          absl::Span<const float> values, bool feedback,
                          const TransformRegistry& transforms, const Clock& clock);

}  // namespace sluice

#endif  // SLUICE_COMMON_ENCODING_ENCODING_TRIAL_H_
