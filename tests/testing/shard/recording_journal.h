// A journal that keeps its records in memory, for tests to read and to replay.

#ifndef SLUICE_TESTS_TESTING_SHARD_RECORDING_JOURNAL_H_
#define SLUICE_TESTS_TESTING_SHARD_RECORDING_JOURNAL_H_

#include <vector>

#include "absl/types/span.h"
#include "server/state/step_journal.h"
#include "tests/testing/vectors.h"

namespace sluice {

// Never reports that a step is durable; a test calls DurabilityCalls::OnDurable().
class RecordingJournal final : public StepJournal {
 public:
  void Append(const StepRecord& record, absl::Span<const float> sum,
              absl::Span<const TableSums> rows) override {
    records.push_back(record);
    sums.push_back(ValuesOf(sum));
    row_sums.emplace_back(rows.begin(), rows.end());
  }

  std::vector<StepRecord> records;
  std::vector<Values> sums;
  std::vector<std::vector<TableSums>> row_sums;
};

}  // namespace sluice

#endif  // SLUICE_TESTS_TESTING_SHARD_RECORDING_JOURNAL_H_
