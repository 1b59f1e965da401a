// A shard that leads replicas on other servers makes the same steps as a shard alone, to the bit,
// and gives its workers the same answers, whatever breaks in between.

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "common/protocol/optimizer_options.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/seed.h"
#include "tests/testing/shard/servers_world.h"
#include "tests/testing/shard/shard_world.h"
#include "tests/testing/status.h"
#include "tests/testing/vectors.h"

namespace sluice {
namespace {

constexpr uint32_t kStories = 30;
constexpr uint32_t kSteps = 6;
constexpr uint32_t kWorkers = 3;

constexpr RowId kIds = 24;  // of which gradients touch some

TableSpec Table(const std::string& name, uint32_t width, RowDivisor divisor) {
  TableSpec table;
  table.name = name;
  table.width = width;
  table.initializer = {RowInitializerKind::kUniform, 0.5f, 7};
  table.divisor = divisor;
  return table;
}

// Units of 64 elements, the last of them smaller, a tensor of each kind, and two tables: rows of
// one are removed soon, and rows of the other are made late.
Layout Model() {
  std::vector<TableSpec> tables = {Table("users", 5, RowDivisor::kRowContributors),
                                   Table("items", 8, RowDivisor::kAllContributors)};
  tables[0].evict_after = 2;
  tables[1].admit_after = 2;
  const Layout vector = LayoutOf({{"w", 700}, {"mean", 9, RangeKind::kStatistic}, {"b", 130}});
  return *Layout::Create(vector.ranges(), tables);
}

OptimizerConfig Optimizer(uint64_t seed) {
  SgdOptions momentum;
  momentum.momentum = 0.9;
  const OptimizerOptions options[] = {momentum, AdamOptions(), LambOptions()};
  OptimizerConfig config;
  config.options = options[seed % 3];
  config.tables.push_back({"users", AdagradOptions()});
  if (seed % 3 == 2) config.tables.push_back({"items", AdamOptions()});  // LAMB does not work
  return config;
}

ShardOptions Options(uint64_t seed) {
  ShardOptions options = Sync(kWorkers);
  options.consistency.order = ReductionOrder::kRank;
  if (seed % 2 == 0) options.guards.clip_norm = 5;
  if (seed % 5 < 2) options.guards.max_push_norm = 50;
  options.guards.skip_not_finite = seed % 4 == 1;
  return options;
}

// What a worker does in a step. Its last push is the same in all stories of a seed.
enum class Deed { kPush, kBreakOff, kSendBad, kRepeat, kJoinAgain };

// The same for any number of servers.
struct Script {
  explicit Script(uint64_t seed) : engine(seed) {}

  Values Draw(size_t size = Model().size()) {
    Values values(size);
    for (float& value : values) value = normal(engine);
    return values;
  }
  Gradient DrawGradient() {
    Gradient gradient = {Draw()};
    for (uint32_t table = 0; table < Model().tables().size(); ++table) {
      for (RowId id = 0; id < kIds; ++id) {
        if (engine() % 3 == 0) {
          gradient.rows[{table, id * id}] = Draw(Model().tables()[table].width);
        }
      }
    }
    return gradient;
  }
  Deed Choose() { return static_cast<Deed>(engine() % 5); }
  // Puts NaN, or what is too large for the guards, anywhere.
  Gradient Spoiled(Gradient gradient, const Guards& guards) {
    const bool large = guards.max_push_norm.has_value() && engine() % 2 == 0;
    const bool in_row = !gradient.rows.empty() && engine() % 2 == 0;
    float& bad = in_row ? gradient.rows.begin()->second[3] : gradient.vector[engine() % 700];
    bad = large ? 1000 : std::numeric_limits<float>::quiet_NaN();
    return gradient;
  }

  std::mt19937 engine;
  std::normal_distribution<float> normal;
};

struct Story {
  std::vector<Values> steps;  // the parameters after each, and then the rows
  uint64_t accepted = 0;
  uint64_t skipped = 0;
  uint64_t duplicates = 0;
};

class Job {
 public:
  Job(uint32_t servers, uint64_t seed)
      : options_(Options(seed)),
        optimizer_(Optimizer(seed)),
        script_(seed),
        world_(options_, Model(), servers, seed + 1000) {
    for (uint32_t i = 0; i < kWorkers; ++i) {
      workers_.emplace_back();
      workers_.back().session = world_.Join(i, optimizer_);
    }
  }

  Story Play() {
    Initialize(script_.Draw());
    for (step_ = 0; step_ < kSteps;) MakeStep();
    world_.Settle();
    const PushCounters counters = world_.shard().Describe().counters;
    EXPECT_EQ(counters.in_progress, 0u);
    story_.accepted = counters.accepted;
    story_.skipped = counters.skipped;
    story_.duplicates = duplicates_;
    return story_;
  }

 private:
  struct Worker {
    SessionId session;
    uint32_t attempt = 0;
    uint64_t pull = 0;
    Deed deed = Deed::kPush;
    Gradient gradient;
    Gradient bad;
    std::shared_ptr<StripedCall> call;
  };

  // Any worker's offer may be the first; all are equal.
  void Initialize(const Values& parameters) {
    for (Worker& worker : workers_) {
      if (Roll(3)) BreakOff([&] { return Offer(worker, parameters, Some()); });
      worker.call = Offer(worker, parameters, nullptr);
    }
    AwaitAnswers();
    int accepted = 0;
    for (const Worker& worker : workers_) {
      EXPECT_THAT(worker.call->initialized.status(), IsOk());
      accepted += worker.call->initialized->accepted;
    }
    EXPECT_EQ(accepted, 1);
  }

  void MakeStep() {
    for (Worker& worker : workers_) {
      worker.deed = script_.Choose();
      worker.gradient = script_.DrawGradient();
      worker.bad = script_.Spoiled(worker.gradient, options_.guards);
    }
    for (Worker& worker : workers_) Begin(worker);
    AwaitAnswers();
    for (Worker& worker : workers_) {
      if (worker.deed != Deed::kSendBad || worker.call->outcome.ok()) continue;
      worker.call = Push(worker, worker.gradient, nullptr);  // its bad one was refused
    }
    AwaitAnswers();
    for (Worker& worker : workers_) {
      EXPECT_THAT(worker.call->outcome.status(), IsOk());
      if (worker.deed == Deed::kRepeat) worker.call = Push(worker, worker.gradient, nullptr);
    }
    AwaitAnswers();
    for (Worker& worker : workers_) {
      const bool duplicate = worker.call->outcome->disposition == Disposition::kDuplicate;
      EXPECT_EQ(duplicate, worker.deed == Deed::kRepeat);
      duplicates_ += duplicate;
    }
    ++step_;
    story_.steps.push_back(PullByAll());
  }

  void Begin(Worker& worker) {
    if (worker.deed == Deed::kBreakOff) {
      Gradient other = worker.gradient;
      for (float& value : other.vector) value += 1;
      for (auto& [name, row] : other.rows) row.front() += 1;
      BreakOff([&] { return Push(worker, other, Some()); });
    } else if (worker.deed == Deed::kJoinAgain) {
      const auto lost = Push(worker, worker.gradient, Some());
      ActSometimes();
      Rejoin(worker, lost);
    }
    worker.call =
        Push(worker, worker.deed == Deed::kSendBad ? worker.bad : worker.gradient, nullptr);
  }

  void Rejoin(Worker& worker, const std::shared_ptr<StripedCall>& lost) {
    const uint32_t index = static_cast<uint32_t>(&worker - workers_.data());
    worker.session = world_.Join(index, optimizer_);
    worker.attempt = 0;
    worker.pull = 0;
    if (Roll(2)) ActSometimes();
    world_.Break(*lost);
  }

  // An attempt of which not all streams come, or which ends before it is answered.
  void BreakOff(const std::function<std::shared_ptr<StripedCall>()>& begin) {
    const auto call = begin();
    ActSometimes();
    world_.Break(*call);
  }

  std::shared_ptr<StripedCall> Push(Worker& worker, const Gradient& gradient,
                                    const std::function<bool(uint32_t)>& sends) {
    PushHeader header;
    header.session = worker.session;
    header.sequence = Sequence(step_ + 1);
    header.attempt = ++worker.attempt;
    header.step = Step(step_);
    header.incarnation = Incarnation(1);
    return world_.Push(header, gradient, sends);
  }

  std::shared_ptr<StripedCall> Offer(Worker& worker, const Values& parameters,
                                     const std::function<bool(uint32_t)>& sends) {
    return world_.Offer(worker.session, ++worker.attempt, parameters, sends);
  }

  // All but one of the servers, so that the push is never whole.
  std::function<bool(uint32_t)> Some() {
    const uint32_t without = world_.dice()() % world_.servers();
    return [without](uint32_t server) { return server != without; };
  }

  void AwaitAnswers() {
    world_.Pump([this] {
      return std::all_of(workers_.begin(), workers_.end(),
                         [](const Worker& worker) { return worker.call->answers > 0; });
    });
    for (const Worker& worker : workers_) EXPECT_EQ(worker.call->answers, 1);
  }

  // Each worker gets the same parameters from all servers. Some pull twice.
  Values PullByAll() {
    Values got;
    for (Worker& worker : workers_) {
      if (Roll(3)) Ask(worker);  // nobody waits for it
      const auto pull = Ask(worker);
      world_.Pump([&] { return pull->answers.size() == world_.servers(); });
      for (const auto& [server, result] : pull->answers) {
        EXPECT_THAT(result.status(), IsOk());
        EXPECT_EQ(result->header.step, Step(step_)) << "server " << server;
        EXPECT_EQ(result->snapshot->step, Step(step_)) << "server " << server;
      }
      const Values joined = All(*pull);
      EXPECT_TRUE(got.empty() || joined == got);
      got = joined;
    }
    return got;
  }

  Values All(const StripedPull& pull) const {
    Values all = world_.Joined(pull);
    for (uint32_t table = 0; table < Model().tables().size(); ++table) {
      for (RowId id = 0; id < kIds; ++id) {
        const Values row = world_.RowOf(pull, table, id * id);
        all.insert(all.end(), row.begin(), row.end());
      }
    }
    return all;
  }

  std::shared_ptr<StripedPull> Ask(Worker& worker) {
    PullRequest request;
    request.session = worker.session;
    request.min_step = Step(step_);
    request.number = ++worker.pull;
    return world_.Pull(request);
  }

  bool Roll(uint32_t sides) { return world_.dice()() % sides == 0; }
  void ActSometimes() {
    for (uint32_t i = world_.dice()() % 60; i > 0; --i) world_.Act();
  }

  const ShardOptions options_;
  const OptimizerConfig optimizer_;
  Script script_;
  ServersWorld world_;
  std::vector<Worker> workers_;
  uint64_t step_ = 0;
  uint64_t duplicates_ = 0;
  Story story_;
};

TEST(SeveralServersTest, MakeTheStepsOfOneServer) {
  SCOPED_TRACE(HowToRepeat());
  const char* const asked = std::getenv("SLUICE_TEST_SEEDS");
  const uint64_t stories = asked == nullptr ? kStories : std::strtoull(asked, nullptr, 10);
  const uint64_t first = RunSeed();
  for (uint64_t seed = first; seed < first + stories; ++seed) {
    const Story one = Job(1, seed).Play();
    for (const uint32_t servers : {2, 3, 5}) {
      const Story many = Job(servers, seed).Play();
      ASSERT_TRUE(many.steps == one.steps) << servers << " servers, seed " << seed;
      ASSERT_EQ(many.accepted, one.accepted) << servers << " servers, seed " << seed;
      ASSERT_EQ(many.skipped, one.skipped) << servers << " servers, seed " << seed;
      ASSERT_EQ(many.duplicates, one.duplicates) << servers << " servers, seed " << seed;
    }
  }
}

}  // namespace
}  // namespace sluice
