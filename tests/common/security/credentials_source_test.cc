#include "common/security/credentials_source.h"

#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/server/certificates.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class CredentialsSourceTest : public ::testing::Test {
 protected:
  ~CredentialsSourceTest() override { std::filesystem::remove_all(folder_); }

  const std::string folder_ = ::testing::TempDir() + "/credentials";
  const TestAuthority authority_;
  const Credentials first_ = authority_.Server();
  const TlsFiles files_ = WriteCredentials(first_, folder_);
  const CredentialsSource source_ = SourceOf(files_);
};

TEST_F(CredentialsSourceTest, GivesWhatTheFilesHold) {
  const auto read = source_();
  ASSERT_THAT(read, IsOk());
  EXPECT_EQ(read->certificate, first_.certificate);
  EXPECT_EQ(read->key, first_.key);
  EXPECT_EQ(read->authority, first_.authority);
}

TEST_F(CredentialsSourceTest, GivesWhatReplacedThem) {
  const Credentials second = authority_.Server();
  WriteCredentials(second, folder_);
  EXPECT_EQ(source_().value().certificate, second.certificate);
}

TEST_F(CredentialsSourceTest, NamesAFileThatIsMissingOrEmpty) {
  std::filesystem::remove(files_.authority);
  EXPECT_THAT(source_(), HasCode(absl::StatusCode::kNotFound,
                                 HasSubstr("cannot read " + files_.authority + ": No such file")));
  std::ofstream(files_.authority).flush();
  EXPECT_THAT(source_(), HasCode(absl::StatusCode::kInvalidArgument,
                                 AllOf(HasSubstr(files_.authority),
                                       HasSubstr("the authority holds no PEM block CERTIFICATE"))));
}

TEST_F(CredentialsSourceTest, RefusesAKeyThatOthersMayRead) {
  ASSERT_EQ(chmod(files_.key.c_str(), 0640), 0);
  EXPECT_THAT(source_(), HasCode(absl::StatusCode::kFailedPrecondition,
                                 HasSubstr("run chmod 600 " + files_.key)));
}

TEST_F(CredentialsSourceTest, RefusesAPipeAndAFileThatIsTooLarge) {
  for (const std::string& file : {files_.certificate, files_.key, files_.authority}) {
    std::filesystem::remove(file);
    ASSERT_EQ(mkfifo(file.c_str(), 0600), 0);
    EXPECT_THAT(source_(), HasCode(absl::StatusCode::kInvalidArgument,
                                   HasSubstr(file + " is a named pipe, expected a regular file")));
    std::filesystem::remove(file);
    std::ofstream(file).flush();
    ASSERT_EQ(chmod(file.c_str(), 0600), 0);
    std::filesystem::resize_file(file, (1 << 20) + 1);
    EXPECT_THAT(source_(), HasCode(absl::StatusCode::kInvalidArgument,
                                   HasSubstr(file + " has more than 1048576 bytes")));
    WriteCredentials(first_, folder_);
  }
}

TEST_F(CredentialsSourceTest, FollowsLinksAsASecretOfKubernetesHas) {
  std::filesystem::rename(files_.key, folder_ + "/target");
  std::filesystem::create_symlink("target", files_.key);
  EXPECT_EQ(source_().value().key, first_.key);
}

TEST_F(CredentialsSourceTest, RefusesFilesThatAreNoPair) {
  std::ofstream(files_.key) << authority_.Server().key;
  EXPECT_THAT(source_(), HasCode(absl::StatusCode::kInvalidArgument,
                                 AllOf(HasSubstr(files_.key), HasSubstr("name a pair"))));
}

TEST_F(CredentialsSourceTest, RefusesCertificatesThatHaveExpired) {
  WriteCredentials(authority_.ExpiredClient({Role::kWorker}), folder_);
  EXPECT_THAT(source_(), HasCode(absl::StatusCode::kInvalidArgument, HasSubstr("renew it")));
}

}  // namespace
}  // namespace sluice
