// The mean staleness in async mode with n equal workers and a quorum of c.
//
// A worker pulls, computes, pushes, and pulls again. While it computes, the others push n − 1 times
// on average, and every c pushes make a step. So the server is (n − 1) / c steps further when a
// gradient arrives: n / c (Zhang et al. 2016) less the share of the worker's own push. Only the
// first n pushes are less stale, by n / c at most. Over 4000 pushes of up to 16 workers this
// changes the mean by at most 0.4 % of n / c. Chance changes it less, because the staleness that
// one push loses another gains.

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "server/shard/shard.h"
#include "tests/simulation/dice.h"
#include "tests/testing/fake_clock.h"
#include "tests/testing/shard/finish_offer.h"
#include "tests/testing/vectors.h"

namespace sluice {
namespace {

constexpr int kPushes = 4000;
constexpr double kTolerance = 0.01;

struct EqualWorker {
  Welcome welcome;
  uint64_t sequence = 0;
  uint64_t step = 0;   // of its parameters
  uint64_t ready = 0;  // when its gradient is
};

// Workers that differ only in random compute times. A push takes no time.
class Race {
 public:
  Race(const Consistency& consistency, uint32_t workers, uint64_t seed)
      : dice_(seed), shard_(OptionsOf(consistency, workers), clock_) {
    for (uint32_t i = 0; i < workers; ++i) {
      workers_.push_back({shard_.Join(RequestOf(i), nullptr).value(), 0, 0, Duration()});
    }
    auto first = shard_.store().BeginInitialize(workers_[0].welcome.session).value();
    EXPECT_TRUE(first.parameters->Add(ChunkOf(0, Values{0})).ok());
    EXPECT_TRUE(FinishOffer(shard_, std::move(first.parameters)).ok());
  }

  StalenessHistogram Run(int pushes) {
    for (int i = 0; i < pushes; ++i) {
      Push(*std::min_element(workers_.begin(), workers_.end(),
                             [](const auto& a, const auto& b) { return a.ready < b.ready; }));
    }
    return shard_.Describe().staleness;
  }

 private:
  static ShardOptions OptionsOf(const Consistency& consistency, uint32_t workers) {
    ShardOptions options;
    options.consistency = consistency;
    options.expected_workers = workers;
    return options;
  }

  static JoinRequest RequestOf(uint32_t index) {
    JoinRequest request;
    request.worker = absl::StrCat("w", index);
    request.process_nonce = ProcessNonce(index + 1);
    request.layout = ParametersOnly(1);
    request.optimizer.options = SgdOptions();
    return request;
  }

  uint64_t Duration() { return dice_.Between(500, 1500); }

  void Push(EqualWorker& worker) {
    PushHeader header;
    header.session = worker.welcome.session;
    header.sequence = Sequence(++worker.sequence);
    header.step = Step(worker.step);
    header.incarnation = worker.welcome.incarnation;
    shard_.store().BeginPush(header, [this](absl::StatusOr<PushStart> start) {
      ASSERT_TRUE(start.ok()) << start.status();
      push_ = std::move(start->push);
    });
    ASSERT_TRUE(push_->Add(ChunkOf(0, Values{1})).ok());
    shard_.store().FinishPush(std::move(push_), [](const absl::StatusOr<PushOutcome>& outcome) {
      ASSERT_TRUE(outcome.ok()) << outcome.status();
    });
    PullRequest request;
    request.session = header.session;
    request.after = header.sequence;
    const uint64_t now = worker.ready;
    worker.ready = UINT64_MAX;  // until it may go on
    shard_.store().Pull(request, [this, &worker, now](const absl::StatusOr<PullResult>& result) {
      worker.step = result.value().header.step.value();
      now_ = std::max(now_, now);
      worker.ready = now_ + Duration();
    });
  }

  Dice dice_;
  FakeClock clock_;
  Shard shard_;
  uint64_t now_ = 0;
  std::vector<EqualWorker> workers_;
  std::unique_ptr<PendingPush> push_;
};

TEST(StalenessTest, InAsyncIsTheNumberOfWorkersByTheQuorum) {
  const std::vector<std::pair<uint32_t, uint32_t>> cases = {{2, 1}, {4, 1}, {8, 1},  {16, 1},
                                                            {4, 2}, {8, 2}, {16, 4}, {16, 8}};
  for (const auto& [workers, quorum] : cases) {
    Consistency async;
    async.mode = ConsistencyMode::kAsync;
    async.quorum = quorum;
    const double mean = Race(async, workers, workers * 100 + quorum).Run(kPushes).mean();
    const double expected = static_cast<double>(workers - 1) / quorum;
    EXPECT_NEAR(mean, expected, kTolerance * workers / quorum)
        << workers << " workers, quorum " << quorum;
  }
}

TEST(StalenessTest, InSyncIsNone) {
  for (const uint32_t workers : {1, 2, 8}) {
    const StalenessHistogram staleness = Race(Consistency(), workers, workers).Run(kPushes);
    EXPECT_EQ(staleness.counts()[0], static_cast<uint64_t>(kPushes));
    EXPECT_EQ(staleness.max(), 0u);
  }
}

}  // namespace
}  // namespace sluice
