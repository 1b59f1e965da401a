// A table whose rows come with pushes ends with the bits of its dense twin: of a model that has all
// of its rows in the vector, where rows that a gradient does not touch have the gradient 0. That
// holds in every mode and for any number of servers, for the optimizers that change nothing where
// the gradient is 0.

#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "common/encoding/checksum.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/seed.h"
#include "tests/testing/shard/servers_world.h"
#include "tests/testing/shard/shard_world.h"
#include "tests/testing/status.h"
#include "tests/testing/vectors.h"

namespace sluice {
namespace {

constexpr uint32_t kWorkers = 3;
constexpr uint32_t kRounds = 8;
constexpr uint32_t kRows = 40;
constexpr uint32_t kWidth = 6;
constexpr uint32_t kBias = 130;  // so that the fourth server has no element of the vector

RowId IdOf(uint32_t row) { return row * RowId{0x9e3779b97f4a7c15}; }

TableSpec Table() {
  TableSpec table;
  table.name = "emb";
  table.width = kWidth;
  table.initializer = {RowInitializerKind::kNormal, 0.25f, 3};
  return table;
}

Layout Sparse() { return *Layout::Create(LayoutOf({{"bias", kBias}}).ranges(), {Table()}); }
Layout Dense() { return LayoutOf({{"bias", kBias}, {"emb", kRows * kWidth}}); }

// The parameters with which the dense twin begins.
Values FirstRows() {
  Values rows(kRows * kWidth);
  const uint64_t key = InitializerKey(Table().initializer, Checksum("emb"));
  for (uint32_t row = 0; row < kRows; ++row) {
    InitializeRow(Table().initializer, key, IdOf(row),
                  absl::MakeSpan(rows).subspan(row * kWidth, kWidth));
  }
  return rows;
}

Values Joined(Values a, const Values& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

// A gradient in both forms.
struct Twins {
  Gradient sparse;
  Gradient dense;
};

Twins Draw(std::mt19937& engine) {
  std::normal_distribution<float> normal;
  Values bias(kBias);
  for (float& value : bias) value = normal(engine);
  Twins twins;
  twins.sparse.vector = bias;
  Values rows(kRows * kWidth);
  for (uint32_t row = 0; row < kRows; ++row) {
    if (engine() % 3 != 0) continue;
    for (uint32_t i = 0; i < kWidth; ++i) rows[row * kWidth + i] = normal(engine);
    twins.sparse.rows[{0, IdOf(row)}] =
        Values(rows.begin() + row * kWidth, rows.begin() + (row + 1) * kWidth);
  }
  twins.dense.vector = Joined(bias, rows);
  return twins;
}

class Job {
 public:
  Job(const ShardOptions& options, const Layout& model, const OptimizerConfig& optimizer,
      uint32_t servers, const Values& first)
      : world_(options, model, servers, /*seed=*/5) {
    for (uint32_t i = 0; i < kWorkers; ++i) {
      sessions_.push_back(world_.Join(i, optimizer));
    }
    world_.Offer(sessions_[0], ++attempts_, first);
    world_.Settle();
  }

  // The answer, or the error, as text; empty while it is not answered.
  std::shared_ptr<StripedCall> Push(uint32_t worker, const Gradient& gradient) {
    PushHeader header;
    header.session = sessions_[worker];
    header.sequence = Sequence(++sequences_[worker]);
    header.attempt = ++attempts_;
    header.step = world_.shard().Describe().step;
    header.incarnation = Incarnation(1);
    header.samples = worker + 1;
    const auto call = world_.Push(header, gradient);
    world_.Settle();
    return call;
  }

  std::shared_ptr<StripedPull> Pull() {
    PullRequest request;
    request.session = sessions_[0];
    request.number = ++pulls_;
    const auto pull = world_.Pull(request);
    world_.Settle();
    return pull;
  }

  ServersWorld& world() { return world_; }

 private:
  ServersWorld world_;
  std::vector<SessionId> sessions_;
  std::map<uint32_t, uint64_t> sequences_;
  uint32_t attempts_ = 0;
  uint64_t pulls_ = 0;
};

struct Case {
  std::string name;
  ShardOptions options;
};

ShardOptions In(ConsistencyMode mode, Reduction reduction) {
  ShardOptions options = Sync(kWorkers);
  options.consistency.mode = mode;
  options.consistency.reduction = reduction;
  options.consistency.order = ReductionOrder::kArrival;
  options.consistency.gap_aware = RuleChoice::kOff;
  options.consistency.ordered_momentum = RuleChoice::kOff;
  if (mode == ConsistencyMode::kBackup) options.consistency.quorum = 2;
  if (mode == ConsistencyMode::kBounded) options.consistency.max_staleness = 2;
  if (mode == ConsistencyMode::kSsp) options.consistency.slack = 2;
  return options;
}

std::vector<Case> Cases() {
  std::vector<Case> cases = {{"sync", In(ConsistencyMode::kSync, Reduction::kMean)},
                             {"sum", In(ConsistencyMode::kSync, Reduction::kSum)},
                             {"weighted", In(ConsistencyMode::kSync, Reduction::kWeightedMean)},
                             {"backup", In(ConsistencyMode::kBackup, Reduction::kMean)},
                             {"bounded", In(ConsistencyMode::kBounded, Reduction::kMean)},
                             {"ssp", In(ConsistencyMode::kSsp, Reduction::kMean)},
                             {"async", In(ConsistencyMode::kAsync, Reduction::kMean)}};
  cases.push_back({"discounted", In(ConsistencyMode::kBounded, Reduction::kMean)});
  cases.back().options.consistency.discount_stale = true;
  return cases;
}

class TableTwinTest : public testing::TestWithParam<std::tuple<Case, uint32_t>> {
 protected:
  static void Play(const OptimizerOptions& optimizer) {
    const auto& [how, servers] = GetParam();
    SCOPED_TRACE(HowToRepeat());
    std::mt19937 engine(RunSeed());
    const Values bias = Draw(engine).sparse.vector;
    Job sparse(how.options, Sparse(), {optimizer}, servers, bias);
    Job dense(how.options, Dense(), {optimizer}, 1, Joined(bias, FirstRows()));
    for (uint32_t push = 0; push < kRounds * kWorkers; ++push) {
      const Twins gradient = Draw(engine);
      const auto of_sparse = sparse.Push(push % kWorkers, gradient.sparse);
      const auto of_dense = dense.Push(push % kWorkers, gradient.dense);
      ASSERT_EQ(of_sparse->outcome.status().code(), of_dense->outcome.status().code());
    }
    ASSERT_GT(dense.world().shard().Describe().step, Step(kRounds / 2));
    const auto pull = sparse.Pull();
    Values found = sparse.world().Joined(*pull);
    for (uint32_t row = 0; row < kRows; ++row) {
      found = Joined(std::move(found), sparse.world().RowOf(*pull, 0, IdOf(row)));
    }
    EXPECT_TRUE(found == dense.world().Joined(*dense.Pull()));
  }
};

TEST_P(TableTwinTest, SgdMakesTheBitsOfTheDenseTwin) { Play(SgdOptions()); }

TEST_P(TableTwinTest, AdagradMakesTheBitsOfTheDenseTwin) {
  AdagradOptions adagrad;
  adagrad.initial_accumulator_value = 0.1;
  adagrad.lr_decay = 0.01;
  Play(adagrad);
}

INSTANTIATE_TEST_SUITE_P(AllModes, TableTwinTest,
                         testing::Combine(testing::ValuesIn(Cases()), testing::Values(1, 2, 3, 4)),
                         [](const auto& info) {
                           return std::get<0>(info.param).name + "_on_" +
                                  std::to_string(std::get<1>(info.param));
                         });

}  // namespace
}  // namespace sluice
