#include "server/durable/directory.h"

#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/shard/shard.h"
#include "tests/testing/durable/faulty_files.h"
#include "tests/testing/durable/life.h"
#include "tests/testing/shard/shard_world.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

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

}  // namespace
}  // namespace sluice
