// The checkpoints of several servers that share a directory.

#include <memory>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "common/checkpoint/file_names.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/durable/checkpoint/checkpoint_follower.h"
#include "server/durable/checkpoint/checkpoint_store.h"
#include "server/durable/checkpoint/stripe_store.h"
#include "tests/testing/durable/faulty_files.h"
#include "tests/testing/durable/striped_checkpoints.h"
#include "tests/testing/seed.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

CheckpointName NameAt(uint64_t step) { return {Incarnation(1), Step(step)}; }

class StripedCheckpointTest : public ::testing::Test {
 protected:
  ShardCheckpoint At(uint64_t step) { return KnownCheckpoint(NameAt(step), layout_); }
  CheckpointSource Save(const ShardCheckpoint& checkpoint, uint32_t servers) {
    auto saved = SaveAsServers(files_, "d", checkpoint, servers);
    EXPECT_THAT(saved, IsOk());
    return *std::move(saved);
  }
  static std::string FileOf(const CheckpointName& name, uint32_t stripe, uint32_t stripes) {
    return StripeName{"job", name.incarnation, name.step, stripe, stripes}.FileName();
  }

  // Whether what is loaded has the bits that were saved.
  static void ExpectSame(const ShardCheckpoint& found, const ShardCheckpoint& expected) {
    EXPECT_EQ(found.step, expected.step);
    EXPECT_TRUE(SameBits(found.parameters->values.span(), expected.parameters->values.span()));
    ASSERT_EQ(found.slots.size(), expected.slots.size());
    for (size_t i = 0; i < found.slots.size(); ++i) {
      EXPECT_TRUE(SameBits(found.slots[i].values.span(), expected.slots[i].values.span()));
    }
  }

  FaultyFiles files_;
  CheckpointStore one_{files_, "d", 100};
  std::shared_ptr<const Layout> layout_ = LayoutOfSizes({1000, 1, 64, 700, 50});
};

TEST_F(StripedCheckpointTest, OneServerLoadsWhatAnyNumberHasSaved) {
  for (const uint32_t servers : {1, 2, 3, 5}) {
    const ShardCheckpoint checkpoint = At(9);
    const CheckpointSource source = Save(checkpoint, servers);
    const auto loaded = one_.Load(NameAt(9));
    ASSERT_THAT(loaded, IsOk());
    ExpectSame(*loaded, checkpoint);
    EXPECT_EQ(loaded->optimizer_steps, 7u);
    EXPECT_EQ(loaded->stripes, source.stripes);
  }
}

TEST_F(StripedCheckpointTest, TheFirstOfSeveralServersLoadsItsStripe) {
  for (const uint32_t servers : {1, 2, 3, 5}) {
    const ShardCheckpoint checkpoint = At(9);
    Save(checkpoint, servers);
    const auto loaded = CheckpointStore(files_, "d", 3, 2).Load(NameAt(9));
    ASSERT_THAT(loaded, IsOk());
    const StripeCheckpoint expected = StripeOf(checkpoint, {0, 2});
    EXPECT_TRUE(SameBits(loaded->parameters->values.span(), expected.parameters->values.span()));
  }
}

TEST_F(StripedCheckpointTest, NoticesEveryFlippedByteAndEveryCutOfItsFile) {
  Save(At(9), 3);
  std::string& bytes = files_.BytesOf("d/" + NameAt(9).FileName());
  const std::string whole = bytes;
  const auto refused =
      HasCode(absl::StatusCode::kDataLoss, HasSubstr("d/" + NameAt(9).FileName() + ": "));
  for (size_t i = 0; i < whole.size(); ++i) {
    bytes[i] ^= 4;
    EXPECT_THAT(one_.Load(NameAt(9)), refused) << "byte " << i;
    bytes = whole.substr(0, i);
    EXPECT_THAT(one_.Load(NameAt(9)), refused) << "cut to " << i;
    bytes = whole;
  }
  EXPECT_THAT(one_.Load(NameAt(9)), IsOk());
}

TEST_F(StripedCheckpointTest, LoadsTheOneBeforeIfAStripeIsMissing) {
  Save(At(10), 3);
  Save(At(20), 3);
  ASSERT_THAT(files_.Remove("d/" + FileOf(NameAt(20), 2, 3)), IsOk());
  const auto loaded = one_.LoadNewest();
  ASSERT_THAT(loaded, IsOk());
  ExpectSame(**loaded, At(10));
  EXPECT_EQ(one_.LoadableBefore(Step(30))->step, Step(10));
}

TEST_F(StripedCheckpointTest, StripesWithoutTheFirstServersFileAreNoCheckpoint) {
  Save(At(9), 3);
  ASSERT_THAT(files_.Remove("d/" + NameAt(9).FileName()), IsOk());
  const auto loaded = one_.LoadNewest();
  ASSERT_THAT(loaded, IsOk());
  EXPECT_EQ(*loaded, nullptr);
}

// An operator has copied the file of another job's checkpoint over this one's.
TEST_F(StripedCheckpointTest, RefusesTheFirstServersFileOfAnotherJob) {
  Save(At(9), 3);
  ShardCheckpoint other = At(9);
  other.job_id = "other";
  FaultyFiles elsewhere;
  ASSERT_THAT(SaveAsServers(elsewhere, "d", other, 3), IsOk());
  files_.BytesOf("d/" + NameAt(9).FileName()) = elsewhere.BytesOf("d/" + NameAt(9).FileName());
  EXPECT_THAT(one_.Load(NameAt(9)),
              HasCode(absl::StatusCode::kDataLoss, HasSubstr("\"sluice:job\" is \"job\", and the "
                                                             "checkpoint expects \"other\"")));
}

// Whenever the machine stops and whatever it loses then: the newest file of the first server is
// that of a whole checkpoint, although each server removes what it does not need.
TEST_F(StripedCheckpointTest, WhateverACrashLosesTheNewestIsWhole) {
  constexpr uint64_t kSeeds = 1500;
  SCOPED_TRACE(HowToRepeat());
  layout_ = LayoutOfSizes({130, 70});
  std::set<uint64_t> loaded_steps;
  for (uint64_t seed = RunSeed(); seed < RunSeed() + kSeeds; ++seed) {
    std::mt19937_64 random(seed);
    FaultyFiles files;
    files.StopAfter(random() % 300);
    int64_t saved = -1;
    int64_t tried = -1;
    for (int64_t step = 0; tried == saved; ++step) {
      tried = step;
      if (SaveAsServers(files, "d", At(step), 3, /*keep=*/2).ok()) saved = step;
      const auto whole = CheckpointStore(files, "d", 2, 3).List();
      for (const uint32_t stripe : {2, 1, 0}) {
        StripeStore(files, "d", {stripe, 3}).RemoveOthers(*whole);
      }
    }
    files.Crash(random);
    const auto newest = CheckpointStore(files, "d", 2).LoadNewest();
    ASSERT_THAT(newest, IsOk()) << "seed " << seed;
    const int64_t loaded = *newest == nullptr ? -1 : static_cast<int64_t>((*newest)->step.value());
    ASSERT_GE(loaded, saved) << "seed " << seed;
    ASSERT_LE(loaded, tried) << "seed " << seed;
    if (loaded >= 0) ExpectSame(**newest, At(loaded));
    loaded_steps.insert(loaded + 1);
  }
  EXPECT_GT(loaded_steps.size(), 4u);
}

// ---- A process that follows the directory ----

TEST_F(StripedCheckpointTest, IsFollowedOnceTheFirstServersFileIsThere) {
  CheckpointFollower follower(files_, "d");
  const CheckpointSource source = Save(At(9), 3);
  const std::string first = "d/" + NameAt(9).FileName();
  ASSERT_THAT(files_.Rename(first, first + ".unfinished"), IsOk());
  EXPECT_EQ(*follower.Next(1, true), nullptr);
  ASSERT_THAT(files_.Rename(first + ".unfinished", first), IsOk());
  const auto next = follower.Next(1, true);
  ASSERT_THAT(next, IsOk());
  ExpectSame((*next)->checkpoint, At(9));
  EXPECT_THAT(follower.HasEnded(), IsOkAndHolds(false));
}

TEST_F(StripedCheckpointTest, CountsAsDamagedForAFollowerIfAStripeIsMissing) {
  CheckpointFollower follower(files_, "d");
  Save(At(9), 3);
  ASSERT_THAT(files_.Remove("d/" + FileOf(NameAt(9), 1, 3)), IsOk());
  EXPECT_EQ(*follower.Next(1, true), nullptr);
  EXPECT_EQ(follower.damaged(), 1u);
}

TEST_F(StripedCheckpointTest, IsFollowedInTheDirectoriesOfSeveralServers) {
  CheckpointFollower follower(files_, "d", {"e", "f"});
  Save(At(9), 3);
  const std::string second = FileOf(NameAt(9), 1, 3);
  const std::string third = FileOf(NameAt(9), 2, 3);
  ASSERT_THAT(files_.Rename("d/" + second, "f/" + second), IsOk());
  ASSERT_THAT(files_.Rename("d/" + third, "e/" + third), IsOk());
  const auto next = follower.Next(1, true);
  ASSERT_THAT(next, IsOk());
  ASSERT_NE(*next, nullptr);
  ExpectSame((*next)->checkpoint, At(9));
  EXPECT_EQ((*next)->place.file, "d/" + NameAt(9).FileName());
  EXPECT_THAT((*next)->place.directories, ElementsAre("d", "e", "f"));
}

// Removes the first server's file, and then a stripe, when a follower opens that stripe.
class RemovedWhileRead final : public FileSystem {
 public:
  RemovedWhileRead(FileSystem& files, std::string first, std::string stripe)
      : files_(files), first_(std::move(first)), stripe_(std::move(stripe)) {}

  absl::StatusOr<std::unique_ptr<ReadableFile>> Open(const std::string& path) override {
    if (path == stripe_) {
      EXPECT_THAT(files_.Remove(first_), IsOk());
      EXPECT_THAT(files_.Remove(stripe_), IsOk());
    }
    return files_.Open(path);
  }
  absl::StatusOr<std::unique_ptr<WritableFile>> Create(const std::string& path) override {
    return files_.Create(path);
  }
  absl::StatusOr<std::vector<std::string>> List(const std::string& directory) override {
    return files_.List(directory);
  }
  absl::Status Rename(const std::string& from, const std::string& to) override {
    return files_.Rename(from, to);
  }
  absl::Status Remove(const std::string& path) override { return files_.Remove(path); }
  absl::Status SyncDirectory(const std::string& directory) override {
    return files_.SyncDirectory(directory);
  }

 private:
  FileSystem& files_;
  const std::string first_;
  const std::string stripe_;
};

TEST_F(StripedCheckpointTest, IsNotDamagedForAFollowerIfItWasRemovedMeanwhile) {
  Save(At(9), 3);
  RemovedWhileRead files(files_, "d/" + NameAt(9).FileName(), "d/" + FileOf(NameAt(9), 1, 3));
  CheckpointFollower follower(files, "d");
  EXPECT_EQ(*follower.Next(1, true), nullptr);
  EXPECT_EQ(follower.damaged(), 0u);
}

}  // namespace
}  // namespace sluice
