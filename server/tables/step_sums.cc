#include "server/tables/step_sums.h"

#include <algorithm>
#include <utility>

#include "common/tensor/vector_copy.h"
#include "common/tensor/vector_math.h"
#include "server/tables/stages.h"

namespace sluice {
namespace {

// Rows from which on several threads share the work.
constexpr uint64_t kManyRows = 512;
// Buckets that a thread works on at once: fewer where the threads would have fewer than so many
// ranges of them.
constexpr size_t kBuckets = 8;
constexpr size_t kRanges = 16;

// Adds a piece of a gradient's row in the way of Accumulator, so that sums have the same bits.
void AddPiece(FloatPiece piece, float weight, bool is_first, absl::Span<float> to) {
  if (is_first) {
    weight == 1 ? CopyTo(piece, to) : ScaleTo(piece, weight, to);
  } else {
    weight == 1 ? AddTo(piece, to) : AddScaledTo(piece, weight, to);
  }
}

struct SumAt {
  RowId id;
  const BucketSums* bucket;
  uint32_t index;
};

}  // namespace

StepSums::StepSums(const RowStore& store, Parallel& parallel) : store_(store), parallel_(parallel) {
  for (size_t i = 0; i < store.tables(); ++i) {
    tables_.emplace_back(store.place().buckets(), BucketSums(store.table(i).shape.width()));
  }
}

void StepSums::ForEach(size_t count, absl::FunctionRef<void(size_t)> part) const {
  if (rows_ < kManyRows) {
    for (size_t i = 0; i < count; ++i) part(i);
  } else {
    parallel_.For(count, part);
  }
}

void StepSums::ForRanges(size_t count, absl::FunctionRef<void(size_t, size_t)> part) const {
  if (rows_ < kManyRows) return part(0, count);
  const size_t size = std::min(kBuckets, std::max<size_t>(1, count / kRanges));
  ForEach((count + size - 1) / size,
          [&](size_t range) { part(range * size, std::min(count, (range + 1) * size)); });
}

void StepSums::Add(const StagedRows& rows, float weight, float share) {
  uint64_t offset = 0;
  rows_ += rows.rows();
  for (const RowIds& entry : rows.ids()) {
    AddEntry(entry, *rows.values(), offset, weight, share);
    offset += entry.ids.size() * store_.table(entry.table).shape.width();
  }
}

void StepSums::AddEntry(const RowIds& rows, const StagedVector& values, uint64_t offset,
                        float weight, float share) {
  const size_t width = store_.table(rows.table).shape.width();
  const IdsByBucket grouped(rows.ids, store_.place());
  const auto fetch_row = [&](size_t group, size_t place) {
    const absl::Span<const uint32_t> places = grouped[group].places;
    if (place >= places.size()) return;
    values.Prefetch(offset + places[place] * width, offset + (places[place] + 1) * width);
  };
  const auto fetch = [&](size_t group) {
    for (size_t place = 0; place < kFetchedAhead; ++place) fetch_row(group, place);
  };
  const auto add = [&](size_t group) {
    BucketSums& sums = SumsOf(rows.table, grouped[group].bucket);
    for (size_t place = 0; place < grouped[group].places.size(); ++place) {
      fetch_row(group, place + kFetchedAhead);
      const uint32_t i = grouped[group].places[place];
      const RowSum sum = sums.Row(rows.ids[i], share);
      const uint64_t begin = offset + i * width;
      values.ForEachPiece(begin, begin + width, [&](uint64_t at, FloatPiece piece) {
        AddPiece(piece, weight, sum.is_first, {sum.elements + (at - begin), piece.size()});
      });
    }
    sums.EndGradient();
  };
  ForRanges(grouped.size(), [&](size_t begin, size_t end) { InStages(begin, end, fetch, add); });
}

void StepSums::Load(absl::Span<const TableSums> sums) {
  Clear();
  for (const TableSums& table : sums) {
    rows_ += table.ids.size();
    const size_t width = store_.table(table.table).shape.width();
    for (size_t i = 0; i < table.ids.size(); ++i) {
      const uint32_t bucket = BucketOf(table.ids[i]);
      if (!store_.place().Holds(bucket)) continue;
      const RowSum sum = SumsOf(table.table, bucket).Row(table.ids[i], table.shares[i]);
      std::copy_n(table.sums.data() + i * width, width, sum.elements);
    }
    for (BucketSums& bucket : tables_[table.table]) bucket.EndGradient();
  }
}

std::vector<TableSums> StepSums::sums() const {
  std::vector<TableSums> all;
  for (uint32_t table = 0; table < tables_.size(); ++table) {
    TableSums sums = SumsOfTable(table);
    if (!sums.ids.empty()) all.push_back(std::move(sums));
  }
  return all;
}

TableSums StepSums::SumsOfTable(uint32_t table) const {
  std::vector<SumAt> rows;
  for (const BucketSums& bucket : tables_[table]) {
    for (uint32_t i = 0; i < bucket.size(); ++i) rows.push_back({bucket.id(i), &bucket, i});
  }
  std::sort(rows.begin(), rows.end(), [](const SumAt& a, const SumAt& b) { return a.id < b.id; });
  TableSums sums;
  sums.table = table;
  sums.sums.reserve(rows.size() * store_.table(table).shape.width());
  for (const SumAt& row : rows) {
    const absl::Span<const float> sum = row.bucket->sum(row.index);
    sums.ids.push_back(row.id);
    sums.sums.insert(sums.sums.end(), sum.begin(), sum.end());
    sums.shares.push_back(row.bucket->share(row.index));
  }
  return sums;
}

std::vector<double> StepSums::Squares(absl::optional<float> divisor) const {
  const size_t buckets = store_.place().buckets();
  std::vector<double> squares(tables_.size() * buckets);
  ForEach(squares.size(), [&](size_t at) {
    const BucketSums& sums = tables_[at / buckets][at % buckets];
    const RowDivisor own = store_.table(at / buckets).shape.spec.divisor;
    const bool has_own = divisor.has_value() && own == RowDivisor::kRowContributors;
    for (const uint32_t i : sums.Order()) {
      const double scale = has_own ? double{*divisor} / double{sums.share(i)} : 1;
      squares[at] += scale * scale * SumOfSquares(AsPiece(sums.sum(i)));
    }
  });
  return squares;
}

void StepSums::Clear() {
  for (std::vector<BucketSums>& table : tables_) {
    for (BucketSums& bucket : table) {
      if (bucket.size() > 0) bucket.Clear();
    }
  }
  rows_ = 0;
}

std::vector<StepSums::Touched> StepSums::touched() const {
  std::vector<Touched> touched;
  for (uint32_t table = 0; table < tables_.size(); ++table) {
    for (size_t i = 0; i < tables_[table].size(); ++i) {
      const BucketSums& sums = tables_[table][i];
      if (sums.size() > 0) touched.push_back({table, store_.place().BucketAt(i), &sums});
    }
  }
  return touched;
}

}  // namespace sluice
