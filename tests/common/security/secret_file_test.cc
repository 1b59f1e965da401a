#include "common/security/secret_file.h"

#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class SecretFileTest : public ::testing::Test {
 protected:
  ~SecretFileTest() override { std::filesystem::remove(path_); }

  // A file of that content and mode.
  const std::string& Write(const std::string& content, mode_t mode = 0600) {
    std::ofstream(path_, std::ios::binary) << content;
    EXPECT_EQ(chmod(path_.c_str(), mode), 0);
    return path_;
  }

  const std::string path_ = ::testing::TempDir() + "/secret";
};

TEST_F(SecretFileTest, HoldsTheSecretOnItsFirstLine) {
  EXPECT_THAT(ReadSecretFile(Write("open sesame\n")), IsOkAndHolds("open sesame"));
  EXPECT_THAT(ReadSecretFile(Write("no line feed")), IsOkAndHolds("no line feed"));
  EXPECT_THAT(ReadSecretFile(Write("first\nsecond\n", 0400)), IsOkAndHolds("first"));
}

TEST_F(SecretFileTest, IsReadByItsOwnerAlone) {
  for (const mode_t mode : {0640, 0604, 0644, 0660, 0777}) {
    EXPECT_THAT(ReadSecretFile(Write("secret\n", mode)),
                HasCode(absl::StatusCode::kFailedPrecondition,
                        HasSubstr("can be read by other users; run chmod 600 " + path_)))
        << mode;
  }
}

TEST_F(SecretFileTest, IsNotEmpty) {
  for (const char* content : {"", "\n", "\nsecond\n"}) {
    EXPECT_THAT(ReadSecretFile(Write(content)),
                HasCode(absl::StatusCode::kNotFound,
                        AllOf(HasSubstr(path_), HasSubstr("expected a secret on its first line"))));
  }
}

TEST_F(SecretFileTest, IsThere) {
  EXPECT_THAT(ReadSecretFile("/nonexistent/secret"),
              HasCode(absl::StatusCode::kNotFound,
                      AllOf(HasSubstr("/nonexistent/secret"), HasSubstr("No such file"))));
  EXPECT_THAT(ReadSecretFile(""), HasCode(absl::StatusCode::kNotFound, HasSubstr("No such file")));
}

// gRPC ends the process that sends such a header.
TEST_F(SecretFileTest, HoldsNothingThatAHeaderCannotCarry) {
  for (const char* content : {"p\xc3\xa4ssword\n", "carriage return\r\n", "tab\tbed\n", "\x7f\n"}) {
    EXPECT_THAT(ReadSecretFile(Write(content)),
                HasCode(absl::StatusCode::kFailedPrecondition, HasSubstr("printable ASCII")));
  }
}

TEST_F(SecretFileTest, IsNoDirectory) {
  std::filesystem::create_directory(path_);
  EXPECT_EQ(chmod(path_.c_str(), 0700), 0);
  EXPECT_THAT(ReadSecretFile(path_),
              HasCode(absl::StatusCode::kInvalidArgument,
                      HasSubstr(path_ + " is a directory, expected a regular file")));
}

}  // namespace
}  // namespace sluice
