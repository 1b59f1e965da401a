#include "server/tables/row_tables.h"

#include <algorithm>
#include <string>
#include <utility>

#include "common/base/little_endian.h"
#include "common/encoding/checksum.h"
#include "server/tables/stages.h"
#include "server/tables/stored_snapshot.h"

namespace sluice {
namespace {

constexpr uint64_t kSampledRows = 1000;  // of a table, for their ages
constexpr size_t kMostEstimated = 100;   // tables

RowShape ShapeOf(const TableSpec& table, const OptimizerConfig& optimizer) {
  RowShape shape;
  shape.spec = table;
  shape.initializer_key = InitializerKey(table.initializer, Checksum(table.name));
  shape.slots = MakeRowOptimizer(OptionsFor(optimizer, table.name))->slots();
  return shape;
}

std::vector<RowShape> ShapesOf(const Layout& layout, const OptimizerConfig& optimizer) {
  std::vector<RowShape> shapes;
  for (const TableSpec& table : layout.tables()) shapes.push_back(ShapeOf(table, optimizer));
  return shapes;
}

// Where OptimizerStep::learning_rates has the rate of that table.
size_t RateOf(const OptimizerConfig& optimizer, const std::string& table) {
  for (size_t i = 0; i < optimizer.tables.size(); ++i) {
    if (optimizer.tables[i].table == table) return 1 + optimizer.groups.size() + i;
  }
  return 0;
}

// Makes what was prepared in one bucket, and its checksum if it is wanted.
void MakeRows(Step made, RowBucket& bucket, PastRows& rows, uint64_t* checksum) {
  if (checksum == nullptr) {
    bucket.Make(made.value(), rows, nullptr);
  } else {
    Checksummer checksummer;
    bucket.Make(made.value(), rows, &checksummer);
    *checksum = checksummer.Get();
  }
}

// A step that may change the rows of these sums, with memory for what it changes: one piece for all
// buckets, since a bucket has few rows of a batch.
std::shared_ptr<PastStep> WithMemoryFor(const std::vector<StepSums::Touched>& touched,
                                        const RowStore& store) {
  auto step = std::make_shared<PastStep>();
  size_t rows = 0, floats = 0;
  for (const StepSums::Touched& at : touched) {
    step->buckets.emplace_back(RowStore::KeyOf(at.table, at.bucket),
                               store.table(at.table).shape.elements());
    rows += at.sums->size();
    floats += at.sums->size() * step->buckets.back().elements;
  }
  step->memory.rows.resize(rows);
  step->memory.floats = FloatBuffer(floats);
  absl::Span<PastRow> rows_left = absl::MakeSpan(step->memory.rows);
  absl::Span<float> floats_left = step->memory.floats.span();
  for (size_t i = 0; i < touched.size(); ++i) {
    PastRows& bucket = step->buckets[i];
    bucket.rows = rows_left.first(touched[i].sums->size());
    bucket.floats = floats_left.first(bucket.rows.size() * bucket.elements);
    rows_left.remove_prefix(bucket.rows.size());
    floats_left.remove_prefix(bucket.floats.size());
  }
  return step;
}

}  // namespace

RowTables::RowTables(std::shared_ptr<const Layout> layout, const OptimizerConfig& optimizer,
                     RowPlace place, const TableMemory& memory, Parallel& parallel)
    : store_(std::make_shared<const RowStore>(ShapesOf(*layout, optimizer), place, memory)),
      limits_(store_),
      sums_(*store_, parallel) {
  for (const TableSpec& table : layout->tables()) {
    tables_.push_back(
        {MakeRowOptimizer(OptionsFor(optimizer, table.name)), RateOf(optimizer, table.name)});
  }
}

// ---- Start ----

void RowTables::Load(uint32_t table, const StoredRow& row) {
  const uint32_t bucket = BucketOf(row.id);
  if (store_->place().Holds(bucket)) store_->bucket(table, bucket).Load(row);
}

std::shared_ptr<const RowSnapshot> RowTables::Start(Step step, uint64_t optimizer_steps) {
  optimizer_steps_ = optimizer_steps;
  return Snapshot(step);
}

std::shared_ptr<const RowSnapshot> RowTables::Snapshot(Step step) {
  latest_.store(step.value(), std::memory_order_relaxed);
  return std::make_shared<const StoredSnapshot>(store_, step);
}

// ---- Sums ----

void RowTables::Add(const StagedRows& rows, float weight, float share) {
  sums_.Add(rows, weight, share);
}

void RowTables::Load(absl::Span<const TableSums> sums) { sums_.Load(sums); }

std::vector<TableSums> RowTables::sums() const { return sums_.sums(); }

void RowTables::Clear() { sums_.Clear(); }

std::vector<double> RowTables::SquaresOfSums(absl::optional<float> divisor) const {
  return sums_.Squares(divisor);
}

// ---- The step ----

std::vector<RowRule> RowTables::BeginStep(const RowStep& step) {
  std::vector<RowRule> rules;
  for (size_t i = 0; i < tables_.size(); ++i) {
    RowRule rule;
    rule.optimizer = tables_[i].optimizer.get();
    OptimizerStep of_table = step.optimizer;
    of_table.number = optimizer_steps_ + 1;
    if (store_->table(i).shape.spec.divisor == RowDivisor::kRowContributors) {
      rule.row_scale = step.row_scale;
    }
    if (rule.row_scale.has_value()) of_table.divisor = 1;
    if (tables_[i].rate != 0) of_table.changed = nullptr;  // its optimizer is its own
    tables_[i].optimizer->Begin(of_table, step.optimizer.learning_rates[tables_[i].rate]);
    rules.push_back(rule);
  }
  return rules;
}

absl::optional<BadRow> RowTables::Prepare(const RowStep& step) {
  const std::vector<RowRule> rules = BeginStep(step);
  const std::vector<StepSums::Touched> touched = sums_.touched();
  std::shared_ptr<PastStep> prepared = WithMemoryFor(touched, *store_);
  std::vector<absl::optional<RowId>> bad(touched.size());
  const auto bucket = [&](size_t i) -> RowBucket& {
    return store_->bucket(touched[i].table, touched[i].bucket);
  };
  sums_.ForRanges(touched.size(), [&](size_t begin, size_t end) {
    InStages(
        begin, end, [&](size_t i) { bucket(i).FetchHead(); },
        [&](size_t i) { bucket(i).FetchIndex(touched[i].sums->ids()); },
        [&](size_t i) {
          bucket(i).FetchRows(touched[i].sums->ids(), prepared->buckets[i].elements);
        },
        [&](size_t i) { bucket(i).Touch(*touched[i].sums, prepared->buckets[i]); },
        [&](size_t i) {
          bad[i] =
              bucket(i).Compute(*touched[i].sums, rules[touched[i].table], prepared->buckets[i]);
        });
  });
  for (size_t i = 0; i < touched.size(); ++i) {
    if (bad[i].has_value()) return BadRow{touched[i].table, *bad[i]};
  }
  prepared_ = std::move(prepared);
  return absl::nullopt;
}

// A step looks through one bucket of each table, in turn. So which rows go depends on nothing but
// the step and the rows.
void RowTables::PrepareEvictions(Step made) {
  const auto bucket = static_cast<uint32_t>(made.value() % kRowBuckets);
  if (!store_->place().Holds(bucket)) return;
  for (size_t table = 0; table < tables_.size(); ++table) {
    if (store_->table(table).shape.spec.evict_after == 0) continue;
    prepared_->buckets.emplace_back(RowStore::KeyOf(table, bucket),
                                    store_->table(table).shape.elements());
    prepared_->buckets.back().evicts = true;
  }
  std::stable_sort(prepared_->buckets.begin(), prepared_->buckets.end(),
                   [](const PastRows& a, const PastRows& b) { return a.key < b.key; });
}

void RowTables::MakeBuckets(Step made, std::vector<uint64_t>* checksums) {
  std::vector<PastRows>& buckets = prepared_->buckets;
  const auto bucket = [&](size_t i) -> RowBucket& {
    return store_->bucket(static_cast<uint32_t>(buckets[i].key / kRowBuckets),
                          static_cast<uint32_t>(buckets[i].key % kRowBuckets));
  };
  // A row that the step touches is not old any more, so what is old is removed afterwards.
  sums_.ForRanges(buckets.size(), [&](size_t begin, size_t end) {
    InStages(
        begin, end, [&](size_t i) { bucket(i).FetchRecords(buckets[i]); },
        [&](size_t i) {
          if (buckets[i].evicts) return;
          MakeRows(made, bucket(i), buckets[i], checksums == nullptr ? nullptr : &(*checksums)[i]);
        });
  });
  std::vector<size_t> evicting;
  for (size_t i = 0; i < buckets.size(); ++i) {
    if (buckets[i].evicts) evicting.push_back(i);
  }
  sums_.ForEach(evicting.size(), [&](size_t at) {
    bucket(evicting[at]).Evict(made.value(), buckets[evicting[at]]);
  });
}

std::shared_ptr<const RowSnapshot> RowTables::Make(Step made, uint64_t* checksum) {
  prepared_->step = made.value();
  PrepareEvictions(made);
  store_->history().Add(prepared_);
  std::vector<uint64_t> checksums(prepared_->buckets.size());
  MakeBuckets(made, checksum == nullptr ? nullptr : &checksums);
  if (checksum != nullptr) {
    std::string bytes;
    for (const uint64_t of_bucket : checksums) bytes += LittleEndian64(of_bucket);
    *checksum = Checksum(bytes);
  }
  ++optimizer_steps_;
  prepared_.reset();
  auto snapshot = Snapshot(made);
  store_->history().EndStep();
  return snapshot;
}

std::shared_ptr<const RowSnapshot> RowTables::Copy(Step made) {
  prepared_.reset();
  return Snapshot(made);
}

// A bucket had its turn to remove rows in at most one of kRowBuckets steps.
void RowTables::ForgetRemovals(Step until) {
  const uint64_t before = forgotten_.exchange(until.value());
  const uint64_t turns =
      std::min<uint64_t>(until.value() - std::min(before, until.value()), kRowBuckets);
  for (uint64_t turn = 0; turn < turns; ++turn) {
    const auto bucket = static_cast<uint32_t>((until.value() - turn) % kRowBuckets);
    if (!store_->place().Holds(bucket)) continue;
    for (uint32_t table = 0; table < store_->tables(); ++table) {
      if (store_->table(table).shape.spec.evict_after == 0) continue;
      store_->bucket(table, bucket).ForgetRemovals(until.value());
    }
  }
}

// ---- Any thread ----

absl::Status RowTables::CheckFits(const StagedRows& rows) const { return limits_.Check(rows); }

// The rows of a bucket are a sample, since ids are hashed. Each step takes another one.
double RowTables::EstimateAges(uint32_t table) const {
  const uint64_t latest = latest_.load(std::memory_order_relaxed);
  const TableRows& of = store_->table(table);
  RowAges ages;
  for (size_t i = 0; i < of.buckets.size() && ages.rows < kSampledRows; ++i) {
    const RowBucket& bucket = *of.buckets[(latest + i) % of.buckets.size()];
    const RowAges some = bucket.AgesAt(latest, kSampledRows - ages.rows);
    ages.rows += some.rows;
    ages.sum += some.sum;
  }
  if (ages.rows == 0) return 0;
  const auto rows = static_cast<double>(of.counts.rows.load(std::memory_order_relaxed));
  return rows * static_cast<double>(ages.sum) / static_cast<double>(ages.rows);
}

std::vector<TableStatus> RowTables::Describe() const {
  std::vector<TableStatus> all;
  for (size_t i = 0; i < store_->tables(); ++i) {
    const TableRows& table = store_->table(i);
    const RowCounts& counts = table.counts;
    TableStatus status;
    status.rows = counts.rows;
    status.on_disk = counts.on_disk;
    status.waiting = counts.waiting;
    status.bytes = counts.bytes;
    status.dropped = counts.dropped;
    status.removed = counts.removed;
    status.reads = table.reads.reads();
    status.hits = table.reads.hits();
    if (i < kMostEstimated) {
      status.ages = EstimateAges(static_cast<uint32_t>(i));
      status.hottest = table.reads.Hottest();
    }
    all.push_back(status);
  }
  return all;
}

}  // namespace sluice
