// Clicks on what was recommended. Each sample has numbers, and for each of kFields fields a bag of
// ids by Zipf's law. The click depends on hidden vectors of the ids and their products, so it can
// be learnt.

#ifndef SLUICE_WORKER_DATA_TABLES_CLICK_DATA_H_
#define SLUICE_WORKER_DATA_TABLES_CLICK_DATA_H_

#include <cstdint>
#include <vector>

#include "worker/data/tables/table_data.h"
#include "worker/data/zipf_law.h"

namespace sluice {

// Batch::inputs has kNumbers numbers for each sample, Batch::ids the ids of field 0, bag after bag,
// then those of field 1, and so on; Batch::targets a 1 for each click, else a 0. Each epoch has new
// samples.
class ClickData final : public TableData {
 public:
  static constexpr int64_t kFields = 8;
  static constexpr int64_t kIds = 100'000;  // of each field
  static constexpr int64_t kBag = 2;        // ids of a bag
  static constexpr int64_t kNumbers = 13;
  static constexpr int64_t kSamples = 409'600;
  static constexpr int64_t kTestSamples = 20'000;

  ClickData();

  int64_t size() const override { return kSamples; }
  Batch MakeBatch(absl::Span<const int64_t> rows, int64_t epoch, int64_t step) const override;
  const Batch& test() const override { return test_; }

  // The logarithms of the odds that the clicks of a batch were drawn with: the best guess.
  std::vector<float> OddsOf(const Batch& batch) const;

 private:
  Batch Samples(uint64_t seed, absl::Span<const int64_t> numbers) const;
  float OddsOf(const Batch& batch, size_t sample) const;

  const ZipfLaw zipf_{kIds, 1.1};
  std::vector<std::vector<float>> hidden_;  // of each field: its ids' vectors, one after the other
  std::vector<float> weights_;              // of the numbers
  Batch test_;
};

}  // namespace sluice

#endif  // SLUICE_WORKER_DATA_TABLES_CLICK_DATA_H_
