#include "server/durable/format/checked_line.h"

#include <string>

#include "gtest/gtest.h"
#include "tests/testing/durable/faulty_files.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

constexpr char kPath[] = "run/line";

class CheckedLineTest : public ::testing::Test {
 protected:
  CheckedLineTest() {
    auto file = files_.Create(kPath);
    EXPECT_THAT(file, IsOk());
    EXPECT_THAT((*file)->Append(CheckedLine("job-7")), IsOk());
  }

  std::string& bytes() { return files_.BytesOf(kPath); }

  FaultyFiles files_;
};

TEST_F(CheckedLineTest, IsReadAsItWasWritten) {
  EXPECT_EQ(ReadCheckedLine(files_, kPath), "job-7");
}

TEST_F(CheckedLineTest, IsAbsentWhateverByteIsDamaged) {
  const std::string whole = bytes();
  for (size_t i = 0; i < whole.size() - 1; ++i) {
    bytes()[i] ^= 1;
    EXPECT_EQ(ReadCheckedLine(files_, kPath), absl::nullopt) << i;
    bytes() = whole;
  }
}

TEST_F(CheckedLineTest, IsAbsentWhereverItIsCut) {
  const std::string whole = bytes();
  for (size_t size = 0; size < whole.size() - 1; ++size) {
    bytes() = whole.substr(0, size);
    EXPECT_EQ(ReadCheckedLine(files_, kPath), absl::nullopt) << size;
  }
}

TEST_F(CheckedLineTest, IsAbsentWhereThereIsNoFile) {
  EXPECT_EQ(ReadCheckedLine(files_, "run/other"), absl::nullopt);
}

}  // namespace
}  // namespace sluice
