// A table has the bits of its dense twin: of a vector with all of its rows, whose gradients are 0
// where a push does not have a row.

#include <algorithm>
#include <random>
#include <tuple>

#include "common/encoding/checksum.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/aggregation/accumulator.h"
#include "server/aggregation/checked_optimizer.h"
#include "tests/server/tables/table_world.h"

namespace sluice {
namespace {

constexpr uint32_t kWidth = 5;
constexpr uint32_t kRows = 700;

RowId IdOf(uint32_t row) { return row * 0x9e3779b97f4a7c15; }

TableSpec Normal() {
  TableSpec table = TableOf("items", kWidth);
  table.initializer = {RowInitializerKind::kNormal, 0.5f, 11};
  return table;
}

// The vector of all rows, with the optimizer of the vector.
class DenseTwin {
 public:
  explicit DenseTwin(const OptimizerConfig& config)
      : layout_(std::make_shared<const Layout>(ParametersOnly(kRows * kWidth))),
        sum_(*layout_),
        optimizer_(*layout_, 64, config, sum_, serial_),
        rows_(layout_->size()) {
    const TableSpec table = Normal();
    const uint64_t key = InitializerKey(table.initializer, Checksum(table.name));
    for (uint32_t row = 0; row < kRows; ++row) {
      InitializeRow(table.initializer, key, IdOf(row),
                    absl::MakeSpan(rows_).subspan(row * kWidth, kWidth));
    }
  }

  void Add(const Values& gradient, float weight) {
    StagedVector staged(layout_);
    EXPECT_THAT(staged.Add(ChunkOf(0, gradient)), IsOk());
    staged.Seal();
    sum_.Add({&staged, {weight, weight, 1}}, serial_);
  }

  void Step(float divisor) {
    Values next(rows_.size());
    VectorStep step;
    step.optimizer.divisor = divisor;
    step.optimizer.learning_rates = {1};
    step.current = rows_;
    step.next = absl::MakeSpan(next);
    optimizer_.Begin(std::move(step));
    EXPECT_FALSE(optimizer_.Foresee().has_value());
    optimizer_.Make(nullptr, nullptr);
    sum_.Clear();
    rows_ = next;
  }

  const Values& rows() const { return rows_; }

 private:
  const std::shared_ptr<const Layout> layout_;
  Serial serial_;
  Accumulator sum_;
  CheckedOptimizer optimizer_;
  Values rows_;
};

class DenseTwinTest : public testing::TestWithParam<std::tuple<uint32_t, uint32_t>> {
 protected:
  static void Play(const OptimizerOptions& optimizer) {
    TableWorld::Options options;
    options.optimizer = {optimizer};
    std::tie(options.servers, options.threads) = GetParam();
    TableWorld world({Normal()}, options);
    DenseTwin twin({optimizer});
    std::mt19937 engine(3);
    std::vector<RowId> ids(kRows);
    for (uint32_t row = 0; row < kRows; ++row) ids[row] = IdOf(row);
    for (int step = 0; step < 12; ++step) {
      for (const float weight : {1.0f, 0.3f, 2.0f}) PushBoth(engine, weight, world, twin);
      world.MakeStep(3);
      twin.Step(3);
      ASSERT_TRUE(world.Rows(world.latest(), 0, ids) == twin.rows()) << "step " << step;
    }
    EXPECT_GT(world.status(0).rows, kRows / 2);
  }

 private:
  static void PushBoth(std::mt19937& engine, float weight, TableWorld& world, DenseTwin& twin) {
    std::normal_distribution<float> normal;
    Values dense(kRows * kWidth);
    std::vector<std::pair<RowId, uint32_t>> touched;
    for (uint32_t row = 0; row < kRows; ++row) {
      if (engine() % 4 == 0) touched.push_back({IdOf(row), row});
    }
    std::sort(touched.begin(), touched.end());
    RowIds ids;
    Values sparse;
    for (const auto& [id, row] : touched) {
      ids.ids.push_back(id);
      for (uint32_t i = 0; i < kWidth; ++i) {
        sparse.push_back(dense[row * kWidth + i] = normal(engine));
      }
    }
    world.Push({ids}, sparse, weight, 1, 17);
    twin.Add(dense, weight);
  }
};

TEST_P(DenseTwinTest, SgdHasTheSameBits) { Play(SgdOptions()); }

TEST_P(DenseTwinTest, AdagradHasTheSameBits) {
  AdagradOptions adagrad;
  adagrad.initial_accumulator_value = 0.25;
  adagrad.lr_decay = 0.125;
  Play(adagrad);
}

INSTANTIATE_TEST_SUITE_P(ServersAndThreads, DenseTwinTest,
                         testing::Combine(testing::Values(1, 3), testing::Values(1, 4)));

}  // namespace
}  // namespace sluice
