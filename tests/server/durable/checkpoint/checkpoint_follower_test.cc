#include "server/durable/checkpoint/checkpoint_follower.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "common/checkpoint/file_names.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/durable/checkpoints.h"
#include "tests/testing/durable/faulty_files.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

std::string PathOf(uint64_t incarnation, uint64_t step) {
  return "d/" + CheckpointName{Incarnation(incarnation), Step(step)}.FileName();
}

class CheckpointFollowerTest : public ::testing::Test {
 protected:
  void Save(const ShardCheckpoint& checkpoint) { ASSERT_THAT(store_.Save(checkpoint), IsOk()); }
  void Save(uint64_t step, uint64_t incarnation = 1) { Save(CheckpointAt(step, incarnation)); }
  void SaveLast(uint64_t step) {
    ShardCheckpoint checkpoint = CheckpointAt(step);
    checkpoint.ended = true;
    Save(checkpoint);
  }

  void Damage(uint64_t step) { files_.BytesOf(PathOf(1, step))[100] ^= 1; }

  // "step 10 of incarnation 1", "nothing", or the error.
  std::string Next(uint64_t every = 1, bool finally = false) {
    const auto next = follower_.Next(every, finally);
    if (!next.ok()) return next.status().ToString();
    if (*next == nullptr) return "nothing";
    const ShardCheckpoint& checkpoint = (*next)->checkpoint;
    const uint64_t incarnation = checkpoint.incarnations.current().value();
    EXPECT_EQ((*next)->place.file, PathOf(incarnation, checkpoint.step.value()));
    EXPECT_EQ(checkpoint.parameters->values.span()[0], static_cast<float>(checkpoint.step.value()));
    return absl::StrCat("step ", checkpoint.step.value(), " of incarnation ", incarnation);
  }

  FaultyFiles files_;
  CheckpointStore store_{files_, "d", 2};
  CheckpointFollower follower_{files_, "d"};
};

TEST_F(CheckpointFollowerTest, GivesEachCheckpointOnceTheOldestFirst) {
  EXPECT_EQ(Next(), "nothing");
  Save(10);
  Save(20);
  EXPECT_EQ(Next(), "step 10 of incarnation 1");
  EXPECT_EQ(Next(), "step 20 of incarnation 1");
  EXPECT_EQ(Next(), "nothing");
  Save(30);
  EXPECT_EQ(Next(), "step 30 of incarnation 1");
}

TEST_F(CheckpointFollowerTest, PassesOverWhatWasRemovedBeforeItCouldBeRead) {
  for (uint64_t step : {10, 20, 30, 40}) Save(step);  // two of them are kept
  EXPECT_EQ(Next(), "step 30 of incarnation 1");
  EXPECT_EQ(Next(), "step 40 of incarnation 1");
}

TEST_F(CheckpointFollowerTest, PassesOverWhatIsDamagedAndCountsItOnce) {
  Save(10);
  Save(20);
  Damage(20);
  EXPECT_EQ(Next(), "step 10 of incarnation 1");
  EXPECT_EQ(Next(), "nothing");
  EXPECT_EQ(Next(1, /*finally=*/true), "nothing");
  EXPECT_EQ(follower_.damaged(), 1u);
  Save(30);
  EXPECT_EQ(Next(), "step 30 of incarnation 1");
}

TEST_F(CheckpointFollowerTest, TakesTheNextStepThatIsFarEnough) {
  CheckpointStore all(files_, "d", 100);
  for (uint64_t step : {10, 20, 30, 40}) ASSERT_THAT(all.Save(CheckpointAt(step)), IsOk());
  EXPECT_EQ(Next(15), "step 10 of incarnation 1");
  EXPECT_EQ(Next(15), "step 30 of incarnation 1");
  EXPECT_EQ(Next(15), "nothing");
  EXPECT_EQ(Next(15, /*finally=*/true), "step 40 of incarnation 1");
  EXPECT_EQ(Next(15, /*finally=*/true), "nothing");
}

TEST_F(CheckpointFollowerTest, GoesOnWithALaterLifeWhereverThatBegins) {
  Save(20);
  EXPECT_EQ(Next(), "step 20 of incarnation 1");
  Save(15, 2);
  EXPECT_EQ(Next(100), "step 15 of incarnation 2");
  Save(20, 2);
  EXPECT_EQ(Next(), "step 20 of incarnation 2");
}

TEST_F(CheckpointFollowerTest, KnowsThatTrainingHadEndedFromTheNewest) {
  EXPECT_THAT(follower_.HasEnded(), IsOkAndHolds(false));
  Save(10);
  EXPECT_THAT(follower_.HasEnded(), IsOkAndHolds(false));
  SaveLast(20);
  EXPECT_THAT(follower_.HasEnded(), IsOkAndHolds(true));
  Save(20, 2);
  EXPECT_THAT(follower_.HasEnded(), IsOkAndHolds(false));
}

TEST_F(CheckpointFollowerTest, KnowsItOfACheckpointThatWasSavedAgain) {
  Save(10);
  EXPECT_EQ(Next(), "step 10 of incarnation 1");
  EXPECT_THAT(follower_.HasEnded(), IsOkAndHolds(false));
  SaveLast(10);
  EXPECT_THAT(follower_.HasEnded(), IsOkAndHolds(true));
  EXPECT_EQ(Next(), "nothing");
}

TEST_F(CheckpointFollowerTest, DoesNotKnowItFromOneThatIsDamaged) {
  SaveLast(10);
  Damage(10);
  EXPECT_THAT(follower_.HasEnded(), IsOkAndHolds(false));
}

TEST(CheckpointFollowerDirectoryTest, MayBeYetToBeMade) {
  CheckpointFollower follower(RealFileSystem(), ::testing::TempDir() + "yet_to_be_made");
  const auto next = follower.Next(1, false);
  ASSERT_THAT(next, IsOk());
  EXPECT_EQ(*next, nullptr);
  EXPECT_THAT(follower.HasEnded(), IsOkAndHolds(false));
}

}  // namespace
}  // namespace sluice
