// What is written down of a step, so that it can be made again from the one before, to the same
// bits.

#ifndef SLUICE_SERVER_STATE_STEP_JOURNAL_H_
#define SLUICE_SERVER_STATE_STEP_JOURNAL_H_

#include <cstdint>
#include <vector>

#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "common/base/ids.h"
#include "common/protocol/consistency.h"
#include "server/state/session_record.h"

namespace sluice {

// All but the sum of the step's gradients.
struct StepRecord {
  Step step;  // that is made
  Incarnation incarnation;
  uint32_t gradients = 0;  // in the sum
  uint64_t samples = 0;    // theirs
  // The terms that the step is made by; see RuntimeSettings.
  Consistency consistency;
  std::vector<double> learning_rates;
  absl::optional<double> learning_rate;
  // The workers whose pushes are part of it; each with the answers to these alone.
  std::vector<SessionRecord> contributors;
  bool forgot_workers = false;  // see ShardCheckpoint
};

// Told of each step, in order, while it is being made. One thread at a time.
class StepJournal {
 public:
  virtual ~StepJournal() = default;

  // `sum` is empty if the record tells of no gradients; it is the caller's again afterwards.
  virtual void Append(const StepRecord& record, absl::Span<const float> sum) = 0;
};

}  // namespace sluice

#endif  // SLUICE_SERVER_STATE_STEP_JOURNAL_H_
