// Cells of a large matrix, of which a few are known: those of a matrix of rank kRank plus noise.
// Rows and columns are drawn by Zipf's law with exponent 1.1, as in recommendation (AdaPM,
// Renz-Wieland et al. 2022).

#ifndef SLUICE_WORKER_DATA_TABLES_CELL_DATA_H_
#define SLUICE_WORKER_DATA_TABLES_CELL_DATA_H_

#include <cstdint>
#include <vector>

#include "worker/data/tables/table_data.h"
#include "worker/data/zipf_law.h"

namespace sluice {

// Batch::ids has the rows of all samples, then their columns; Batch::targets the values of the
// cells. Each epoch has new cells.
class CellData final : public TableData {
 public:
  static constexpr int64_t kSide = 20'000;  // rows, and columns
  static constexpr int64_t kRank = 8;
  static constexpr float kNoise = 0.1F;  // its standard deviation
  static constexpr int64_t kSamples = 409'600;
  static constexpr int64_t kTestSamples = 20'000;

  CellData();

  int64_t size() const override { return kSamples; }
  Batch MakeBatch(absl::Span<const int64_t> rows, int64_t epoch, int64_t step) const override;
  const Batch& test() const override { return test_; }

 private:
  Batch Cells(uint64_t seed, absl::Span<const int64_t> numbers) const;

  const ZipfLaw zipf_{kSide, 1.1};
  std::vector<float> left_, right_;  // the factors, row after row
  Batch test_;
};

}  // namespace sluice

#endif  // SLUICE_WORKER_DATA_TABLES_CELL_DATA_H_
