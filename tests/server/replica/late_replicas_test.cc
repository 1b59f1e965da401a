// Several replicas behind links that are late make the same steps as one replica, to the bit, and
// all answer a pull with the same step. Workers' streams come to the replicas in any order.

#include <glog/logging.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include "common/base/parallel.h"
#include "common/protocol/optimizer_options.h"
#include "common/tensor/stripes.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/aggregation/step_director.h"
#include "server/replica/gathered_reports.h"
#include "server/replica/order_reports.h"
#include "server/replica/replica.h"
#include "server/replica/replica_link.h"
#include "tests/testing/replica/late_link.h"
#include "tests/testing/seed.h"
#include "tests/testing/status.h"
#include "tests/testing/vectors.h"

namespace sluice {
namespace {

constexpr uint32_t kStories = 40;
constexpr uint32_t kSteps = 6;
constexpr uint32_t kWorkers = 3;
constexpr uint64_t kManyEvents = 1000000;

// Units of 64 elements, the last of them smaller, and a tensor of each kind.
Layout Model() { return LayoutOf({{"w", 700}, {"mean", 9, RangeKind::kStatistic}, {"b", 130}}); }

// The gradients of all steps: the same for any number of replicas.
class Gradients {
 public:
  explicit Gradients(uint64_t seed) : engine_(seed) {}

  Values Draw() {
    Values values(Model().size());
    for (float& value : values) value = normal_(engine_);
    // Two of these in a step overflow, in one stripe alone.
    if (engine_() % 3 == 0) values[500] = 3e38f;
    return values;
  }

 private:
  std::mt19937 engine_;
  std::normal_distribution<float> normal_;
};

// Plays the leader, its replicas and the workers.
class Job {
 public:
  Job(uint32_t replicas, uint64_t seed)
      : stripes_(Model().size(), replicas), seed_(seed), dice_(seed), reports_(replicas) {
    const OptimizerOptions options[] = {Momentum(), AdamOptions(), LambOptions()};
    optimizer_.options = options[seed % 3];
    director_ = std::make_unique<StepDirector>(Model(), optimizer_, stripes_);
    terms_.learning_rates = {0.1};
    if (seed % 2 == 0) terms_.clip_norm = 5;
    for (uint32_t i = 0; i < replicas; ++i) AddReplica(i);
    Send(OpenModel{std::make_shared<const Layout>(Model()), optimizer_});
  }

  void Start(const Values& parameters) {
    const PushId push = BeginPush(0, parameters);
    Pump([&] { return HasArrived(push); });
    Send(TakeParameters{push, Step(0)});
  }

  void MakeStep(const std::vector<Values>& gradients) {
    std::vector<PushId> pushes;
    for (uint32_t i = 0; i < gradients.size(); ++i) {
      if (dice_() % 4 == 0) BreakOff(i, gradients[i]);
      pushes.push_back(BeginPush(i, gradients[i]));
    }
    for (const PushId push : pushes) {
      Pump([&] { return HasArrived(push); });
    }
    for (const PushId push : pushes) {
      Send(AddPush{push, director_->Count(PushHeader(), 0, terms_), push == pushes.back()});
    }
    abandoned_ += director_->Make(terms_, [this](const StepOrder& order) { return Carry(order); })
                      .has_value();
    director_->Clear();
    Send(PublishStep());
    ++step_;
    Ask();
  }

  uint64_t abandoned() const { return abandoned_; }  // steps

  // The parameters that each pull got, in their order. Each is one step's.
  std::vector<Values> Finish() {
    Pump([this] { return events_.empty() && Idle(); });
    std::vector<Values> pulled;
    for (const auto& [number, parts] : parts_) {
      EXPECT_EQ(parts.size(), stripes_.count()) << "pull " << number;
      pulled.push_back(Joined(parts));
    }
    return pulled;
  }

 private:
  static SgdOptions Momentum() {
    SgdOptions options;
    options.momentum = 0.9;
    return options;
  }

  void AddReplica(uint32_t index) {
    followers_.push_back(std::make_unique<Replica>(
        StripePlace{index, stripes_.count()}, SnapshotMemory::kPrivate, nullptr,
        Executors::Inline(),
        [this, index](const ReplicaReport& report) { FromReplica(index, report); }));
    auto link = std::make_unique<LateLink>(
        dice_, *followers_[index],
        [this, index](const ReplicaReport& report) { Hear(index, report); });
    late_.push_back(link.get());
    links_.push_back(std::move(link));
  }

  void FromReplica(uint32_t index, const ReplicaReport& report) { late_[index]->Report(report); }

  void Hear(uint32_t index, const ReplicaReport& report) {
    if (const auto* const have = std::get_if<HaveReport>(&report)) {
      EXPECT_THAT(have->refused, IsOk());
      EXPECT_TRUE(have_.insert({have->push, index}).second) << "a report came twice";
      if (reports_.Take(index, *have).has_value()) arrived_.insert(have->push);
    } else {
      EXPECT_TRUE(carried_.awaited().has_value()) << "a report came twice";
      carried_.Take(index, std::get<StripeReport>(report));
    }
  }

  void Send(const ReplicaCommand& command) {
    for (const auto& link : links_) link->Send(command);
  }

  std::vector<StripeReport> Carry(const StepOrder& order) {
    carried_.Begin(stripes_.count(), absl::UnixEpoch());
    Send(order);
    Pump([this] { return carried_.complete(); });
    return carried_.TakeAll();
  }

  // ---- Workers ----

  PushId BeginPush(uint32_t worker, const Values& gradient) {
    const PushName name = {SessionId(worker + 1), Sequence(step_ + 1), ++attempts_};
    const PushId push(++pushes_);
    reports_.Await(push);
    Send(AdmitPush{push, name});
    for (uint32_t i = 0; i < stripes_.count(); ++i) Stream(i, name, gradient);
    return push;
  }

  // An attempt of which not all streams come, and which is dropped.
  void BreakOff(uint32_t worker, Values gradient) {
    for (float& value : gradient) value += 1;
    const PushName name = {SessionId(worker + 1), Sequence(step_ + 1), ++attempts_};
    const PushId push(dice_() % 2 == 0 ? ++pushes_ : 0);
    if (push != PushId()) {
      reports_.Await(push);
      Send(AdmitPush{push, name});
    }
    Stream(dice_() % stripes_.count(), name, gradient);
    for (uint32_t i = dice_() % 50; i > 0; --i) Act();
    reports_.Forget(push);
    Send(DropPush{push, name});
  }

  // The stream to one replica: its header comes, then its payload.
  void Stream(uint32_t replica, const PushName& name, const Values& gradient) {
    events_.push_back([this, replica, name, part = PartOf(gradient, replica)] {
      PushHeader header;
      header.session = name.session;
      header.sequence = name.sequence;
      header.attempt = name.attempt;
      followers_[replica]->calls().BeginPush(
          header, [this, replica, part](absl::StatusOr<std::unique_ptr<PendingPush>> push) {
            if (!push.ok()) return;
            const auto shared = std::make_shared<std::unique_ptr<PendingPush>>(*std::move(push));
            events_.push_back([this, replica, part, shared] {
              const absl::Status added = (*shared)->Add(ChunkOf(0, part));
              followers_[replica]->calls().EndPush(std::move(*shared), added).IgnoreError();
            });
          });
    });
  }

  // A worker asks all replicas for the latest step.
  void Ask() {
    const PullName pull = {SessionId(1), ++pulls_};
    for (uint32_t i = 0; i < stripes_.count(); ++i) {
      events_.push_back([this, i, pull, step = step_] {
        followers_[i]->calls().Pull(
            pull, [this, i, pull, step](const absl::StatusOr<PullResult>& result) {
              ASSERT_THAT(result.status(), IsOk());
              EXPECT_EQ(result->snapshot->step, Step(step));
              EXPECT_TRUE(
                  parts_[pull.number].emplace(i, ValuesOf(result->snapshot->values.span())).second);
            });
      });
    }
    PullHeader header;
    header.step = Step(step_);
    Send(ReleasePull{pull, header});
  }

  // ---- Time ----

  bool HasArrived(PushId push) const { return arrived_.count(push) > 0; }

  bool Idle() const {
    return std::all_of(late_.begin(), late_.end(),
                       [](const LateLink* link) { return link->idle(); });
  }

  // Something happens: an event of a worker's stream, or of a link.
  void Act() {
    const size_t which = dice_() % (events_.size() + 2 * late_.size() + 1);
    if (which < events_.size()) {
      const auto event = std::move(events_[which]);
      events_.erase(events_.begin() + static_cast<ptrdiff_t>(which));
      event();
    } else if (!late_.empty()) {
      late_[dice_() % late_.size()]->Act();
    }
  }

  void Pump(const std::function<bool()>& until) {
    for (uint64_t i = 0; i < kManyEvents && !until(); ++i) Act();
    CHECK(until()) << "nothing gets on in story " << seed_ << " of " << stripes_.count()
                   << " replicas";
  }

  // ---- Vectors ----

  Values PartOf(const Values& whole, uint32_t stripe) const {
    Values part(stripes_.SizeOf(stripe));
    for (uint64_t i = 0; i < part.size(); ++i) part[i] = whole[stripes_.InVector(stripe, i)];
    return part;
  }

  Values Joined(const std::map<uint32_t, Values>& parts) const {
    Values whole(stripes_.size());
    for (const auto& [stripe, part] : parts) {
      for (uint64_t i = 0; i < part.size(); ++i) whole[stripes_.InVector(stripe, i)] = part[i];
    }
    return whole;
  }

  const Stripes stripes_;
  const uint64_t seed_;
  std::mt19937 dice_;
  OptimizerConfig optimizer_;
  StepTerms terms_;
  std::unique_ptr<StepDirector> director_;
  std::vector<std::unique_ptr<Replica>> followers_;
  std::vector<std::unique_ptr<ReplicaLink>> links_;
  std::vector<LateLink*> late_;
  std::vector<std::function<void()>> events_;
  uint64_t step_ = 0;
  uint64_t abandoned_ = 0;
  uint64_t pushes_ = 0;
  uint64_t pulls_ = 0;
  uint32_t attempts_ = 0;
  GatheredReports reports_;
  std::set<std::pair<PushId, uint32_t>> have_;  // which replica has reported on which push
  std::set<PushId> arrived_;
  OrderReports carried_;                                  // the latest order, by all replicas
  std::map<uint64_t, std::map<uint32_t, Values>> parts_;  // pull -> replica -> parameters
};

struct Story {
  std::vector<Values> pulled;
  uint64_t abandoned = 0;
};

Story Play(uint32_t replicas, uint64_t seed) {
  Gradients gradients(seed);
  Job job(replicas, seed);
  job.Start(gradients.Draw());
  for (uint32_t step = 0; step < kSteps; ++step) {
    std::vector<Values> of_step;
    for (uint32_t worker = 0; worker < 1 + step % kWorkers; ++worker) {
      of_step.push_back(gradients.Draw());
    }
    job.MakeStep(of_step);
  }
  return {job.Finish(), job.abandoned()};
}

TEST(LateReplicasTest, MakeTheStepsOfOneReplica) {
  SCOPED_TRACE(HowToRepeat());
  const char* const asked = std::getenv("SLUICE_TEST_SEEDS");
  const uint64_t stories = asked == nullptr ? kStories : std::strtoull(asked, nullptr, 10);
  const uint64_t first = RunSeed();
  uint64_t abandoned = 0;
  for (uint64_t seed = first; seed < first + stories; ++seed) {
    const Story one = Play(1, seed);
    ASSERT_EQ(one.pulled.size(), kSteps);
    abandoned += one.abandoned;
    for (const uint32_t replicas : {2, 3, 4, 5}) {
      const Story many = Play(replicas, seed);
      ASSERT_TRUE(many.pulled == one.pulled) << replicas << " replicas, seed " << seed;
      ASSERT_EQ(many.abandoned, one.abandoned);
    }
  }
  EXPECT_GT(abandoned, 0u);
}

}  // namespace
}  // namespace sluice
