// A shard called from many threads at once. All numbers are integers, or fractions by powers of
// two, so that every sum is exact in every order.

#include <algorithm>
#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/shard/shard.h"
#include "tests/testing/outcome.h"
#include "tests/testing/shard/finish_offer.h"
#include "tests/testing/shard/shard_client.h"
#include "tests/testing/shard/shard_world.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

using ::testing::Each;

constexpr int kWorkers = 8;
constexpr int kPushes = 200;
constexpr uint32_t kSize = 64;

using PushAnswer = Answer<PushOutcome>;

std::string Name(int worker) { return absl::StrCat("worker-", worker); }

std::vector<std::string> Names(int count = kWorkers) {
  std::vector<std::string> names;
  for (int i = 0; i < count; ++i) names.push_back(Name(i));
  return names;
}

uint64_t CountApplied(const std::vector<std::vector<PushAnswer>>& answers) {
  uint64_t applied = 0;
  for (const std::vector<PushAnswer>& of_one : answers) {
    for (const PushAnswer& answer : of_one) {
      EXPECT_EQ(answer.calls(), 1);
      applied += answer.Wait().value().disposition == Disposition::kApplied;
    }
  }
  return applied;
}

// ---- Pushes ----

// A worker has up to four pushes without an answer, so pushes queue. Meanwhile two observers pull
// every step.
TEST(ShardConcurrencyTest, AsyncCountsEveryPushOnceAndShowsWholeSteps) {
  ShardWorld world(Async(4), ParametersOnly(kSize));
  world.Start(Names());
  constexpr uint64_t kSteps = kWorkers * kPushes / 4;
  std::vector<std::vector<PushAnswer>> answers(kWorkers);
  std::map<uint64_t, float> seen[2];
  const SessionId observer = world.Observe("observer")->session;
  InParallel(kWorkers + 2, [&](int thread) {
    if (thread >= kWorkers) {
      ShardClient client(world.shard(), observer);
      for (uint64_t step = 0; step <= kSteps; ++step)
        seen[thread - kWorkers].insert(client.Pull(step));
      return;
    }
    ShardClient client(world.shard(), world.session(Name(thread)));
    for (int i = 0; i < kPushes; ++i) {
      if (i >= 4) {
        EXPECT_THAT(answers[thread][i - 4].Wait(), IsOk());
      }
      answers[thread].push_back(client.Push(0, thread + 1));
    }
  });
  EXPECT_EQ(CountApplied(answers), kSteps);
  EXPECT_EQ(world.step(), kSteps);
  EXPECT_THAT(world.Parameters(), Each(-kPushes * (1 + 2 + 3 + 4 + 5 + 6 + 7 + 8) / 4.0f));
  EXPECT_EQ(world.Counters(), "1600 received: 1600 accepted");
  for (const auto& [step, value] : seen[0]) {
    if (seen[1].count(step) == 0) continue;
    EXPECT_EQ(seen[1].at(step), value) << step;
  }
}

// The mean gradient of each step, and the parameters after `step` of them.
float MeanOf(uint64_t step) { return 4.5f * (step % 5); }
float AfterSteps(uint64_t step) {
  float parameter = 0;
  for (uint64_t i = 0; i < step; ++i) parameter -= MeanOf(i);
  return parameter;
}

TEST(ShardConcurrencyTest, SyncTakesEveryStepWithEveryWorker) {
  ShardWorld world(Sync(kWorkers), ParametersOnly(kSize));
  world.Start(Names());
  std::vector<std::vector<PushAnswer>> answers(kWorkers);
  InParallel(kWorkers, [&](int thread) {
    ShardClient client(world.shard(), world.session(Name(thread)));
    for (uint64_t step = 0; step < kPushes; ++step) {
      answers[thread].push_back(client.Push(step, (thread + 1) * (step % 5)));
      EXPECT_EQ(client.Pull(step + 1), std::make_pair(step + 1, AfterSteps(step + 1)));
    }
  });
  EXPECT_EQ(CountApplied(answers), kPushes);
  EXPECT_EQ(world.step(), kPushes);
  EXPECT_THAT(world.Parameters(), Each(AfterSteps(kPushes)));
  EXPECT_EQ(world.Counters(), "1600 received: 1600 accepted");
}

TEST(ShardConcurrencyTest, SyncTakesEveryStepInTheOrderOfRanksWithRoomForTwo) {
  ShardOptions options = Sync(kWorkers);
  options.consistency.order = ReductionOrder::kRank;
  options.max_in_flight_bytes = 1;
  ShardWorld world(options, ParametersOnly(kSize));
  world.Start(Names());
  std::vector<std::vector<PushAnswer>> answers(kWorkers);
  InParallel(kWorkers, [&](int thread) {
    ShardClient client(world.shard(), world.session(Name(thread)));
    for (uint64_t step = 0; step < kPushes; ++step) {
      answers[thread].push_back(client.Push(step, (thread + 1) * (step % 5)));
      EXPECT_EQ(client.GoOn(), std::make_pair(step + 1, AfterSteps(step + 1)));
    }
  });
  EXPECT_EQ(CountApplied(answers), kPushes);
  EXPECT_EQ(world.Counters(), "1600 received: 1600 accepted");
}

// In backup mode a worker is late or takes part, and continues in both cases.
TEST(ShardConcurrencyTest, BackupTakesItsStepsWhoeverIsLate) {
  ShardWorld world(Backup(3, kWorkers), ParametersOnly(kSize));
  world.Start(Names());
  InParallel(kWorkers, [&](int thread) {
    ShardClient client(world.shard(), world.session(Name(thread)));
    uint64_t step = 0;
    for (int i = 0; i < kPushes; ++i) {
      EXPECT_THAT(client.Push(step, 1).Wait(), IsOk());
      const auto [next, value] = client.GoOn();
      EXPECT_GT(next, step);
      EXPECT_EQ(value, -static_cast<float>(next));
      step = next;
    }
    EXPECT_THAT(world.shard().Leave(world.session(Name(thread)), {}), IsOk());
  });
  EXPECT_THAT(world.Parameters(), Each(-static_cast<float>(world.step())));
}

// A worker that continues after its c-th push sees at least c − slack pushes of every other worker.
TEST(ShardConcurrencyTest, SspShowsWhatTheOthersHavePushedButForTheSlack) {
  constexpr uint64_t kSlack = 2;
  ShardWorld world(Ssp(kSlack, kWorkers), ParametersOnly(kSize));
  world.Start(Names());
  InParallel(kWorkers, [&](int thread) {
    ShardClient client(world.shard(), world.session(Name(thread)));
    uint64_t step = 0;
    for (uint64_t clock = 1; clock <= kPushes; ++clock) {
      EXPECT_THAT(client.Push(step, 1).Wait(), IsOk());
      const auto [next, value] = client.GoOn();
      EXPECT_EQ(value, -static_cast<float>(next));
      const uint64_t of_others = clock - std::min(clock, kSlack);
      EXPECT_GE(next, clock + (kWorkers - 1) * of_others);
      step = next;
    }
  });
  EXPECT_THAT(world.Parameters(), Each(-kWorkers * kPushes));
  EXPECT_EQ(world.Counters(), "1600 received: 1600 accepted");
}

// Workers join, take part in a few steps and leave, while others continue. With every divisor the
// mean of ones is one.
TEST(ShardConcurrencyTest, NoStepHangsOrGoesWrongWhileWorkersComeAndGo) {
  ShardWorld world(Sync(1), ParametersOnly(kSize));
  world.Start({"first"});
  InParallel(kWorkers, [&](int thread) {
    for (uint64_t round = 1; round <= 20; ++round) {
      JoinRequest request;
      request.worker = Name(thread);
      request.process_nonce = ProcessNonce(round);
      request.layout = ParametersOnly(kSize);
      request.optimizer.options = PlainSgd();
      const auto welcome = world.shard().Join(request, nullptr);
      ASSERT_THAT(welcome, IsOk());
      if (round == 1 && thread == 0) {
        ASSERT_THAT(world.shard().Leave(world.session("first"), {}), IsOk());
      }
      ShardClient client(world.shard(), welcome->session);
      uint64_t step = client.Pull(welcome->step.value()).first;
      for (int i = 0; i < 5; ++i) {
        const auto outcome = client.Push(step, 1).Wait();
        ASSERT_THAT(outcome, IsOk());
        EXPECT_NE(outcome->disposition, Disposition::kStaleDropped);
        const auto [next, value] = client.Pull(step + 1);
        EXPECT_EQ(value, -static_cast<float>(next));
        step = next;
      }
      ASSERT_THAT(world.shard().Leave(welcome->session, {}), IsOk());
    }
  });
  EXPECT_THAT(world.Parameters(), Each(-static_cast<float>(world.step())));
  EXPECT_EQ(world.Counters(), "800 received: 800 accepted");
}

// A worker's process that loses its connection whenever a push is whole: it joins again while that
// push is judged, added or applied, and sends it again after every answer.
class RestlessWorker {
 public:
  RestlessWorker(ShardWorld& world, const std::string& name)
      : shard_(world.shard()),
        request_(world.RequestOf(name)),
        client_(shard_, world.session(name)) {}

  // Pushes ones, `count` times. Each push must count once.
  void PushOnes(int count) {
    for (int i = 0; i < count; ++i) {
      absl::StatusOr<PushOutcome> outcome = client_.Push(0, 1, [this] { ++whole_; }).Wait();
      const bool counted = outcome.ok();
      do {
        outcome = client_.Repeat(0, 1, [this] { ++whole_; }).Wait();
      } while (absl::IsAborted(outcome.status()));
      ASSERT_THAT(outcome, IsOk());
      EXPECT_EQ(outcome->disposition, counted ? Disposition::kDuplicate : Disposition::kApplied);
    }
    pushing_ = false;
  }

  void KeepJoining() {
    for (int seen = 0; pushing_.load(); std::this_thread::yield()) {
      const int whole = whole_.load();
      if (whole == seen) continue;
      seen = whole;
      client_.set_session(shard_.Join(request_, nullptr)->session);
    }
  }

 private:
  Shard& shard_;
  const JoinRequest request_;
  ShardClient client_;
  std::atomic<int> whole_{0};
  std::atomic<bool> pushing_{true};
};

// A vector that is large enough for the addition to take a while.
TEST(ShardConcurrencyTest, ARepeatedPushCountsOnceWhileItsProcessKeepsJoiningAgain) {
  ShardWorld world(Async(1), ParametersOnly(1 << 16));
  world.Start(Names(2));
  RestlessWorker first(world, Name(0));
  RestlessWorker second(world, Name(1));
  InParallel(4, [&](int thread) {
    RestlessWorker& worker = thread % 2 == 0 ? first : second;
    thread < 2 ? worker.PushOnes(kPushes) : worker.KeepJoining();
  });
  EXPECT_EQ(world.step(), uint64_t{2 * kPushes});
  EXPECT_THAT(world.Parameters(), Each(-2 * kPushes));
}

// The rpc layer may start the next push in the callback that ends the last one.
TEST(ShardConcurrencyTest, PushesMayBeMadeInTheCallbacksOfPushes) {
  ShardWorld world(Async(1), ParametersOnly(kSize));
  world.Start(Names());
  std::atomic<int> answered{0};
  std::vector<std::function<void(int)>> chains(kWorkers);
  for (int i = 0; i < kWorkers; ++i) {
    chains[i] = [&, i](int left) {
      if (left == 0) return;
      PushHeader header;
      header.session = world.session(Name(i));
      header.sequence = Sequence(kPushes + 1 - left);
      header.incarnation = Incarnation(1);
      std::unique_ptr<PendingPush> push = world.BeginAs(header).Take();
      EXPECT_THAT(push->Add(ChunkOf(0, Values(kSize, 1))), IsOk());
      world.shard().store().FinishPush(std::move(push),
                                       [&, i, left](const absl::StatusOr<PushOutcome>& done) {
                                         EXPECT_THAT(done, IsOk());
                                         ++answered;
                                         chains[i](left - 1);
                                       });
    };
  }
  InParallel(kWorkers, [&](int thread) { chains[thread](kPushes); });
  EXPECT_EQ(answered.load(), kWorkers * kPushes);
  EXPECT_THAT(world.Parameters(), Each(-kWorkers * kPushes));
  EXPECT_EQ(world.Counters(), "1600 received: 1600 accepted");
}

// ---- Pulls and initial parameters ----

TEST(ShardConcurrencyTest, APullIsEitherCancelledOrAnswered) {
  ShardWorld world(Async(1), ParametersOnly(kSize));
  world.Start(Names());
  std::atomic<uint64_t> cancelled{0};
  std::vector<std::vector<Answer<PullResult>>> pulls(kWorkers);
  InParallel(kWorkers, [&](int thread) {
    const SessionId session = world.session(Name(thread));
    ShardClient client(world.shard(), session);
    for (uint64_t i = 0; i < kPushes; ++i) {
      PullRequest request;
      request.session = session;
      request.min_step = Step(thread + i * kWorkers);  // about where the others take the step
      pulls[thread].emplace_back();
      const PullId id = world.shard().store().Pull(request, pulls[thread].back().Callback());
      client.Push(0, 1);
      cancelled += world.shard().store().CancelPull(id);
    }
  });
  world.shard().Drain();
  uint64_t answered = 0;
  for (const auto& of_one : pulls) {
    for (const Answer<PullResult>& pull : of_one) {
      EXPECT_LE(pull.calls(), 1);
      answered += pull.calls();
    }
  }
  EXPECT_EQ(cancelled.load() + answered, uint64_t{kWorkers * kPushes});
}

TEST(ShardConcurrencyTest, OneOfManyOffersOfParametersWins) {
  for (int round = 0; round < 50; ++round) {
    ShardWorld world(Sync(kWorkers), ParametersOnly(kSize));
    for (const std::string& name : Names()) ASSERT_THAT(world.Join(name), IsOk());
    std::atomic<int> winners{0};
    std::atomic<int> winner{-1};
    InParallel(kWorkers, [&](int thread) {
      auto start = world.shard().store().BeginInitialize(world.session(Name(thread)));
      if (start->parameters == nullptr) return;
      EXPECT_THAT(start->parameters->Add(ChunkOf(0, Values(kSize, thread))), IsOk());
      if (!FinishOffer(world.shard(), std::move(start->parameters))->accepted) return;
      ++winners;
      winner = thread;
    });
    EXPECT_EQ(winners.load(), 1);
    EXPECT_THAT(world.Parameters(), Each(winner.load()));
  }
}

}  // namespace
}  // namespace sluice
