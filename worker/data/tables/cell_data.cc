#include "worker/data/tables/cell_data.h"

#include <cmath>

#include "worker/data/tables/made_batch.h"
#include "worker/data/tables/sample_numbers.h"

namespace sluice {

CellData::CellData()
    : left_(Normals(kHiddenSeed, kSide * kRank, 1 / std::sqrt(static_cast<float>(kRank)))),
      right_(Normals(kHiddenSeed + 1, kSide * kRank, 1)),
      test_(Cells(kTestSeed, FirstNumbers(kTestSamples))) {}

Batch CellData::MakeBatch(absl::Span<const int64_t> rows, int64_t epoch, int64_t /*step*/) const {
  return Cells(kTrainSeed, NumbersOf(rows, epoch, kSamples));
}

Batch CellData::Cells(uint64_t seed, absl::Span<const int64_t> numbers) const {
  const size_t count = numbers.size();
  Batch cells;
  cells.ids.resize(2 * count);
  cells.targets.resize(count);
  for (size_t i = 0; i < count; ++i) {
    SampleNumbers random(seed, static_cast<uint64_t>(numbers[i]));
    const auto place = [&] { return zipf_.Draw([&] { return random.Uniform(); }); };
    const uint64_t row = place();
    const uint64_t column = place();
    cells.ids[i] = static_cast<int64_t>(row);
    cells.ids[count + i] = static_cast<int64_t>(column);
    float value = kNoise * random.Normal();
    for (size_t k = 0; k < kRank; ++k) value += left_[row * kRank + k] * right_[column * kRank + k];
    cells.targets[i] = value;
  }
  return cells;
}

}  // namespace sluice
