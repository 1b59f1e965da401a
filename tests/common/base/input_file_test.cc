#include "common/base/input_file.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace sluice {
namespace {

using ::testing::HasSubstr;

class InputFileTest : public ::testing::Test {
 protected:
  InputFileTest() {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }

  std::string Write(const std::string& name, const std::string& bytes) const {
    std::ofstream(folder_ + name, std::ios::binary) << bytes;
    return folder_ + name;
  }

  void ExpectRefused(const std::string& path, absl::StatusCode code, const std::string& why) const {
    const absl::Status status = ReadSmallFile(path, 4).status();
    EXPECT_EQ(status.code(), code) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(path));
    EXPECT_THAT(std::string(status.message()), HasSubstr(why));
  }

  const std::string folder_ = ::testing::TempDir() + "input_file/";
};

TEST_F(InputFileTest, GivesAllBytesUpToTheMostThatItMayHave) {
  for (const char* bytes : {"", "a", "a\nb", "abcd"}) {
    EXPECT_EQ(ReadSmallFile(Write("small", bytes), 4).value(), bytes);
  }
  const std::string large(300'000, 'x');
  EXPECT_EQ(ReadSmallFile(Write("large", large), 300'000).value(), large);
}

TEST_F(InputFileTest, RefusesOneByteMore) {
  ExpectRefused(Write("long", "abcde"), absl::StatusCode::kInvalidArgument,
                "has more than 4 bytes");
}

TEST_F(InputFileTest, FollowsALink) {
  Write("target", "abc");
  std::filesystem::create_symlink("target", folder_ + "link");
  EXPECT_EQ(ReadSmallFile(folder_ + "link", 4).value(), "abc");
}

TEST_F(InputFileTest, SaysWhatIsThereInPlaceOfARegularFile) {
  const auto wrong = absl::StatusCode::kInvalidArgument;
  const std::string pipe = folder_ + "pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  ExpectRefused(pipe, wrong, "is a named pipe, expected a regular file");
  std::filesystem::create_symlink("pipe", folder_ + "to_pipe");
  ExpectRefused(folder_ + "to_pipe", wrong, "is a named pipe");
  ExpectRefused(folder_, wrong, "is a directory");
  ExpectRefused("/dev/zero", wrong, "is a device");
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  const std::string name = absl::StrCat("/tmp/input_file_test-", getpid());
  ASSERT_LT(name.size(), sizeof(address.sun_path));
  memcpy(address.sun_path, name.data(), name.size());
  const FileDescriptor socket(::socket(AF_UNIX, SOCK_STREAM, 0));
  ASSERT_EQ(bind(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  ExpectRefused(name, wrong, "is a socket");
  unlink(name.c_str());
}

TEST_F(InputFileTest, SaysThatNoneIsThere) {
  ExpectRefused(folder_ + "none", absl::StatusCode::kNotFound, "No such file");
  ExpectRefused(Write("file", "") + "/below", absl::StatusCode::kNotFound, "Not a directory");
}

}  // namespace
}  // namespace sluice
