// The directories of several servers, which are one here: the first server's DurableDirectory, and
// the others' StripeDirectory.

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "common/checkpoint/file_names.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/durable/directory.h"
#include "server/durable/stripe_directory.h"
#include "tests/testing/durable/faulty_files.h"
#include "tests/testing/durable/striped_checkpoints.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsNull;
using ::testing::NotNull;

constexpr uint32_t kServers = 3;

class StripedDirectoryTest : public ::testing::Test {
 protected:
  StripedDirectoryTest() {
    options_.directory = absl::StrCat(::testing::TempDir(), "striped");
    options_.keep_checkpoints = 2;
  }

  std::unique_ptr<DurableDirectory> Open(uint32_t servers = kServers) {
    options_.servers = servers;
    auto directory = DurableDirectory::Open(options_, files_);
    EXPECT_THAT(directory, IsOk());
    return *std::move(directory);
  }
  std::unique_ptr<StripeDirectory> OpenOther(uint32_t stripe) {
    auto directory =
        StripeDirectory::Open(files_, options_.directory, {stripe, kServers}, options_.durability);
    EXPECT_THAT(directory, IsOk());
    return *std::move(directory);
  }

  ShardCheckpoint At(uint64_t step) const {
    return KnownCheckpoint({Incarnation(1), Step(step)}, layout_);
  }
  std::string FileOf(uint64_t step, uint32_t stripe) const {
    return StripeName{"job", Incarnation(1), Step(step), stripe, kServers}.FileName();
  }
  bool IsThere(const std::string& name) {
    return files_.Open(absl::StrCat(options_.directory, "/", name)).ok();
  }

  // The other servers save their stripes, or server 2 fails with that error; then the first does.
  absl::Status Save(DurableDirectory& directory, uint64_t step,
                    const absl::Status& failed = absl::OkStatus()) {
    ShardCheckpoint checkpoint = At(step);
    checkpoint.elsewhere = std::make_shared<SavedStripes>(kServers - 1);
    for (uint32_t stripe = 1; stripe < kServers; ++stripe) {
      absl::StatusOr<uint64_t> saved = OpenOther(stripe)->Save(
          {"job", Incarnation(1), Step(step)}, *layout_, StripeOf(checkpoint, {stripe, kServers}));
      if (stripe == 2 && !failed.ok()) saved = failed;
      checkpoint.elsewhere->Set(stripe, saved);
    }
    StripeCheckpoint own = StripeOf(checkpoint, {0, kServers});
    checkpoint.parameters = own.parameters;
    checkpoint.slots = std::move(own.slots);
    absl::Status result;
    absl::Notification done;
    directory.saver().Save(std::make_shared<const ShardCheckpoint>(std::move(checkpoint)),
                           [&](absl::StatusOr<SavedCheckpoint> saved) {
                             result = std::move(saved).status();
                             done.Notify();
                           });
    done.WaitForNotification();
    return result;
  }

  FaultyFiles files_;
  DurableOptions options_;
  const std::shared_ptr<const Layout> layout_ = LayoutOfSizes({1000, 1, 64, 700, 50});
};

TEST_F(StripedDirectoryTest, IsRestoredByTheFirstOfAnyNumberOfServers) {
  ASSERT_THAT(Save(*Open(), 10), IsOk());
  for (const uint32_t servers : {1, 2, 3, 5}) {
    const auto directory = Open(servers);
    ASSERT_THAT(directory->restored(), NotNull());
    const StripeCheckpoint expected = StripeOf(At(10), {0, servers});
    const ShardCheckpoint& restored = *directory->restored();
    EXPECT_EQ(restored.step, Step(10));
    EXPECT_EQ(restored.stripes.size(), kServers);
    EXPECT_TRUE(SameBits(restored.parameters->values.span(), expected.parameters->values.span()));
    ASSERT_EQ(restored.slots.size(), 2u);
    for (const size_t slot : {0, 1}) {
      EXPECT_TRUE(SameBits(restored.slots[slot].values.span(), expected.slots[slot].values.span()));
    }
  }
}

TEST_F(StripedDirectoryTest, TheOtherServersLoadTheirStripes) {
  ASSERT_THAT(Save(*Open(), 10), IsOk());
  const CheckpointSource source = SourceOf(*Open()->restored());
  for (const uint32_t stripe : {1, 2}) {
    const auto loaded = OpenOther(stripe)->Load(source, *layout_);
    ASSERT_THAT(loaded, IsOk());
    ExpectSameStripe(*loaded, StripeOf(At(10), {stripe, kServers}));
  }
}

TEST_F(StripedDirectoryTest, SavesNoCheckpointIfAnotherServerCannotSaveItsStripe) {
  {
    const auto directory = Open();
    ASSERT_THAT(Save(*directory, 10), IsOk());
    EXPECT_THAT(Save(*directory, 20, absl::ResourceExhaustedError("server 2 has no space left")),
                HasCode(absl::StatusCode::kResourceExhausted, HasSubstr("server 2")));
    EXPECT_EQ(directory->saver().last_saved()->step, Step(10));
  }
  EXPECT_EQ(Open()->restored()->step, Step(10));
}

TEST_F(StripedDirectoryTest, AFullDiskLeavesTheCheckpointBefore) {
  ASSERT_THAT(Save(*Open(), 10), IsOk());
  uint64_t needed = 0;
  const auto names = files_.List(options_.directory);
  for (const std::string& name : *names) {
    needed += (*files_.Open(absl::StrCat(options_.directory, "/", name)))->size();
  }
  for (const uint64_t room : {uint64_t{0}, uint64_t{100}, needed / 2, needed - 1}) {
    files_.SetRoom(absl::nullopt);
    {
      const auto directory = Open();
      ASSERT_THAT(Save(*directory, 10), IsOk());
      files_.SetRoom(room);
      EXPECT_THAT(Save(*directory, 20),
                  HasCode(absl::StatusCode::kResourceExhausted, HasSubstr("No space left")));
    }
    EXPECT_EQ(Open()->restored()->step, Step(10));
  }
}

TEST_F(StripedDirectoryTest, TellsWhichCheckpointsAreWholeAndRemovesItsOtherStripes) {
  const auto directory = Open();
  ASSERT_THAT(Save(*directory, 10), IsOk());
  std::vector<std::vector<uint64_t>> told;
  directory->saver().TellOthers(
      [&](const std::vector<CheckpointName>& whole) {
        told.emplace_back();
        for (const CheckpointName& name : whole) told.back().push_back(name.step.value());
      },
      nullptr);
  for (const uint64_t step : {20, 30}) ASSERT_THAT(Save(*directory, step), IsOk());
  EXPECT_THAT(told, ElementsAre(ElementsAre(10), ElementsAre(20, 10), ElementsAre(30, 20)));
  EXPECT_FALSE(IsThere(FileOf(10, 0)));
  EXPECT_TRUE(IsThere(FileOf(10, 1)));
  OpenOther(1)->Keep({{{Incarnation(1), Step(30)}, {Incarnation(1), Step(20)}}});
  EXPECT_FALSE(IsThere(FileOf(10, 1)));
  EXPECT_TRUE(IsThere(FileOf(20, 1)));
}

TEST_F(StripedDirectoryTest, GoesBackToACheckpointFromBeforeTheSuspectSteps) {
  {
    const auto directory = Open();
    for (const uint64_t step : {10, 20}) ASSERT_THAT(Save(*directory, step), IsOk());
    const auto before = directory->saver().FindWayBack(Step(15));
    ASSERT_TRUE(before.has_value());
    EXPECT_EQ(before->step, Step(10));
    EXPECT_THAT(directory->GoBackTo(*before), IsOk());
  }
  EXPECT_EQ(Open()->restored()->step, Step(10));
}

TEST_F(StripedDirectoryTest, DoesNotGoBackToOneWhoseStripeIsDamaged) {
  const auto directory = Open();
  for (const uint64_t step : {10, 20}) ASSERT_THAT(Save(*directory, step), IsOk());
  files_.BytesOf(absl::StrCat(options_.directory, "/", FileOf(10, 0))).pop_back();
  EXPECT_FALSE(directory->saver().FindWayBack(Step(15)).has_value());
}

TEST_F(StripedDirectoryTest, BeginsWithNothingIfOnlyStripesAreThere) {
  const auto directory = Open();
  EXPECT_FALSE(Save(*directory, 10, absl::UnavailableError("no")).ok());
  EXPECT_TRUE(IsThere(FileOf(10, 0)));
  EXPECT_THAT(directory->restored(), IsNull());
}

}  // namespace
}  // namespace sluice
