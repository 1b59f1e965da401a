#include "common/checkpoint/reading/checkpoint_reader.h"

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/little_endian.h"
#include "common/checkpoint/file_names.h"
#include "common/encoding/checksum.h"
#include "common/tensor/float_buffer.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/durable/faulty_files.h"
#include "tests/testing/durable/rows_in_memory.h"
#include "tests/testing/durable/striped_checkpoints.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

CheckpointName NameAt(uint64_t step, uint64_t incarnation = 1) {
  return {Incarnation(incarnation), Step(step)};
}

// A directory exists if it has files. FaultyFiles has every directory.
class FilesInDirectories final : public FileSystem {
 public:
  absl::StatusOr<std::unique_ptr<WritableFile>> Create(const std::string& path) override {
    return files_.Create(path);
  }
  absl::StatusOr<std::unique_ptr<ReadableFile>> Open(const std::string& path) override {
    return files_.Open(path);
  }
  absl::StatusOr<std::vector<std::string>> List(const std::string& directory) override {
    auto names = files_.List(directory);
    if (names.ok() && !names->empty()) return names;
    return absl::NotFoundError(absl::StrCat("cannot list ", directory));
  }
  absl::Status Rename(const std::string& from, const std::string& to) override {
    return files_.Rename(from, to);
  }
  absl::Status Remove(const std::string& path) override { return files_.Remove(path); }
  absl::Status SyncDirectory(const std::string& directory) override {
    return files_.SyncDirectory(directory);
  }
  std::string& BytesOf(const std::string& path) { return files_.BytesOf(path); }

 private:
  FaultyFiles files_;
};

// The number of servers that save the checkpoint.
class CheckpointReaderTest : public ::testing::TestWithParam<uint32_t> {
 protected:
  ShardCheckpoint Save(const CheckpointName& name, const std::string& directory = "d") {
    ShardCheckpoint checkpoint = KnownCheckpoint(name, layout_);
    EXPECT_THAT(SaveAsServers(files_, directory, checkpoint, GetParam()), IsOk());
    return checkpoint;
  }

  absl::Status Read(const std::string& where) { return ReadTo(where, &read_); }
  absl::Status ReadTo(const std::string& where, FloatBuffer* to) {
    const auto reader = CheckpointReader::Open(files_, where);
    if (!reader.ok()) return reader.status();
    *to = FloatBuffer(reader->layout().size());
    return reader->ReadParameters(to->span());
  }

  void ExpectReads(const std::string& where, const ShardCheckpoint& expected) {
    ASSERT_THAT(Read(where), IsOk()) << where;
    EXPECT_TRUE(SameBits(read_.span(), expected.parameters->values.span())) << where;
  }

  static std::string StripePath(const CheckpointName& name, uint32_t stripe,
                                const std::string& directory = "d") {
    return absl::StrCat(
        directory, "/",
        StripeName{"job", name.incarnation, name.step, stripe, GetParam()}.FileName());
  }
  static std::string PathOf(const CheckpointName& name) {
    return absl::StrCat("d/", name.FileName());
  }

  FilesInDirectories files_;
  const std::shared_ptr<const Layout> layout_ = LayoutOfSizes({1000, 1, 64, 700, 50});
  FloatBuffer read_;
};

TEST(DirectoryOfTest, IsWhereTheOtherFilesOfACheckpointAre) {
  EXPECT_EQ(DirectoryOf("run/1/checkpoint"), "run/1");
  EXPECT_EQ(DirectoryOf("checkpoint"), ".");
  EXPECT_EQ(DirectoryOf("/checkpoint"), "/");
}

INSTANTIATE_TEST_SUITE_P(Servers, CheckpointReaderTest, ::testing::Values(1, 2, 3, 4));

TEST_P(CheckpointReaderTest, ReadsTheBitsOfAFileAndOfTheNewestInADirectory) {
  const auto old = Save(NameAt(9));
  const auto newest = Save(NameAt(3, 2));
  ExpectReads(PathOf(NameAt(9)), old);
  ExpectReads(PathOf(NameAt(3, 2)), newest);
  ExpectReads("d", newest);
}

TEST_P(CheckpointReaderTest, TakesNoMeanGradientForAModel) {
  ShardCheckpoint checkpoint = KnownCheckpoint(NameAt(9), layout_);
  checkpoint.optimizer = {MeanGradientOptions()};
  checkpoint.slots.clear();
  ASSERT_THAT(SaveAsServers(files_, "d", checkpoint, GetParam()), IsOk());
  EXPECT_THAT(Read("d"), HasCode(absl::StatusCode::kInvalidArgument,
                                 HasSubstr("of a job whose workers step themselves")));
}

TEST_P(CheckpointReaderTest, KnowsWhichFilesAreOfACheckpoint) {
  Save(NameAt(9));
  for (const std::string& where : {std::string("d"), PathOf(NameAt(9)), std::string("x,d")}) {
    EXPECT_TRUE(IsCheckpoint(files_, where)) << where;
  }
  ASSERT_THAT((*files_.Create("d/other"))->Append("other"), IsOk());
  for (const char* where : {"d/other", "d/nowhere", ""}) {
    EXPECT_FALSE(IsCheckpoint(files_, where)) << where;
  }
}

TEST_P(CheckpointReaderTest, FindsStripesInTheDirectoriesOfTheOtherServers) {
  const auto saved = Save(NameAt(9));
  std::string where = "d";
  for (uint32_t stripe = 1; stripe < GetParam(); ++stripe) {
    const std::string directory = absl::StrCat("own", stripe);
    ASSERT_THAT(
        files_.Rename(StripePath(NameAt(9), stripe), StripePath(NameAt(9), stripe, directory)),
        IsOk());
    absl::StrAppend(&where, ",", directory);
  }
  ExpectReads(where, saved);
}

TEST_P(CheckpointReaderTest, RefusesAnyFlippedByteAndAnyCutOfAnyFileByName) {
  Save(NameAt(9));
  std::vector<std::string> paths = {PathOf(NameAt(9))};
  for (uint32_t i = 0; GetParam() > 1 && i < GetParam(); ++i) {
    paths.push_back(StripePath(NameAt(9), i));
  }
  for (const std::string& path : paths) {
    std::string& bytes = files_.BytesOf(path);
    const std::string whole = bytes;
    for (size_t i = 0; i < whole.size(); i += 101) {
      bytes = whole;
      bytes[i] ^= 0x10;
      EXPECT_FALSE(Read("d").ok()) << path << " byte " << i;
      bytes = whole.substr(0, i);
      EXPECT_THAT(Read("d"), HasCode(absl::StatusCode::kDataLoss, HasSubstr(path)));
    }
    bytes = whole;
  }
  EXPECT_THAT(Read("d"), IsOk());
}

TEST_P(CheckpointReaderTest, SaysThatADirectoryOrAFileIsNotThere) {
  EXPECT_THAT(Read("d/nowhere"), HasCode(absl::StatusCode::kNotFound, HasSubstr("d/nowhere")));
  EXPECT_THAT(Read(""), HasCode(absl::StatusCode::kInvalidArgument,
                                HasSubstr("expected its file or its directory")));
  ASSERT_THAT((*files_.Create("e/other"))->Append("other"), IsOk());
  EXPECT_THAT(Read("e"), HasCode(absl::StatusCode::kNotFound,
                                 HasSubstr("e has no checkpoint (checkpoint-*.safetensors)")));
  EXPECT_THAT(Read("e/other"), HasCode(absl::StatusCode::kDataLoss, StartsWith("e/other: ")));
}

TEST_P(CheckpointReaderTest, RefusesAFileUnderAnothersName) {
  Save(NameAt(9));
  ASSERT_THAT(files_.Rename(PathOf(NameAt(9)), PathOf(NameAt(10))), IsOk());
  EXPECT_THAT(Read("d"), HasCode(absl::StatusCode::kDataLoss,
                                 AllOf(HasSubstr(PathOf(NameAt(10)) + " holds step 9"),
                                       HasSubstr("not what its name says"))));
}

using StripedCheckpointReaderTest = CheckpointReaderTest;
INSTANTIATE_TEST_SUITE_P(Servers, StripedCheckpointReaderTest, ::testing::Values(2, 3, 4));

TEST_P(StripedCheckpointReaderTest, NamesTheMissingStripeAndEveryDirectoryWhereItIsNot) {
  Save(NameAt(9));
  const std::string path = StripePath(NameAt(9), 1);
  ASSERT_THAT(files_.Rename(path, "x/gone"), IsOk());
  EXPECT_THAT(Read("d"),
              HasCode(absl::StatusCode::kDataLoss,
                      HasSubstr(absl::StrCat(path, " is missing: it is the part of server 1 of ",
                                             GetParam(),
                                             "; copy it there from that server's "
                                             "--checkpoint-dir"))));
  EXPECT_THAT(Read("d,x"),
              HasCode(absl::StatusCode::kDataLoss, HasSubstr(path + " is missing, also in x: ")));
}

TEST_P(StripedCheckpointReaderTest, RefusesStripesOfAnotherStepIncarnationOrNumberOfServers) {
  Save(NameAt(9));
  const std::string path = StripePath(NameAt(9), 1);
  const std::string right = files_.BytesOf(path);
  const auto refuses = [&](const std::string& other, const std::string& key) {
    files_.BytesOf(path) = files_.BytesOf(other);
    EXPECT_THAT(Read("d"), HasCode(absl::StatusCode::kDataLoss,
                                   AllOf(StartsWith(path + ": "), HasSubstr(key))));
    files_.BytesOf(path) = right;
  };
  Save(NameAt(8), "e");
  refuses(StripePath(NameAt(8), 1, "e"), "\"sluice:step\" is \"8\"");
  Save(NameAt(9, 7), "e");
  refuses(StripePath(NameAt(9, 7), 1, "e"), "\"sluice:incarnation\" is \"7\"");
  refuses(StripePath(NameAt(9), 0), "\"sluice:stripe\" is \"0\"");
  ASSERT_THAT(SaveAsServers(files_, "f", KnownCheckpoint(NameAt(9), layout_), 5), IsOk());
  refuses("f/" + StripeName{"job", Incarnation(1), Step(9), 1, 5}.FileName(),
          "\"sluice:stripes\" is \"5\"");
  EXPECT_THAT(Read("d"), IsOk());
}

TEST_P(StripedCheckpointReaderTest, RefusesAStripeOfAnotherSaveOfTheSameStep) {
  Save(NameAt(9));
  auto other = KnownCheckpoint(NameAt(9), layout_);
  other.slots[0].values.span()[0] = 1;
  ASSERT_THAT(SaveAsServers(files_, "e", other, GetParam()), IsOk());
  files_.BytesOf(StripePath(NameAt(9), 0)) = files_.BytesOf(StripePath(NameAt(9), 0, "e"));
  EXPECT_THAT(Read("d"), HasCode(absl::StatusCode::kDataLoss,
                                 AllOf(HasSubstr(StripePath(NameAt(9), 0)),
                                       HasSubstr("it is another file than the one saved"))));
}

TEST_P(StripedCheckpointReaderTest, ForAPartOfACheckpointSaysWhatToName) {
  Save(NameAt(9));
  const std::string path = StripePath(NameAt(9), 1);
  EXPECT_TRUE(IsCheckpoint(files_, path));
  EXPECT_THAT(Read(path), HasCode(absl::StatusCode::kInvalidArgument,
                                  HasSubstr(path + " has one server's part of a checkpoint")));
  ASSERT_THAT(files_.Rename(path, StripePath(NameAt(9), 1, "own")), IsOk());
  EXPECT_THAT(Read("own"), HasCode(absl::StatusCode::kNotFound,
                                   HasSubstr("name the directory of the first server")));
  EXPECT_THAT(Read("d,nowhere"), HasCode(absl::StatusCode::kNotFound, HasSubstr("nowhere")));
}

// Changes a number in the state, and makes the checksum fit.
TEST_P(StripedCheckpointReaderTest, AllocatesNothingForALayoutThatTheStripesDoNotHave) {
  const auto layout = LayoutOfSizes({64, 1000});
  ASSERT_THAT(SaveAsServers(files_, "d", KnownCheckpoint(NameAt(9), layout), GetParam()), IsOk());
  std::string& bytes = files_.BytesOf(PathOf(NameAt(9)));
  const auto replace = [&](const std::string& from, const std::string& to) {
    ASSERT_EQ(from.size(), to.size());
    const size_t at = bytes.find(from);
    ASSERT_NE(at, std::string::npos) << bytes;
    bytes.replace(at, from.size(), to);
  };
  replace("\\\"shape\\\":[1000]", "\\\"shape\\\":[9999]");
  replace("\\\"length\\\":\\\"1000\\\"", "\\\"length\\\":\\\"9999\\\"");
  bytes.resize(bytes.size() - 8);
  bytes += LittleEndian64(Checksum(bytes));
  EXPECT_THAT(CheckpointReader::Open(files_, "d").status(),
              HasCode(absl::StatusCode::kDataLoss,
                      HasSubstr("its tensors are not the parts that this stripe has")));
}

// ---- Tables ----

class TableReaderTest : public ::testing::TestWithParam<uint32_t> {
 protected:
  TableReaderTest() {
    rows_.Make(1, {0, 900}, {1, 2, 3, 4, 5, 6});
    rows_.Make(2, {0, 5}, {7, 8, 9, 10, 11, 12});
    rows_.Wait(2, {0, 7}, 1);
    rows_.Make(2, {1, 6}, {-1});
    ShardCheckpoint checkpoint = KnownCheckpoint(NameAt(2), LayoutWithTables());
    const auto parameters = std::make_shared<Snapshot>();
    parameters->step = Step(2);
    parameters->values = FloatBuffer::Zeroed(checkpoint.layout->size());
    parameters->rows = rows_.Snapshot();
    checkpoint.parameters = parameters;
    checkpoint.row_slots = SlotsOfTables();
    EXPECT_THAT(SaveAsServers(files_, "d", checkpoint, GetParam()), IsOk());
  }

  std::string RowsPath() {
    const auto names = files_.List("d");
    for (const std::string& name : *names) {
      if (RowsName::Parse(name).has_value()) return "d/" + name;
    }
    return "";
  }

  RowsInMemory rows_;
  FilesInDirectories files_;
};

INSTANTIATE_TEST_SUITE_P(Servers, TableReaderTest, ::testing::Values(1, 2, 3, 4));

TEST_P(TableReaderTest, HasTheRowsInOrderOfIdWithoutSlotsAndWaitingIds) {
  const auto reader = CheckpointReader::Open(files_, "d");
  ASSERT_THAT(reader, IsOk());
  const auto items = reader->ReadTable("items");
  ASSERT_THAT(items, IsOk());
  ASSERT_EQ(items->size(), 2u);
  EXPECT_EQ(items->id(0), 5u);
  EXPECT_THAT(items->row(0), ::testing::ElementsAre(7, 8));
  EXPECT_EQ(items->id(1), 900u);
  EXPECT_THAT(items->row(1), ::testing::ElementsAre(1, 2));
  EXPECT_THAT(reader->ReadTable("users")->row(0), ::testing::ElementsAre(-1));
}

TEST_P(TableReaderTest, NamesTheTablesThatThereAre) {
  EXPECT_THAT(CheckpointReader::Open(files_, "d")->ReadTable("item").status(),
              HasCode(absl::StatusCode::kNotFound,
                      HasSubstr("has no table \"item\"; its tables are: items, users")));
}

TEST_P(TableReaderTest, NamesADamagedOrMissingFileOfRows) {
  const std::string path = RowsPath();
  std::string& bytes = files_.BytesOf(path);
  bytes[bytes.size() - 1] ^= 1;
  const auto reader = CheckpointReader::Open(files_, "d");
  EXPECT_THAT(reader->ReadTable("items").status(),
              HasCode(absl::StatusCode::kDataLoss, HasSubstr(path)));
  ASSERT_THAT(files_.Remove(path), IsOk());
  EXPECT_THAT(reader->ReadTable("items").status(),
              HasCode(absl::StatusCode::kDataLoss, HasSubstr(path + " is missing")));
  FloatBuffer dense(reader->layout().size());
  EXPECT_THAT(reader->ReadParameters(dense.span()), IsOk());
}

}  // namespace
}  // namespace sluice
