#include "server/durable/directory.h"

#include <atomic>
#include <memory>
#include <random>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/optional.h"
#include "common/base/clock.h"
#include "common/checkpoint/file_names.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/durable/save_checkpoint.h"
#include "server/shard/shard.h"
#include "tests/testing/durable/faulty_files.h"
#include "tests/testing/durable/hooked_files.h"
#include "tests/testing/durable/life.h"
#include "tests/testing/shard/shard_world.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

using ::testing::HasSubstr;
using ::testing::IsNull;

class DurableDirectoryTest : public ::testing::Test {
 protected:
  DurableDirectoryTest() { options_.directory = absl::StrCat(::testing::TempDir(), "directory"); }

  std::unique_ptr<DurableDirectory> Open() {
    auto directory = DurableDirectory::Open(options_, files_);
    EXPECT_THAT(directory, IsOk());
    return *std::move(directory);
  }

  // An incarnation of a server whose job has that id, and which no worker joins.
  void Live(const std::string& job_id) {
    ShardOptions options = Sync(1);
    options.job_id = job_id;
    const Life life(options_, files_, options);
  }

  FaultyFiles files_;
  DurableOptions options_;
};

TEST_F(DurableDirectoryTest, KnowsTheJobOfALifeThatEndedBeforeItsFirstCheckpoint) {
  EXPECT_EQ(Open()->job_id(), "");
  Live("job-7");
  Live("job-8");
  const auto directory = Open();
  EXPECT_EQ(directory->job_id(), "job-8");
  EXPECT_EQ(directory->incarnation(), Incarnation(3));
  EXPECT_THAT(directory->TakeRestored(), IsNull());
}

TEST_F(DurableDirectoryTest, ALifeBeginsThoughThereIsNoRoomForTheNameOfItsJob) {
  files_.SetRoom(0);
  Live("job-7");
  files_.SetRoom(absl::nullopt);
  const auto directory = Open();
  EXPECT_EQ(directory->job_id(), "");
  EXPECT_EQ(directory->incarnation(), Incarnation(2));
}

TEST_F(DurableDirectoryTest, KnowsWhenItSavedACheckpointLast) {
  Life life(options_, files_);
  EXPECT_FALSE(life.directory().saver().last_saved().has_value());
  life.world().Start({"a"});
  const absl::Time before = RealClock().Now();
  ASSERT_THAT(SaveCheckpointAndWait(life.world().shard(), life.directory()), IsOk());
  const absl::optional<LastSaved> saved = life.directory().saver().last_saved();
  ASSERT_TRUE(saved.has_value());
  EXPECT_GE(saved->at, before);
  EXPECT_LE(saved->at, RealClock().Now());
  files_.SetRoom(0);
  EXPECT_FALSE(SaveCheckpointAndWait(life.world().shard(), life.directory()).ok());
  EXPECT_EQ(life.directory().saver().last_saved()->at, saved->at);
}

// The names of a killed server's files are synced before the next one removes any: else the machine
// could lose the checkpoint that was found, and not what was removed because of it.
TEST_F(DurableDirectoryTest, NoIncarnationHasTheNumberOfAnotherWhateverACrashLosesOfWhatWasFound) {
  for (int seed = 0; seed < 64; ++seed) {
    std::mt19937_64 random(seed);
    FaultyFiles disk;
    {
      std::atomic<bool> renamed{false};
      HookedFiles files(disk, [&](FileOperation operation, const std::string&) {
        if (operation == FileOperation::kRename) renamed = true;
        const bool killed = renamed && operation == FileOperation::kSyncDirectory;
        return killed ? absl::UnavailableError("killed") : absl::OkStatus();
      });
      Life first(options_, files);
      first.world().Start({"a"});
      EXPECT_THAT(SaveCheckpointAndWait(first.world().shard(), first.directory()),
                  HasCode(absl::StatusCode::kUnavailable, ::testing::_));
    }
    EXPECT_EQ(DurableDirectory::Open(options_, disk).value()->incarnation(), Incarnation(2));
    disk.Crash(random);
    EXPECT_EQ(DurableDirectory::Open(options_, disk).value()->incarnation(), Incarnation(2))
        << "seed " << seed;
  }
}

// Otherwise what the later server's workers were told would silently be undone.
TEST_F(DurableDirectoryTest, IsRefusedIfALaterServerContinuedWithoutTheNewestCheckpoint) {
  {
    Life first(options_, files_);
    first.world().Start({"a"});
    for (uint64_t step = 0; step < 2; ++step) {
      EXPECT_THAT(first.world().Push("a", step, {1, 1, 1}), IsOk());
      EXPECT_THAT(SaveCheckpointAndWait(first.world().shard(), first.directory()), IsOk());
    }
  }
  const std::string newest =
      absl::StrCat(options_.directory, "/", CheckpointName{Incarnation(1), Step(2)}.FileName());
  const std::string elsewhere = absl::StrCat(options_.directory, "/elsewhere");
  ASSERT_THAT(files_.Rename(newest, elsewhere), IsOk());
  Live("job-7");
  ASSERT_THAT(files_.Rename(elsewhere, newest), IsOk());
  EXPECT_THAT(DurableDirectory::Open(options_, files_),
              HasCode(absl::StatusCode::kDataLoss,
                      HasSubstr("is of step 2, but a later server continued from step 1")));
}

// The first of two events, which other threads report.
class FirstEvent {
 public:
  void Report(const std::string& what) {
    absl::MutexLock lock(&mu_);
    if (!first_.has_value()) first_ = what;
  }
  std::string Await() {
    absl::MutexLock lock(&mu_);
    const auto known = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return first_.has_value(); };
    mu_.Await(absl::Condition(&known));
    return *first_;
  }

 private:
  absl::Mutex mu_;
  absl::optional<std::string> first_ ABSL_GUARDED_BY(mu_);
};

TEST_F(DurableDirectoryTest, WithAJournalAFailedSyncOfACheckpointsNameIsFatalAndNotRepeated) {
  options_.durability = Durability::kJournal;
  std::atomic<bool> renamed{false};
  std::atomic<int> syncs{0};
  HookedFiles files(files_, [&](FileOperation operation, const std::string& path) {
    if (operation == FileOperation::kRename && absl::StrContains(path, ".safetensors"))
      renamed = true;
    const bool fails = renamed && operation == FileOperation::kSyncDirectory && ++syncs == 1;
    return fails ? absl::UnavailableError("Input/output error") : absl::OkStatus();
  });
  const auto first = std::make_shared<FirstEvent>();
  {
    Life life(options_, files, Sync(1), [first](const auto&) { first->Report("fatal"); });
    life.world().Start({"a"});
    auto push = life.world().Begin("a", 0);
    ASSERT_THAT(push->Add(ChunkOf(0, Values{1, 1, 1})), IsOk());
    life.world().shard().store().FinishPush(std::move(push),
                                            [first](const auto&) { first->Report("answered"); });
    EXPECT_EQ(first->Await(), "fatal");
  }
  EXPECT_LE(syncs, 2);  // that of the checkpoint, and perhaps that of the journal's segment
}

}  // namespace
}  // namespace sluice
