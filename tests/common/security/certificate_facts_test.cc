#include "common/security/certificate_facts.h"

#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/server/certificates.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(CertificateFactsTest, OfAServerAreItsHostsAndItsTime) {
  const absl::Time begin = absl::FromUnixSeconds(absl::ToUnixSeconds(absl::Now()));
  const Validity validity = {begin, begin + absl::Hours(24 * 90)};
  const auto authority = CertificateAuthority::Create(validity);
  ASSERT_THAT(authority, IsOk());
  const auto made = (*authority)->Issue({"server", {"node1", "10.0.0.7", "fd00::7"}, {}, validity});
  ASSERT_THAT(made, IsOk());
  const auto facts = FactsOf(made->certificate);
  ASSERT_THAT(facts, IsOk());
  EXPECT_EQ(facts->validity.begin, validity.begin);
  EXPECT_EQ(facts->validity.end, validity.end);
  EXPECT_THAT(facts->hosts, ElementsAre("node1", "10.0.0.7", "fd00::7"));
  EXPECT_TRUE(facts->roles.empty());
  EXPECT_TRUE(facts->may_serve);
  EXPECT_FALSE(facts->may_call);
}

TEST(CertificateFactsTest, OfACallerAreItsRoles) {
  const auto facts = FactsOf(TestAuthority().Client({Role::kWorker, Role::kAdmin}).certificate);
  ASSERT_THAT(facts, IsOk());
  EXPECT_EQ(facts->roles, Roles(Role::kWorker) | Role::kAdmin);
  EXPECT_THAT(facts->hosts, IsEmpty());
  EXPECT_FALSE(facts->may_serve);
  EXPECT_TRUE(facts->may_call);
}

TEST(CertificateFactsTest, AreNoneOfTextWithoutACertificate) {
  for (const std::string& text :
       {std::string(), std::string("text"), TestAuthority().Server().key}) {
    EXPECT_THAT(FactsOf(text),
                HasCode(absl::StatusCode::kInvalidArgument, HasSubstr("no PEM block CERTIFICATE")));
    EXPECT_FALSE(StandsFor(text, "127.0.0.1"));
  }
}

TEST(CertificateFactsTest, StandForTheHostsThatTheyNameAndNoOthers) {
  const std::string pem = TestAuthority().Server({"node1", "*.jobs.cluster"}).certificate;
  for (const char* const host : {"127.0.0.1", "node1", "a.jobs.cluster"}) {
    EXPECT_TRUE(StandsFor(pem, host)) << host;
  }
  for (const char* const host : {"127.0.0.2", "node2", "a.b.jobs.cluster", ""}) {
    EXPECT_FALSE(StandsFor(pem, host)) << host;
  }
}

TEST(CertificateShownAtTest, IsNoneIfThePeerAnswersOtherBytesOrNone) {
  for (const absl::string_view answer : {"", "HTTP/1.1 400 Bad Request\r\n\r\n"}) {
    std::array<int, 2> ends = {};
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()), 0);
    ASSERT_EQ(write(ends[1], answer.data(), answer.size()), static_cast<ssize_t>(answer.size()));
    shutdown(ends[1], SHUT_WR);
    EXPECT_THAT(CertificateShownAt(ends[0]),
                HasCode(absl::StatusCode::kUnavailable, HasSubstr("speaks no TLS")));
    close(ends[0]);
    close(ends[1]);
  }
}

}  // namespace
}  // namespace sluice
