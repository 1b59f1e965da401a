// An operator looks at the tables of checkpoints.

#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/checkpoint/file_names.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/durable/rows_in_memory.h"
#include "tests/testing/durable/striped_checkpoints.h"
#include "tests/testing/json.h"
#include "tests/testing/process/launch.h"
#include "tests/testing/process/process.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;

// A checkpoint with two rows of "items", and a waiting id and no row of "users".
class SluicectlTablesTest : public ::testing::TestWithParam<uint32_t> {
 protected:
  SluicectlTablesTest() {
    std::filesystem::remove_all(directory_);
    std::filesystem::create_directories(directory_);
    RowsInMemory rows;
    rows.Make(1, {0, 9}, {1, 2, 3, 4, 5, 6});
    rows.Make(2, {0, 5}, {7, 8, 9, 10, 11, 12});
    rows.Wait(2, {1, 7}, 1);
    const CheckpointName name = {Incarnation(1), Step(2)};
    ShardCheckpoint checkpoint = KnownCheckpoint(name, LayoutWithTables());
    const auto parameters = std::make_shared<Snapshot>();
    parameters->step = name.step;
    parameters->values = FloatBuffer::Zeroed(checkpoint.layout->size());
    parameters->rows = rows.Snapshot();
    checkpoint.parameters = parameters;
    checkpoint.row_slots = SlotsOfTables();
    EXPECT_THAT(SaveAsServers(RealFileSystem(), directory_, checkpoint, GetParam()), IsOk());
    path_ = absl::StrCat(directory_, "/", name.FileName());
  }

  // Its exit code; what it printed is in `output_`.
  int Run(const Words& arguments) {
    Words words = {RunfilePath("tools/ctl/sluicectl")};
    words.insert(words.end(), arguments.begin(), arguments.end());
    const auto process = Start(words);
    const auto code = process->Wait();
    EXPECT_THAT(code, IsOk());
    output_ = process->output();
    return code.value_or(-1);
  }

  // The path of a file of rows.
  std::string RowsPath() const {
    for (const auto& file : std::filesystem::directory_iterator(directory_)) {
      if (file.path().extension() == ".sluice") return file.path();
    }
    return "";
  }

  const std::string directory_ = absl::StrCat(::testing::TempDir(), "sluicectl_tables");
  std::string path_;
  std::string output_;
};

INSTANTIATE_TEST_SUITE_P(Servers, SluicectlTablesTest, ::testing::Values(1, 2));

TEST_P(SluicectlTablesTest, ListsTables) {
  EXPECT_EQ(Run({"table", "list", path_}), 0);
  EXPECT_THAT(output_, AllOf(HasSubstr("items"), HasSubstr("exp_avg exp_avg_sq")));
  EXPECT_EQ(Run({"table", "list", "--json", path_}), 0);
  EXPECT_EQ(JsonAt(output_, "tables.0.name"), "items");
  EXPECT_EQ(JsonAt(output_, "tables.0.rows"), "2");
  EXPECT_EQ(JsonAt(output_, "tables.0.bytes"), "48");
  EXPECT_EQ(JsonAt(output_, "tables.1.waiting"), "1");
}

TEST_P(SluicectlTablesTest, ShowsTablesOfACheckpoint) {
  EXPECT_EQ(Run({"checkpoint", "show", "--json", path_}), 0);
  EXPECT_EQ(JsonAt(output_, "tables.0.rows"), "2");
  EXPECT_EQ(JsonAt(output_, "tables.0.width"), "2");
  EXPECT_EQ(Run({"checkpoint", "show", path_}), 0);
  EXPECT_THAT(output_,
              ContainsRegex("tables +2 tables, [0-9]+ rows, .* with the optimizer's slots"));
}

TEST_P(SluicectlTablesTest, VerifiesFilesOfRows) {
  EXPECT_EQ(Run({"checkpoint", "verify", directory_}), 0);
  EXPECT_THAT(output_, HasSubstr("2 slots, 2 tables"));
  const std::string rows = RowsPath();
  std::fstream(rows, std::ios::in | std::ios::out | std::ios::binary).seekp(40).put('\0').put('\1');
  EXPECT_EQ(Run({"checkpoint", "verify", directory_}), 1);
  EXPECT_THAT(output_, AllOf(HasSubstr("DAMAGED"), HasSubstr(rows)));
}

TEST_P(SluicectlTablesTest, ExportsATable) {
  const std::string out = absl::StrCat(directory_, "/items.safetensors");
  EXPECT_EQ(Run({"table", "export", path_, "items", out}), 0);
  EXPECT_THAT(output_,
              AllOf(HasSubstr(absl::StrCat("wrote ", out, ": 4 tensors, ")), HasSubstr(" B\n")));
  std::ifstream file(out, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  EXPECT_THAT(bytes, HasSubstr("\"rows\""));
  const std::string ids({5, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0});
  EXPECT_THAT(bytes, HasSubstr(ids));
}

TEST_P(SluicectlTablesTest, NamesTheTablesIfThereIsNoneOfThatName) {
  EXPECT_EQ(Run({"table", "export", path_, "other", absl::StrCat(directory_, "/out")}), 2);
  EXPECT_THAT(output_, HasSubstr("no table \"other\"; its tables are: items, users"));
}

}  // namespace
}  // namespace sluice
