// Incarnations of a server on a disk that loses what was not synced. Whenever the machine stops, no
// answered push is lost, none counts twice, and no incarnation's number is used again.

#include <cstdlib>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/durable/directory.h"
#include "server/durable/recovery.h"
#include "server/shard/shard.h"
#include "tests/testing/durable/faulty_files.h"
#include "tests/testing/fake_clock.h"
#include "tests/testing/process/record_sheet.h"
#include "tests/testing/seed.h"
#include "tests/testing/shard/finish_offer.h"
#include "tests/testing/shard/shard_world.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

constexpr uint32_t kPushes = 24;  // one for each parameter, from which it subtracts 1

DurableOptions OptionsIn(const std::string& name) {
  DurableOptions options;
  options.directory = absl::StrCat(::testing::TempDir(), name);
  options.durability = Durability::kJournal;
  options.checkpoint_every = 5;
  options.keep_checkpoints = 2;
  return options;
}

// A worker whose n-th push is 1 at parameter n − 1, over several incarnations of its server.
class Story {
 public:
  explicit Story(uint64_t seed) : random_(seed), options_(OptionsIn("story")) {}

  enum class End { kOfMachine, kOfProcess };

  // An incarnation that ends after so many file operations; or, without a number, when all is
  // pushed. The next process finds what was not synced, unless the machine has ended.
  void Live(absl::optional<uint64_t> operations, End end) {
    files_.StopAfter(operations);
    auto directory = DurableDirectory::Open(options_, files_);
    if (directory.ok()) {
      ShardOptions shard_options = Async(1);
      shard_options.incarnation = (*directory)->incarnation();
      Shard shard(shard_options, clock_);
      const auto fatal = [](const absl::Status&) {};
      if (Recover(**directory, shard, fatal).ok()) {
        EXPECT_TRUE(incarnations_.insert(shard_options.incarnation.value()).second);
        Train(shard);
      }
      directory->reset();
      shard.durability().FailHeldAnswers(absl::CancelledError());
      parameters_ = shard.store().stripe().latest() == nullptr
                        ? Values()
                        : ValuesOf(shard.store().stripe().latest()->values.span());
    } else {
      EXPECT_TRUE(operations.has_value()) << directory.status();
    }
    if (end == End::kOfMachine) files_.Crash(random_);
  }

  // What was answered counts once, and what was not, at most once.
  void ExpectExact() {
    ASSERT_EQ(parameters_.size(), kPushes);
    for (uint32_t i = 0; i < kPushes; ++i) {
      const bool answered = answered_.count(i + 1) > 0;
      EXPECT_TRUE(parameters_[i] == -1 || (!answered && parameters_[i] == 0))
          << "push " << i + 1 << (answered ? ", answered: " : ", not answered: ") << parameters_[i];
    }
  }

  bool done() const { return next_ > kPushes; }

 private:
  void Train(Shard& shard) {
    JoinRequest request;
    request.worker = "a";
    request.process_nonce = ProcessNonce(1);
    request.layout = ParametersOnly(kPushes);
    request.optimizer.options = PlainSgd();
    const auto welcome = shard.Join(request, nullptr);
    ASSERT_THAT(welcome, IsOk());
    if (!welcome->initialized) {
      // Nothing was answered yet, or it would have been lost.
      ASSERT_TRUE(answered_.empty());
      auto start = shard.store().BeginInitialize(welcome->session);
      ASSERT_THAT(start, IsOk());
      ASSERT_THAT(start->parameters->Add(ChunkOf(0, Values(kPushes))), IsOk());
      ASSERT_THAT(FinishOffer(shard, std::move(start->parameters)), IsOk());
    }
    // The push that is not answered yet is repeated.
    for (; next_ <= kPushes; ++next_) {
      PushHeader header;
      header.session = welcome->session;
      header.sequence = Sequence(next_);
      header.step = shard.Describe().step;
      header.incarnation = welcome->incarnation;
      if (!Push(shard, header)) return;
      answered_.insert(next_);
    }
  }

  // Whether it was answered as one that counts.
  bool Push(Shard& shard, const PushHeader& header) {
    struct State {
      absl::Notification ended;
      bool counts = false;
      std::unique_ptr<PendingPush> push;
    };
    const auto state = std::make_shared<State>();
    const auto end = [state](bool counts) {
      state->counts = counts;
      state->ended.Notify();
    };
    shard.store().BeginPush(header, [state, end](absl::StatusOr<PushStart> start) {
      if (start.ok() && start->push != nullptr) {
        state->push = std::move(start->push);
      } else {
        end(start.ok());
      }
    });
    if (state->push != nullptr) {
      Values gradient(kPushes);
      gradient[header.sequence.value() - 1] = 1;
      EXPECT_THAT(state->push->Add(ChunkOf(0, gradient)), IsOk());
      shard.store().FinishPush(std::move(state->push), [end](const auto& told) { end(told.ok()); });
    }
    while (!state->ended.WaitForNotificationWithTimeout(absl::Milliseconds(1))) {
      if (files_.stopped()) return false;
    }
    return state->counts;
  }

  std::mt19937_64 random_;
  const DurableOptions options_;
  FaultyFiles files_;
  FakeClock clock_;
  uint64_t next_ = 1;
  std::set<uint64_t> answered_;
  std::set<uint64_t> incarnations_;
  Values parameters_;
};

TEST(DurableLifeTest, WheneverTheMachineStopsWhatWasAnsweredCountsOnce) {
  const char* const asked = std::getenv("SLUICE_TEST_SEEDS");
  const int seeds = asked == nullptr ? 500 : std::atoi(asked);
  SCOPED_TRACE(HowToRepeat());
  RecordSheet sheet("durable_life", RunSeed());
  for (int i = 0; i < seeds && !::testing::Test::HasFailure(); ++i) {
    const uint64_t seed = RunSeed() + i;
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    std::mt19937_64 random(seed);
    Story story(seed);
    for (int incarnation = 0; incarnation < 5; ++incarnation)
      story.Live(random() % 80,
                 random() % 2 == 0 ? Story::End::kOfMachine : Story::End::kOfProcess);
    // So that what was only read counts for nothing.
    story.Live(0, Story::End::kOfMachine);
    story.Live(absl::nullopt, Story::End::kOfMachine);
    EXPECT_TRUE(story.done());
    story.ExpectExact();
    sheet.Count("seeds", i + 1);
  }
  sheet.Text("verdict", ::testing::Test::HasFailure() ? "the last seed broke the contract"
                                                      : "what was answered counted once");
  EXPECT_THAT(sheet.Write(), IsOk());
}

}  // namespace
}  // namespace sluice
