#include "server/durable/checkpoint/checkpoint_store.h"

#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/checkpoint/file_names.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/durable/checkpoints.h"
#include "tests/testing/durable/faulty_files.h"
#include "tests/testing/durable/hooked_files.h"
#include "tests/testing/seed.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

std::string PathOf(uint64_t incarnation, uint64_t step) {
  return "d/" + CheckpointName{Incarnation(incarnation), Step(step)}.FileName();
}

class CheckpointStoreTest : public ::testing::Test {
 protected:
  // The step of what is loaded; −1 if there is nothing.
  absl::StatusOr<int64_t> Newest() {
    const auto checkpoint = store_.LoadNewest();
    if (!checkpoint.ok()) return checkpoint.status();
    if (*checkpoint == nullptr) return -1;
    EXPECT_EQ((*checkpoint)->parameters->values.span()[0],
              static_cast<float>((*checkpoint)->step.value()));
    return static_cast<int64_t>((*checkpoint)->step.value());
  }

  FaultyFiles files_;
  CheckpointStore store_{files_, "d", 3};
};

TEST_F(CheckpointStoreTest, HasNothingAtFirst) { EXPECT_THAT(Newest(), IsOkAndHolds(-1)); }

TEST_F(CheckpointStoreTest, NamesThemByIncarnationAndStep) {
  EXPECT_THAT(store_.Save(CheckpointAt(7, 2)),
              IsOkAndHolds("d/checkpoint-000002-000000000007.safetensors"));
}

TEST_F(CheckpointStoreTest, KeepsTheNewestOfTheLatestLife) {
  for (uint64_t step : {10, 20, 30}) ASSERT_THAT(store_.Save(CheckpointAt(step)), IsOk());
  for (uint64_t step : {5, 15}) ASSERT_THAT(store_.Save(CheckpointAt(step, 2)), IsOk());
  EXPECT_THAT(files_.List("d").value(),
              ElementsAre(CheckpointName{Incarnation(1), Step(30)}.FileName(),
                          CheckpointName{Incarnation(2), Step(5)}.FileName(),
                          CheckpointName{Incarnation(2), Step(15)}.FileName()));
  EXPECT_THAT(Newest(), IsOkAndHolds(15));
}

// The steps of the checkpoints that are there, the oldest first.
std::vector<uint64_t> StepsIn(const CheckpointStore& store) {
  std::vector<uint64_t> steps;
  const auto names = store.List();
  for (const CheckpointName& name : *names) steps.push_back(name.step.value());
  return {steps.rbegin(), steps.rend()};
}

ShardCheckpoint SuspectAt(uint64_t step, uint64_t since) {
  ShardCheckpoint checkpoint = CheckpointAt(step);
  checkpoint.suspect_since = Step(since);
  return checkpoint;
}

TEST_F(CheckpointStoreTest, KeepsTheNewestFromBeforeTheSuspectStepsUntilTheyAreOver) {
  for (uint64_t step : {10, 20, 30}) ASSERT_THAT(store_.Save(CheckpointAt(step)), IsOk());
  for (uint64_t step : {40, 50, 60}) ASSERT_THAT(store_.Save(SuspectAt(step, 25)), IsOk());
  EXPECT_THAT(StepsIn(store_), ElementsAre(20, 40, 50, 60));
  ASSERT_THAT(store_.Save(SuspectAt(70, 25)), IsOk());
  EXPECT_THAT(StepsIn(store_), ElementsAre(20, 50, 60, 70));
  ASSERT_THAT(store_.Save(CheckpointAt(80)), IsOk());
  EXPECT_THAT(StepsIn(store_), ElementsAre(60, 70, 80));
}

TEST_F(CheckpointStoreTest, KeepsOneFromBeforeAlsoForALaterLife) {
  for (uint64_t step : {10, 20, 30}) ASSERT_THAT(store_.Save(SuspectAt(step, 15)), IsOk());
  for (uint64_t step : {30, 40, 50}) {
    ShardCheckpoint checkpoint = CheckpointAt(step, 2);
    checkpoint.suspect_since = Step(15);
    ASSERT_THAT(store_.Save(checkpoint), IsOk());
  }
  EXPECT_THAT(StepsIn(store_), ElementsAre(10, 30, 40, 50));
}

// The loss of a step is that of the parameters before it.
TEST_F(CheckpointStoreTest, TheParametersOfTheFirstBadLossAreNotFromBefore) {
  for (uint64_t step : {10, 11, 12}) ASSERT_THAT(store_.Save(CheckpointAt(step)), IsOk());
  EXPECT_EQ(store_.NewestBefore(Step(13))->step, Step(11));
  EXPECT_EQ(store_.NewestBefore(Step(12))->step, Step(10));
  EXPECT_EQ(store_.NewestBefore(Step(11)), absl::nullopt);
}

TEST_F(CheckpointStoreTest, FindsTheNewestFromBeforeThatIsNotDamaged) {
  for (uint64_t step : {10, 20, 30}) ASSERT_THAT(store_.Save(CheckpointAt(step)), IsOk());
  EXPECT_EQ(store_.LoadableBefore(Step(22))->step, Step(20));
  files_.BytesOf(PathOf(1, 20))[100] ^= 1;
  EXPECT_EQ(store_.LoadableBefore(Step(22))->step, Step(10));
  files_.BytesOf(PathOf(1, 10))[100] ^= 1;
  EXPECT_EQ(store_.LoadableBefore(Step(22)), absl::nullopt);
}

TEST_F(CheckpointStoreTest, RemovesTheNewerOnesForALifeThatGoesBack) {
  for (uint64_t step : {10, 20}) ASSERT_THAT(store_.Save(CheckpointAt(step)), IsOk());
  ASSERT_THAT(store_.Save(CheckpointAt(20, 2)), IsOk());
  const CheckpointName first = *store_.NewestBefore(Step(12));
  EXPECT_THAT(store_.CheckIsThere(first), IsOk());
  ASSERT_THAT(store_.RemoveNewer(first), IsOk());
  EXPECT_THAT(StepsIn(store_), ElementsAre(10));
  EXPECT_THAT(Newest(), IsOkAndHolds(10));
  ASSERT_THAT(files_.Remove(PathOf(1, 10)), IsOk());
  EXPECT_THAT(store_.CheckIsThere(first),
              HasCode(absl::StatusCode::kNotFound, HasSubstr("is not there any more")));
}

TEST_F(CheckpointStoreTest, LoadsThePreviousOneInPlaceOfADamagedOne) {
  for (uint64_t step : {10, 20}) ASSERT_THAT(store_.Save(CheckpointAt(step)), IsOk());
  files_.BytesOf(PathOf(1, 20))[100] ^= 1;
  EXPECT_THAT(Newest(), IsOkAndHolds(10));
}

TEST_F(CheckpointStoreTest, RefusesToBeginAnewIfAllAreDamaged) {
  for (uint64_t step : {10, 20}) {
    ASSERT_THAT(store_.Save(CheckpointAt(step)), IsOk());
    files_.BytesOf(PathOf(1, step)).pop_back();
  }
  EXPECT_THAT(Newest(), HasCode(absl::StatusCode::kDataLoss,
                                AllOf(HasSubstr(PathOf(1, 10)), HasSubstr(PathOf(1, 20)),
                                      HasSubstr("name another directory"))));
}

TEST_F(CheckpointStoreTest, RefusesOneUnderAnothersName) {
  ASSERT_THAT(store_.Save(CheckpointAt(10)), IsOk());
  ASSERT_THAT(files_.Rename(PathOf(1, 10), PathOf(1, 11)), IsOk());
  EXPECT_THAT(Newest(), HasCode(absl::StatusCode::kDataLoss, HasSubstr("not what its name says")));
}

TEST_F(CheckpointStoreTest, LeavesFilesAloneThatItWouldNameOtherwise) {
  ASSERT_THAT(store_.Save(CheckpointAt(10)), IsOk());
  for (const char* name : {"1-20", "000001-20", "+00001-000000000020", "000001- 00000000020"}) {
    ASSERT_THAT(files_.Create(absl::StrCat("d/checkpoint-", name, ".safetensors")), IsOk());
  }
  EXPECT_THAT(Newest(), IsOkAndHolds(10));
}

TEST_F(CheckpointStoreTest, AFullDiskLeavesWhatWasThere) {
  ASSERT_THAT(store_.Save(CheckpointAt(10)), IsOk());
  files_.SetRoom(50);
  EXPECT_THAT(store_.Save(CheckpointAt(20)),
              HasCode(absl::StatusCode::kResourceExhausted, HasSubstr("No space left")));
  EXPECT_THAT(files_.List("d").value(), SizeIs(1));
  EXPECT_THAT(Newest(), IsOkAndHolds(10));
  files_.SetRoom(absl::nullopt);
  EXPECT_THAT(store_.Save(CheckpointAt(20)), IsOk());
  EXPECT_THAT(Newest(), IsOkAndHolds(20));
}

TEST_F(CheckpointStoreTest, AFailedSyncOfTheDirectoryIsFinal) {
  for (uint64_t step : {10, 20, 30}) ASSERT_THAT(store_.Save(CheckpointAt(step)), IsOk());
  int syncs = 0;
  HookedFiles files(files_, [&syncs](FileOperation operation, const std::string&) {
    const bool fails = operation == FileOperation::kSyncDirectory && ++syncs == 1;
    return fails ? absl::UnavailableError("cannot sync d: Input/output error") : absl::OkStatus();
  });
  CheckpointStore store(files, "d", 3);
  for (uint64_t step : {40, 50}) {
    EXPECT_THAT(store.Save(CheckpointAt(step)),
                HasCode(absl::StatusCode::kUnavailable,
                        AllOf(HasSubstr("Input/output error"), HasSubstr("started again"))));
    EXPECT_TRUE(store.sync_failed());
  }
  EXPECT_EQ(syncs, 1);
  // Those that are known to be on the disk are not removed.
  files_.LoseUnsynced();
  EXPECT_THAT(files_.List("d").value(), SizeIs(3));
  EXPECT_THAT(Newest(), IsOkAndHolds(30));
}

TEST_F(CheckpointStoreTest, RemovesWhatAnInterruptedSaveLeft) {
  ASSERT_THAT(files_.Create(PathOf(1, 10) + ".unfinished"), IsOk());
  EXPECT_THAT(Newest(), IsOkAndHolds(-1));
  EXPECT_THAT(store_.RemoveUnfinished(), IsOk());
  EXPECT_THAT(files_.List("d").value(), IsEmpty());
}

// Whenever the machine stops and whatever it loses then: what was saved is there, and nothing else
// is taken for a checkpoint.
TEST_F(CheckpointStoreTest, WhateverACrashLosesWhatWasSavedIsThere) {
  constexpr uint64_t kSeeds = 10000;
  SCOPED_TRACE(HowToRepeat());
  int unfinished = 0;
  for (uint64_t seed = RunSeed(); seed < RunSeed() + kSeeds; ++seed) {
    std::mt19937_64 random(seed);
    FaultyFiles files;
    CheckpointStore store(files, "d", 2);
    files.StopAfter(random() % 30);
    int64_t saved = -1;
    int64_t tried = -1;
    for (int64_t step = 0; tried == saved; ++step) {
      tried = step;
      if (store.Save(CheckpointAt(step)).ok()) saved = step;
    }
    files.Crash(random);
    const auto checkpoint = store.LoadNewest();
    ASSERT_THAT(checkpoint, IsOk()) << "seed " << seed;
    const int64_t loaded =
        *checkpoint == nullptr ? -1 : static_cast<int64_t>((*checkpoint)->step.value());
    ASSERT_GE(loaded, saved) << "seed " << seed;
    ASSERT_LE(loaded, tried) << "seed " << seed;
    if (loaded > saved) ++unfinished;
  }
  EXPECT_GT(unfinished, 0);  // renamed, but not known to be
}

}  // namespace
}  // namespace sluice
