// A restarted server makes the journaled steps again: with the terms that they were made with,
// whatever its own flags say, and to the same bits, or it does not start.

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/types/optional.h"
#include "common/base/little_endian.h"
#include "common/encoding/checksum.h"
#include "common/tensor/tensor_chunk.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/durable/directory.h"
#include "server/durable/format/saved_state.h"
#include "server/durable/journal/journal_format.h"
#include "server/durable/recovery.h"
#include "server/durable/save_checkpoint.h"
#include "server/operator/operator_commands.h"
#include "server/shard/shard.h"
#include "tests/testing/durable/faulty_files.h"
#include "tests/testing/durable/life.h"
#include "tests/testing/shard/shard_world.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class ReplayTest : public ::testing::Test {
 protected:
  ReplayTest() {
    options_.directory = absl::StrCat(::testing::TempDir(), "replay");
    options_.durability = Durability::kJournal;
  }

  // A server with an empty disk that makes three steps and, unless it is killed, saves a last
  // checkpoint. Returns its parameters.
  Values Train(const ShardOptions& shard, bool killed = true) {
    files_ = std::make_unique<FaultyFiles>();
    Life life(options_, *files_, shard);
    life.world().Start({"a"});
    for (uint64_t step : {0, 1, 2}) PushAndWait(life.world(), step);
    if (!killed) {
      EXPECT_THAT(SaveCheckpointAndWait(life.world().shard(), life.directory()), IsOk());
    }
    return life.world().Parameters();
  }

  // The parameters of a server that is started with what is there.
  absl::StatusOr<Values> Restart(ShardOptions shard) {
    auto directory = DurableDirectory::Open(options_, *files_);
    if (!directory.ok()) return directory.status();
    shard.incarnation = (*directory)->incarnation();
    ShardWorld world(shard);
    const absl::Status recovered = Recover(**directory, world.shard());
    directory->reset();
    if (!recovered.ok()) return recovered;
    return world.Parameters();
  }

  // Writes the journal anew: a record consists of what `change` makes of it.
  void Rewrite(const std::function<void(StepRecord*)>& change, char format = '2') {
    for (const std::string& path : JournalFiles()) {
      const auto file = files_->Open(path);
      JournalReader reader(**file, 3);
      std::string bytes;
      for (auto next = reader.Next(); next.ok() && next->has_value(); next = reader.Next()) {
        change(&(*next)->record);
        JournalFrame frame = FrameOf(EncodeSavedStep((*next)->record), (*next)->sum.span());
        frame.head[7] = format;
        frame.head.replace(24, 8, LittleEndian64(Checksum(frame.head.substr(0, 24))));
        absl::StrAppend(&bytes, frame.head, BytesOf((*next)->sum.span()), frame.tail);
      }
      files_->BytesOf(path) = bytes;
    }
  }

  // Writes it as an earlier version did.
  void RewriteInFormat1() {
    Rewrite(
        [](StepRecord* record) {
          record->terms.clip_norm.reset();
          record->checksum = 0;
        },
        '1');
  }

  std::vector<std::string> JournalFiles() {
    std::vector<std::string> found;
    const auto names = files_->List(options_.directory);
    for (const std::string& name : *names) {
      if (absl::StartsWith(name, "journal-")) found.push_back(PathOf(name));
    }
    return found;
  }

  std::string PathOf(const std::string& name) const {
    return absl::StrCat(options_.directory, "/", name);
  }

  static void PushAndWait(ShardWorld& world, uint64_t step) {
    FinishAndWait(world, world.Begin("a", step), static_cast<float>(step + 1));
  }

  static void FinishAndWait(ShardWorld& world, std::unique_ptr<PendingPush> push, float x) {
    EXPECT_THAT(push->Add(ChunkOf(0, Values{3 * x, -4 * x, 1 / x})), IsOk());
    absl::Notification told;
    world.shard().store().FinishPush(std::move(push), [&told](const auto&) { told.Notify(); });
    told.WaitForNotification();
  }

  std::unique_ptr<FaultyFiles> files_;
  DurableOptions options_;
};

// Several servers take calls while they recover. The directory is not ready for an operator's
// checkpoint before the end of that, though the shard saves one of its own.
TEST_F(ReplayTest, AnOperatorSavesNothingBeforeRecoveryHasEnded) {
  files_ = std::make_unique<FaultyFiles>();
  Life life(options_, *files_, Sync(1));
  life.world().Start({"a"});
  Shard& shard = life.world().shard();
  OperatorCommands commands(shard, &life.directory());
  const auto save = [&commands] {
    absl::Notification done;
    absl::StatusOr<SavedCheckpoint> result;
    commands.SaveCheckpoint([&](absl::StatusOr<SavedCheckpoint> saved) {
      result = std::move(saved);
      done.Notify();
    });
    done.WaitForNotification();
    return result;
  };
  shard.durability().BeginRecovery();
  shard.durability().BeginIncarnation({});
  EXPECT_THAT(save(), HasCode(absl::StatusCode::kUnavailable, HasSubstr("try again")));
  shard.durability().EndRecovery();
  EXPECT_THAT(save(), IsOk());
}

// Stale ones, of SGD with momentum: the new server has neither the gaps nor the decays.
TEST_F(ReplayTest, StepsOfStaleGradientsComeOutWithTheSameBits) {
  ShardOptions async = Async(1);
  async.consistency.gap_aware = async.consistency.ordered_momentum = RuleChoice::kOn;
  files_ = std::make_unique<FaultyFiles>();
  Values made;
  {
    SgdOptions sgd = PlainSgd();
    sgd.momentum = 0.9;
    Life life(options_, *files_, async, nullptr, ParametersOnly(3), sgd);
    life.world().Start({"a"});
    for (const uint64_t step : {0, 0, 1, 3, 0}) PushAndWait(life.world(), step);
    made = life.world().Parameters();
  }
  EXPECT_THAT(Restart(async), IsOkAndHolds(made));
}

// A program with a scheduler: the new server goes on with its latest options, and shows them.
TEST_F(ReplayTest, StepsWithOptionsOfTheProgramComeOutWithTheSameBits) {
  files_ = std::make_unique<FaultyFiles>();
  Values made;
  {
    Life life(options_, *files_, Async(1), nullptr, ParametersOnly(3), AdamOptions());
    life.world().Start({"a"});
    for (const double rate : {1e-3, 5e-4, 25e-5}) {
      AdamOptions changed;
      changed.learning_rate = rate;
      changed.beta1 = 0.9 - rate;
      PushHeader header = life.world().NextHeader("a", 0);
      header.options = ShareOptions({{0, changed}});
      TestStart start = life.world().BeginAs(header);
      ASSERT_TRUE(start.let_in());
      FinishAndWait(life.world(), start.Take(), 1);
    }
    made = life.world().Parameters();
    EXPECT_EQ(life.world().shard().Describe().learning_rate, 25e-5);
  }
  for (const std::string from : {"journal", "checkpoint"}) {
    auto directory = DurableDirectory::Open(options_, *files_);
    ASSERT_THAT(directory, IsOk());
    ShardOptions again = Async(1);
    again.incarnation = (*directory)->incarnation();
    ShardWorld world(again);
    ASSERT_THAT(Recover(**directory, world.shard()), IsOk());
    EXPECT_EQ(world.Parameters(), made) << from;
    EXPECT_EQ(world.shard().Describe().learning_rate, 25e-5) << from;
    EXPECT_THAT(SaveCheckpointAndWait(world.shard(), **directory), IsOk());
  }
}

// The new server has other workers, or none yet.
TEST_F(ReplayTest, StepsOfAdamWithDividedMomentumComeOutWithTheSameBits) {
  ShardOptions async = Async(1);
  async.consistency.divided_momentum = RuleChoice::kOn;
  files_ = std::make_unique<FaultyFiles>();
  Values made;
  {
    Life life(options_, *files_, async, nullptr, ParametersOnly(3), AdamOptions());
    life.world().Start({"a", "b"});
    for (const uint64_t step : {0, 0, 1, 3, 0}) PushAndWait(life.world(), step);
    made = life.world().Parameters();
  }
  EXPECT_THAT(Restart(async), IsOkAndHolds(made));
}

TEST_F(ReplayTest, StepsAreMadeAgainWithTheirOwnTermsAndNotWithTheFlagsOfTheNewServer) {
  ShardOptions first = Sync(1);
  first.guards.clip_norm = 0.5;
  first.consistency.reduction = Reduction::kWeightedMean;
  first.schedule.warmup_steps = 10;
  ShardOptions clips_more = first;
  clips_more.guards.clip_norm = 0.25;
  ShardOptions clips_not = first;
  clips_not.guards.clip_norm.reset();
  ShardOptions sums = first;
  sums.consistency.reduction = Reduction::kSum;
  ShardOptions without_warmup = first;
  without_warmup.schedule.warmup_steps = 0;
  const std::pair<const char*, ShardOptions> others[] = {
      {"clips more", clips_more}, {"clips not", clips_not},      {"sums", sums},
      {"another mode", Async(3)}, {"no warmup", without_warmup},
  };
  for (const auto& [what, second] : others) {
    const Values made = Train(first);
    EXPECT_THAT(Restart(second), IsOkAndHolds(made)) << what;
  }
}

TEST_F(ReplayTest, AStepThatComesOutWithOtherBitsIsRefusedAndNothingIsChanged) {
  const Values made = Train(Sync(1));
  const auto third = [](StepRecord* record) {
    if (record->step == Step(3)) record->checksum ^= 1;
  };
  Rewrite(third);
  EXPECT_THAT(
      Restart(Sync(1)),
      HasCode(absl::StatusCode::kFailedPrecondition,
              AllOf(HasSubstr("/journal-000001-"), HasSubstr("step 3 comes out with other bits"),
                    HasSubstr("start the server that wrote it"),
                    HasSubstr("continue from step 0 without the later steps"))));
  // The server that made the steps finds what it left.
  Rewrite(third);
  EXPECT_THAT(Restart(Sync(1)), IsOkAndHolds(made));
}

TEST_F(ReplayTest, EvenTheFirstStepThatComesOutOtherwiseIsRefused) {
  Train(Sync(1));
  Rewrite([](StepRecord* record) { record->terms.learning_rates[0] = 0.999999; });
  EXPECT_THAT(Restart(Sync(1)), HasCode(absl::StatusCode::kFailedPrecondition,
                                        HasSubstr("step 1 comes out with other bits")));
}

TEST_F(ReplayTest, WithoutItsJournalAServerContinuesFromTheCheckpoint) {
  Train(Sync(1));
  Rewrite([](StepRecord* record) { record->checksum ^= 1; });
  ASSERT_FALSE(Restart(Sync(1)).ok());
  for (const std::string& path : JournalFiles()) ASSERT_THAT(files_->Remove(path), IsOk());
  ASSERT_THAT(files_->Remove(PathOf("kept")), IsOk());
  EXPECT_THAT(Restart(Sync(1)), IsOkAndHolds(Values{0, 0, 0}));
}

TEST_F(ReplayTest, StepsOfFormat1AreRefused) {
  Train(Sync(1));
  RewriteInFormat1();
  EXPECT_THAT(Restart(Sync(1)), HasCode(absl::StatusCode::kFailedPrecondition,
                                        AllOf(HasSubstr("step 1 is of format 1"),
                                              HasSubstr("start the server that wrote it"))));
}

TEST_F(ReplayTest, StepsOfFormat1ThatAreInTheCheckpointAreNotNeeded) {
  const Values made = Train(Sync(1), false);
  RewriteInFormat1();
  EXPECT_THAT(Restart(Sync(1)), IsOkAndHolds(made));
}

TEST_F(ReplayTest, AFormatThatIsNotKnownIsRefused) {
  Train(Sync(1));
  Rewrite([](StepRecord*) {}, '4');
  EXPECT_THAT(Restart(Sync(1)),
              HasCode(absl::StatusCode::kFailedPrecondition,
                      AllOf(HasSubstr("/journal-000001-"), HasSubstr("has the format \"4\""))));
}

}  // namespace
}  // namespace sluice
