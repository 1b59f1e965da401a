// Which records reach the disk, and how many are told to be lost.

#include "server/events/record_file.h"

#include <filesystem>
#include <fstream>
#include <sstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/held_executor.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

using ::testing::HasSubstr;

std::string Read(const std::string& path) {
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

std::string Fresh(const std::string& name) {
  const std::string path = ::testing::TempDir() + "/" + name;
  std::filesystem::remove_all(path);
  return path;
}

// A file in memory, of a disk that a test fills.
class RecordFileTest : public ::testing::Test {
 protected:
  absl::Status Append(absl::string_view bytes) {
    if (full_) return absl::UnavailableError("No space left on device");
    text_ += std::string(bytes);
    return absl::OkStatus();
  }

  bool full_ = false;
  std::string text_;
  HeldExecutor* const thread_ = new HeldExecutor;
  RecordFile file_{"log", [this](absl::string_view bytes) { return Append(bytes); },
                   std::unique_ptr<Executor>(thread_)};
};

TEST_F(RecordFileTest, WritesRecordsInTheirOrder) {
  thread_->Hold();
  file_.Add("a\n");
  file_.Add("b\n");
  EXPECT_EQ(text_, "");
  file_.Flush();
  EXPECT_EQ(text_, "a\nb\n");
  EXPECT_EQ(file_.TakeLost(), 0);
}

TEST_F(RecordFileTest, LosesWhatComesWhileTheDiskIsTooSlow) {
  thread_->Hold();
  const std::string large(RecordFile::kMostQueued, 'x');
  file_.Add(large);
  file_.Add("a");
  file_.Add("b", 7);
  EXPECT_EQ(file_.TakeLost(), 8);
  thread_->Release();
  file_.Add("c");
  EXPECT_EQ(text_, large + "c");
  EXPECT_EQ(file_.TakeLost(), 0);
}

TEST_F(RecordFileTest, LosesWhatAFullDiskRefuses) {
  full_ = true;
  file_.Add("a");
  file_.Add("b", 3);
  full_ = false;
  file_.Add("c");
  EXPECT_EQ(file_.TakeLost(), 4);
  EXPECT_EQ(text_, "c");
}

TEST(OpenToAppendTest, KeepsWhatIsThere) {
  const std::string path = Fresh("kept");
  for (const char* line : {"first\n", "second\n"}) {
    const auto append = OpenToAppend(path);
    ASSERT_THAT(append, IsOk());
    EXPECT_THAT((*append)(line), IsOk());
  }
  EXPECT_EQ(Read(path), "first\nsecond\n");
}

TEST(OpenToAppendTest, NamesTheFileThatCannotBeWritten) {
  EXPECT_THAT(OpenToAppend("/nowhere/log"),
              HasCode(absl::StatusCode::kInvalidArgument,
                      HasSubstr("cannot write /nowhere/log: No such file or directory")));
  EXPECT_THAT(OpenToAppend("/dev/null"),
              HasCode(absl::StatusCode::kInvalidArgument,
                      HasSubstr("/dev/null is a device, expected a regular file")));
}

}  // namespace
}  // namespace sluice
