#include "common/security/certificates.h"

#include <string>

#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/server/certificates.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

auto IsRefusedFor(const std::string& why) {
  return HasCode(absl::StatusCode::kInvalidArgument, HasSubstr(why));
}

class CertificatesTest : public ::testing::Test {
 protected:
  const absl::Time now_ = absl::Now();
  const TestAuthority authority_;
};

TEST_F(CertificatesTest, AreAPairWithItsAuthority) {
  const Credentials credentials = authority_.Client({Role::kWorker});
  EXPECT_THAT(CheckCredentials(credentials, now_), IsOk());
  EXPECT_THAT(credentials.certificate, StartsWith("-----BEGIN CERTIFICATE-----\n"));
  EXPECT_THAT(credentials.key, StartsWith("-----BEGIN PRIVATE KEY-----\n"));
  EXPECT_THAT(credentials.authority, StartsWith("-----BEGIN CERTIFICATE-----\n"));
}

TEST_F(CertificatesTest, HaveKeysOfTheirOwn) {
  EXPECT_NE(authority_.Client({Role::kWorker}).key, authority_.Client({Role::kWorker}).key);
  EXPECT_NE(TestAuthority().Server().authority, authority_.Server().authority);
}

TEST_F(CertificatesTest, AreNotValidBeforeAndAfterTheirTime) {
  const Credentials credentials = authority_.Client({Role::kWorker});
  EXPECT_THAT(CheckCredentials(credentials, now_ - absl::Hours(24)), IsRefusedFor("not valid yet"));
  EXPECT_THAT(CheckCredentials(credentials, now_ + absl::Hours(24)), IsRefusedFor("has expired"));
}

TEST_F(CertificatesTest, AreRefusedWithAnothersKey) {
  Credentials credentials = authority_.Server();
  credentials.key = authority_.Server().key;
  EXPECT_THAT(CheckCredentials(credentials, now_),
              IsRefusedFor("the key is not the certificate's"));
}

TEST_F(CertificatesTest, AreRefusedIfAPartIsMissingOrCut) {
  const Credentials whole = authority_.Server();
  Credentials credentials = whole;
  credentials.certificate.clear();
  EXPECT_THAT(CheckCredentials(credentials, now_), IsRefusedFor("the certificate holds no PEM"));
  credentials = whole;
  credentials.key.resize(credentials.key.size() / 2);
  EXPECT_THAT(CheckCredentials(credentials, now_), IsRefusedFor("the key holds no PEM"));
  credentials = whole;
  credentials.authority = credentials.key;
  EXPECT_THAT(CheckCredentials(credentials, now_), IsRefusedFor("the authority holds no PEM"));
}

}  // namespace
}  // namespace sluice
