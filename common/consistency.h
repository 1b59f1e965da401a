// Which gradients count towards a step, and when it is complete: the operator's choice.

#ifndef SLUICE_COMMON_CONSISTENCY_H_
#define SLUICE_COMMON_CONSISTENCY_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"

namespace sluice {

enum class ConsistencyMode {
  kSync,   // every worker of the step contributes once; staleness is 0
  kAsync,  // every `quorum` gradients make a step, whoever they come from
};

struct Consistency {
  ConsistencyMode mode = ConsistencyMode::kSync;
  // Sync: the workers the first step waits for; later steps ask all that are present. Async:
  // gradients per step.
  uint32_t quorum = 1;
  // A gradient counts iff step − its step ≤ max_staleness; absent means any. 0 in sync.
  absl::optional<uint32_t> max_staleness;

  // OK, or BAD_ARGUMENT saying which field is out of its domain.
  absl::Status Validate() const;
};

// "sync", "async" and back; an unknown name gives the list of those known.
absl::string_view ConsistencyModeName(ConsistencyMode mode);
absl::Status ParseConsistencyMode(absl::string_view name, ConsistencyMode* mode);

}  // namespace sluice

#endif  // SLUICE_COMMON_CONSISTENCY_H_
