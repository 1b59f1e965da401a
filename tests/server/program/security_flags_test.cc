// What a server speaks with which flags: plaintext, or mutual TLS with credentials from where.

#include "server/program/security_flags.h"

#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/server/certificates.h"
#include "tests/testing/server/server_flags.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

using ::testing::HasSubstr;

auto IsRefusedFor(const std::string& why) {
  return HasCode(absl::StatusCode::kInvalidArgument, HasSubstr(why));
}

// Where a server started with these flags, in a launch over TCP, and what it tells its workers.
JobTicket TicketOfTcp(std::vector<std::string> arguments, std::unique_ptr<JobServer>* server) {
  arguments.push_back("--listen=127.0.0.1:0");
  auto launched = Launch(arguments, RanksOnOneNode(2));
  EXPECT_THAT(launched, IsOk());
  if (!launched.ok()) return {};
  *server = std::move(launched->server);
  return launched->identity.ticket;
}

TEST(SecurityFlagsTest, ALaunchOverTcpBringsItsOwnCredentials) {
  std::unique_ptr<JobServer> server, other;
  const JobTicket ticket = TicketOfTcp({}, &server);
  EXPECT_THAT(JoinWith(ticket), IsOk());
  // Who knows address and token alone, or another launch's credentials, gets no further than the
  // handshake.
  const auto shut_out = HasCode(absl::StatusCode::kUnavailable, HasSubstr("no server at"));
  JobTicket stranger = ticket;
  stranger.credentials = {};
  EXPECT_THAT(JoinWith(stranger, absl::Milliseconds(200)), shut_out);
  stranger.credentials = TicketOfTcp({}, &other).credentials;
  EXPECT_THAT(JoinWith(stranger, absl::Milliseconds(200)), shut_out);
  stranger.credentials.authority = ticket.credentials.authority;
  EXPECT_THAT(JoinWith(stranger, absl::Milliseconds(200)), shut_out);
}

TEST(SecurityFlagsTest, ALaunchOnOneNodeNeedsNone) {
  const auto launched = Launch({}, RanksOnOneNode(2));
  ASSERT_THAT(launched, IsOk());
  const JobTicket& ticket = launched->identity.ticket;
  EXPECT_EQ(ticket.credentials.key, "");
}

TEST(SecurityFlagsTest, ALaunchSpeaksPlaintextIfToldTo) {
  std::unique_ptr<JobServer> server;
  const JobTicket ticket = TicketOfTcp({"--insecure"}, &server);
  EXPECT_EQ(ticket.credentials.key, "");
  EXPECT_THAT(JoinWith(ticket), IsOk());
}

TEST(SecurityFlagsTest, PlaintextIsForThisNode) {
  for (const char* listen : {"--listen=127.0.0.1:0", "--listen=localhost:0"}) {
    EXPECT_THAT(StartStandaloneServer(ParseServerFlags({listen})), IsOk());
    EXPECT_THAT(StartStandaloneServer(ParseServerFlags({listen, "--insecure"})), IsOk());
  }
  const auto refused = IsRefusedFor("in plaintext at 0.0.0.0:0 the network could read and change");
  EXPECT_THAT(StartStandaloneServer(ParseServerFlags({"--listen=0.0.0.0:0"})), refused);
  EXPECT_THAT(StartStandaloneServer(ParseServerFlags({"--listen=0.0.0.0:0", "--insecure"})),
              refused);
  EXPECT_THAT(
      StartStandaloneServer(ParseServerFlags({"--listen=0.0.0.0:0", "--insecure-on-network"})),
      IsOk());
  EXPECT_THAT(Launch({"--insecure"}, RanksOnManyNodes(2)), IsRefusedFor("--insecure-on-network"));
}

TEST(SecurityFlagsTest, RefusesFilesThatSayLittleOrTooMuch) {
  const std::string listen = "--listen=127.0.0.1:0";
  EXPECT_THAT(StartStandaloneServer(ParseServerFlags({listen, "--tls-cert=c"})),
              IsRefusedFor("some of --tls-cert, --tls-key and --tls-ca are missing"));
  const std::vector<std::string> files = {"--tls-cert=c", "--tls-key=k", "--tls-ca=a"};
  std::vector<std::string> both = files;
  both.insert(both.end(), {listen, "--insecure"});
  EXPECT_THAT(StartStandaloneServer(ParseServerFlags(both)), IsRefusedFor("give one of them"));
  std::vector<std::string> on_unix = files;
  on_unix.push_back("--listen=unix:/tmp/s");
  EXPECT_THAT(StartStandaloneServer(ParseServerFlags(on_unix)),
              IsRefusedFor("no TLS on unix:/tmp/s"));
  EXPECT_THAT(Launch(files, RanksOnOneNode(2)),
              IsRefusedFor("meet on a private unix socket, on which there is no TLS"));
  std::vector<std::string> missing = files;
  missing.push_back(listen);
  EXPECT_THAT(StartStandaloneServer(ParseServerFlags(missing)),
              HasCode(absl::StatusCode::kNotFound, HasSubstr("cannot read c: No such file")));
}

TEST(SecurityFlagsTest, TakesItsCredentialsFromFiles) {
  const TestAuthority authority;
  const std::string folder = ::testing::TempDir() + "/security";
  const TlsFiles files = WriteCredentials(authority.Server(), folder);
  const auto server = StartStandaloneServer(
      ParseServerFlags({"--listen=127.0.0.1:0", "--tls-cert=" + files.certificate,
                        "--tls-key=" + files.key, "--tls-ca=" + files.authority}));
  ASSERT_THAT(server, IsOk());
  JobTicket ticket{(*server)->address().ToString(), "", ""};
  ticket.credentials = authority.Client({Role::kWorker});
  EXPECT_THAT(JoinWith(ticket), IsOk());
}

}  // namespace
}  // namespace sluice
