// The interface to the journal: one record for each step, from which the step can be repeated to
// the same bits after a restart. durable/journal implements it.
//
// Each of several servers has a journal, with the sum of its stripe. Only the leader's records
// have terms and contributors; those of the others have a step, a checksum, and as the number of
// gradients 1, or 0 without a sum.

#ifndef SLUICE_SERVER_STATE_STEP_JOURNAL_H_
#define SLUICE_SERVER_STATE_STEP_JOURNAL_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "common/base/ids.h"
#include "server/policy/step_terms.h"
#include "server/state/session_record.h"
#include "server/state/table_sums.h"

namespace sluice {

// A step, without the sum of its gradients.
struct StepRecord {
  Step step;                // the number that the step reaches
  Incarnation incarnation;  // that applied it
  uint32_t gradients = 0;   // in the sum
  uint64_t samples = 0;     // of these gradients
  StepTerms terms;
  absl::optional<double> learning_rate;  // that the operator set, if any
  // The workers that contributed, each with the answers to its pushes of this step only.
  std::vector<SessionRecord> contributors;
  bool forgot_workers = false;  // see ShardCheckpoint
  uint64_t checksum = 0;        // of what the step made, see StepVectors
};

// FAILED_PRECONDITION: a step that was made again got the checksum `found`.
absl::Status OtherBitsError(Step step, uint64_t expected, uint64_t found);

// ServerStripe calls it from one thread at a time.
class StepJournal {
 public:
  virtual ~StepJournal() = default;

  // Appends a step, in order, after the optimizer has made it. The leader's steps are appended
  // before they are published. `sum` is the weighted sum of the step's gradients, and `rows` are
  // the sums of the tables' rows, in the order of the tables. Both are valid only during the call.
  // They are empty if the step has no gradients, or if its gradients were left out because it would
  // not be finite. The implementation tells its owner's listener when the record is durable, and
  // when it fails.
  virtual void Append(const StepRecord& record, absl::Span<const float> sum,
                      absl::Span<const TableSums> rows) = 0;

  // A checkpoint of the latest step was taken. The next step that is appended begins a new file, so
  // that the file before it can be removed with older checkpoints.
  virtual void BeginSegment() {}
};

}  // namespace sluice

#endif  // SLUICE_SERVER_STATE_STEP_JOURNAL_H_
