#include "common/launch/launch_brief.h"

#include <string>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

ServerIdentity SomeServer() {
  ServerIdentity server;
  server.ticket = {"node7:7070", "job-1", std::string("\xff\x00t", 3)};
  server.ticket.server_ranks = {0, 2, 3};
  server.ticket.credentials = {"worker's certificate", "worker's key", "worker's authority"};
  server.listen = "0.0.0.0:7070";
  server.credentials = {"certificate", "key", "authority"};
  return server;
}

void ExpectSame(const ServerIdentity& server, const ServerIdentity& expected) {
  EXPECT_EQ(server.ticket.address, expected.ticket.address);
  EXPECT_EQ(server.ticket.job_id, expected.ticket.job_id);
  EXPECT_EQ(server.ticket.token, expected.ticket.token);
  EXPECT_EQ(server.ticket.credentials.key, expected.ticket.credentials.key);
  EXPECT_EQ(server.ticket.server_ranks, expected.ticket.server_ranks);
  EXPECT_EQ(server.listen, expected.listen);
  EXPECT_EQ(server.credentials.certificate, expected.credentials.certificate);
  EXPECT_EQ(server.credentials.key, expected.credentials.key);
  EXPECT_EQ(server.credentials.authority, expected.credentials.authority);
}

TEST(LaunchBriefTest, TellsAProgramAllItHasToBe) {
  LaunchBrief brief = {{2, 4, false, 1}, "/run/sluice-x", SomeServer(), {"a", "", "c", "d"}};
  const auto read = DecodeBrief(EncodeBrief(brief));
  ASSERT_THAT(read, IsOk());
  EXPECT_EQ(read->world.rank, 2);
  EXPECT_EQ(read->world.size, 4);
  EXPECT_EQ(read->world.node, 1);
  EXPECT_FALSE(read->world.one_node);
  EXPECT_EQ(read->directory, "/run/sluice-x");
  EXPECT_THAT(read->notes, ElementsAre("a", "", "c", "d"));
  ASSERT_TRUE(read->server.has_value());
  ExpectSame(*read->server, SomeServer());
}

TEST(LaunchBriefTest, MayLackAServer) {
  const auto read = DecodeBrief(EncodeBrief({{3, 4, true}}));
  ASSERT_THAT(read, IsOk());
  EXPECT_EQ(read->world.rank, 3);
  EXPECT_TRUE(read->world.one_node);
  EXPECT_FALSE(read->server.has_value());
}

TEST(LaunchBriefTest, IdentityIsReportedWhole) {
  const auto read = DecodeIdentity(EncodeIdentity(SomeServer()));
  ASSERT_THAT(read, IsOk());
  ExpectSame(*read, SomeServer());
}

TEST(LaunchBriefTest, AServerThatCouldNotStartReportsWhy) {
  EXPECT_THAT(DecodeIdentity(EncodeIdentity(absl::InternalError("port 7070 is taken"))),
              HasCode(absl::StatusCode::kUnavailable, HasSubstr("port 7070 is taken")));
}

TEST(LaunchBriefTest, ForeignBytesAreRecognized) {
  for (const std::string bytes : {"", "no brief", "\x08"}) {
    EXPECT_THAT(DecodeBrief(bytes), HasCode(absl::StatusCode::kDataLoss, HasSubstr("bytes")));
  }
  EXPECT_THAT(DecodeIdentity("no identity"),
              HasCode(absl::StatusCode::kDataLoss, HasSubstr("bytes")));
}

}  // namespace
}  // namespace sluice
