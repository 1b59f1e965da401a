// A journal that keeps its records in memory, for tests to read and to replay.

#ifndef SLUICE_TESTS_TESTING_SHARD_RECORDING_JOURNAL_H_
#define SLUICE_TESTS_TESTING_SHARD_RECORDING_JOURNAL_H_

#include <vector>

#include "absl/types/span.h"
#include "server/state/step_journal.h"
#include "tests/testing/vectors.h"

namespace sluice {

// Never reports that a step is durable; a test calls Shard::OnDurable().
class RecordingJournal final : public StepJournal {
 public:
  void Append(const StepRecord& record, absl::Span<const float> sum) override {
    records.push_back(record);
    sums.push_back(ValuesOf(sum));
  }

  std::vector<StepRecord> records;
  std::vector<Values> sums;
};

}  // namespace sluice

#endif  // SLUICE_TESTS_TESTING_SHARD_RECORDING_JOURNAL_H_
