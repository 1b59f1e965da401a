#include "server/durable/checkpoint/stripe_store.h"

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/checkpoint/file_names.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/durable/faulty_files.h"
#include "tests/testing/durable/hooked_files.h"
#include "tests/testing/durable/striped_checkpoints.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

constexpr uint32_t kServerCounts[] = {1, 2, 3, 5};

CheckpointName NameAt(uint64_t step, uint64_t incarnation = 1) {
  return {Incarnation(incarnation), Step(step)};
}

class StripeStoreTest : public ::testing::Test {
 protected:
  ShardCheckpoint At(uint64_t step, uint64_t incarnation = 1) {
    return KnownCheckpoint(NameAt(step, incarnation), layout_);
  }
  CheckpointSource Save(const ShardCheckpoint& checkpoint, uint32_t servers) {
    auto saved = SaveAsServers(files_, "d", checkpoint, servers);
    EXPECT_THAT(saved, IsOk());
    return *std::move(saved);
  }
  StripeStore Store(uint32_t stripe, uint32_t stripes) {
    return StripeStore(files_, "d", {stripe, stripes});
  }
  absl::StatusOr<StripeCheckpoint> Load(const CheckpointSource& source, uint32_t stripe,
                                        uint32_t stripes) {
    return Store(stripe, stripes).Load(source, *layout_);
  }
  std::vector<std::string> StripesIn(const std::string& directory) {
    std::vector<std::string> stripes;
    const auto names = files_.List(directory);
    for (const std::string& name : *names) {
      if (absl::StartsWith(name, "stripe-")) stripes.push_back(name);
    }
    return stripes;
  }
  static std::string FileOf(const CheckpointName& name, uint32_t stripe, uint32_t stripes) {
    return StripeName{"job", name.incarnation, name.step, stripe, stripes}.FileName();
  }
  std::string& BytesOf(const CheckpointName& name, uint32_t stripe, uint32_t stripes) {
    return files_.BytesOf("d/" + FileOf(name, stripe, stripes));
  }

  FaultyFiles files_;
  // 29 units, the last of them cut; tensors end within units.
  std::shared_ptr<const Layout> layout_ = LayoutOfSizes({1000, 1, 64, 700, 50});
};

TEST_F(StripeStoreTest, TellsHowManyBytesAreRead) {
  const CheckpointSource source = Save(At(9), 3);
  uint64_t bytes = 0;
  for (const uint32_t stripe : {0, 1, 2}) {
    const auto loaded =
        Store(stripe, 3).Load(source, *layout_, [&](uint64_t more) { bytes += more; });
    EXPECT_THAT(loaded, IsOk());
  }
  EXPECT_EQ(bytes, 3 * layout_->size() * sizeof(float));  // the parameters and two slots
}

TEST_F(StripeStoreTest, LoadsWithAnyNumberOfServersWhatAnyNumberHasSaved) {
  // The others give stripes without elements, and files of several pieces.
  for (const auto& layout : {layout_, LayoutOfSizes({64, 64}), LayoutOfSizes({600'000, 400'001})}) {
    layout_ = layout;
    const ShardCheckpoint checkpoint = At(9);
    for (const uint32_t before : kServerCounts) {
      const CheckpointSource source = Save(checkpoint, before);
      for (const uint32_t after : kServerCounts) {
        for (uint32_t stripe = 0; stripe < after; ++stripe) {
          SCOPED_TRACE(absl::StrCat(before, " to ", stripe, " of ", after));
          const auto loaded = Load(source, stripe, after);
          ASSERT_THAT(loaded, IsOk());
          ExpectSameStripe(*loaded, StripeOf(checkpoint, {stripe, after}));
        }
      }
    }
  }
}

TEST_F(StripeStoreTest, LoadsWhatHasNoSlots) {
  const ShardCheckpoint checkpoint = KnownCheckpoint(NameAt(9), layout_, {});
  const auto loaded = Load(Save(checkpoint, 3), 1, 2);
  ASSERT_THAT(loaded, IsOk());
  ExpectSameStripe(*loaded, StripeOf(checkpoint, {1, 2}));
}

TEST_F(StripeStoreTest, ReadsOnlyTheFilesThatHaveElementsOfTheStripe) {
  const ShardCheckpoint checkpoint = At(9);
  const CheckpointSource source = Save(checkpoint, 3);
  for (const uint32_t other : {0, 2}) {
    ASSERT_THAT(files_.Remove("d/" + FileOf(NameAt(9), other, 3)), IsOk());
  }
  const auto loaded = Load(source, 1, 3);
  ASSERT_THAT(loaded, IsOk());
  ExpectSameStripe(*loaded, StripeOf(checkpoint, {1, 3}));
}

TEST_F(StripeStoreTest, AllocatesNothingForMoreThanAnyJobHas) {
  CheckpointSource source = Save(At(9), 3);
  source.slots.resize(1'000'000, "momentum");
  EXPECT_THAT(Load(source, 1, 3), HasCode(absl::StatusCode::kDataLoss,
                                          ::testing::HasSubstr("1000000 slots of the optimizer")));
  source = Save(At(9), 3);
  source.stripes.resize(257);
  EXPECT_THAT(Load(source, 1, 3),
              HasCode(absl::StatusCode::kDataLoss, ::testing::HasSubstr("257 stripes")));
}

TEST_F(StripeStoreTest, NamesAMissingFileAndSaysWhatToDo) {
  for (const uint32_t after : {1, 2, 3}) {
    const CheckpointSource source = Save(At(9), 3);
    ASSERT_THAT(files_.Remove("d/" + FileOf(NameAt(9), 2, 3)), IsOk());
    EXPECT_THAT(Load(source, after - 1, after),
                HasCode(absl::StatusCode::kDataLoss,
                        AllOf(HasSubstr("d/" + FileOf(NameAt(9), 2, 3) + " is missing"),
                              HasSubstr("copy it there"))));
  }
}

TEST_F(StripeStoreTest, NamesADamagedFile) {
  const CheckpointSource source = Save(At(9), 3);
  const auto refused =
      HasCode(absl::StatusCode::kDataLoss, HasSubstr("d/" + FileOf(NameAt(9), 1, 3) + ": "));
  std::string& bytes = BytesOf(NameAt(9), 1, 3);
  const std::string whole = bytes;
  for (size_t i = 0; i < whole.size(); i += 97) {
    bytes[i] ^= 4;
    EXPECT_THAT(Load(source, 0, 1), refused) << "byte " << i;
    bytes = whole.substr(0, i);
    EXPECT_THAT(Load(source, 0, 1), refused) << "cut to " << i;
    bytes = whole;
  }
  EXPECT_THAT(Load(source, 0, 1), IsOk());
}

TEST_F(StripeStoreTest, NamesADamagedFileOfOneServer) {
  const CheckpointSource source = Save(At(9), 1);
  const std::string path = "d/" + NameAt(9).FileName();
  std::string& bytes = files_.BytesOf(path);
  const std::string whole = bytes;
  for (size_t i = 0; i < whole.size(); i += 97) {
    bytes[i] ^= 4;
    EXPECT_THAT(Load(source, 1, 3), HasCode(absl::StatusCode::kDataLoss, HasSubstr(path)));
    bytes = whole.substr(0, i);
    EXPECT_THAT(Load(source, 1, 3), HasCode(absl::StatusCode::kDataLoss, HasSubstr(path)));
    bytes = whole;
  }
  EXPECT_THAT(Load(source, 1, 3), IsOk());
}

TEST_F(StripeStoreTest, RefusesFilesOfAnotherJobOrAnotherSave) {
  CheckpointSource source = Save(At(9), 3);
  source.job_id = "other";
  EXPECT_THAT(Load(source, 1, 3),
              HasCode(absl::StatusCode::kDataLoss, HasSubstr("\"sluice:job\" is \"job\"")));
  source.job_id = "job";
  ++source.stripes[1];
  EXPECT_THAT(Load(source, 1, 3),
              HasCode(absl::StatusCode::kDataLoss, HasSubstr("another file than the one saved")));
  CheckpointSource whole = Save(At(10), 1);
  whole.job_id = "other";
  EXPECT_THAT(Load(whole, 1, 3),
              HasCode(absl::StatusCode::kDataLoss, HasSubstr("expects job other")));
}

TEST_F(StripeStoreTest, AFullDiskLeavesNoPartOfAFile) {
  const ShardCheckpoint checkpoint = At(9);
  files_.SetRoom(100);
  EXPECT_THAT(Store(0, 2).Save("job", NameAt(9), *layout_, StripeOf(checkpoint, {0, 2})),
              HasCode(absl::StatusCode::kResourceExhausted, HasSubstr("No space left")));
  EXPECT_THAT(files_.List("d").value(), IsEmpty());
}

TEST_F(StripeStoreTest, AFailedSyncOfTheDirectoryIsFinal) {
  const StripeCheckpoint stripe = StripeOf(At(9), {0, 2});
  int syncs = 0;
  int created = 0;
  HookedFiles files(files_, [&](FileOperation operation, const std::string&) {
    created += operation == FileOperation::kCreate;
    const bool fails = operation == FileOperation::kSyncDirectory && ++syncs == 1;
    return fails ? absl::UnavailableError("cannot sync d: Input/output error") : absl::OkStatus();
  });
  StripeStore store(files, "d", {0, 2});
  for (const uint64_t step : {9, 10}) {
    EXPECT_THAT(store.Save("job", NameAt(step), *layout_, stripe),
                HasCode(absl::StatusCode::kUnavailable,
                        AllOf(HasSubstr("Input/output error"), HasSubstr("started again"))));
  }
  EXPECT_EQ(syncs, 1);
  EXPECT_EQ(created, 1);
}

TEST_F(StripeStoreTest, RemovesItsOwnFilesThatNoCheckpointNeeds) {
  for (const uint64_t step : {10, 20, 30}) Save(At(step), 3);
  Store(1, 3).RemoveOthers({NameAt(10), NameAt(30)});
  EXPECT_EQ(StripesIn("d").size(), 8u);
  EXPECT_THAT(files_.Open("d/" + FileOf(NameAt(20), 1, 3)).status(),
              HasCode(absl::StatusCode::kNotFound, HasSubstr("")));
  for (const uint32_t stripe : {0, 2}) Store(stripe, 3).RemoveOthers({NameAt(30)});
  EXPECT_THAT(StripesIn("d"),
              UnorderedElementsAre(FileOf(NameAt(10), 1, 3), FileOf(NameAt(30), 0, 3),
                                   FileOf(NameAt(30), 1, 3), FileOf(NameAt(30), 2, 3)));
}

TEST_F(StripeStoreTest, LeavesAllWhileNoCheckpointIsKnown) {
  Save(At(10), 3);
  for (const uint32_t stripe : {0, 1, 2}) Store(stripe, 3).RemoveOthers({});
  EXPECT_EQ(StripesIn("d").size(), 3u);
}

// Another server may be writing it.
TEST_F(StripeStoreTest, LeavesWhatIsNewerThanTheNewestCheckpoint) {
  Save(At(10), 3);
  Save(At(20), 3);
  Store(1, 3).RemoveOthers({NameAt(10)});
  EXPECT_EQ(StripesIn("d").size(), 6u);
}

TEST_F(StripeStoreTest, FewerServersRemoveWhatMoreHaveSaved) {
  Save(At(10), 5);
  Save(At(20, 2), 2);
  for (const uint32_t stripe : {0, 1}) Store(stripe, 2).RemoveOthers({NameAt(20, 2)});
  EXPECT_THAT(StripesIn("d"),
              ElementsAre(FileOf(NameAt(20, 2), 0, 2), FileOf(NameAt(20, 2), 1, 2)));
}

TEST_F(StripeStoreTest, RemovesItsUnfinishedFilesAndNoOthers) {
  Save(At(10), 3);
  for (const uint32_t stripe : {0, 1}) {
    ASSERT_THAT(files_.Create("d/" + FileOf(NameAt(20), stripe, 3) + ".unfinished"), IsOk());
  }
  ASSERT_THAT(files_.Create("d/notes-1-of-3.safetensors"), IsOk());
  Store(1, 3).RemoveOthers({NameAt(10)});
  EXPECT_THAT(
      files_.List("d").value(),
      UnorderedElementsAre(NameAt(10).FileName(), "notes-1-of-3.safetensors",
                           FileOf(NameAt(10), 0, 3), FileOf(NameAt(10), 1, 3),
                           FileOf(NameAt(10), 2, 3), FileOf(NameAt(20), 0, 3) + ".unfinished"));
}

}  // namespace
}  // namespace sluice
