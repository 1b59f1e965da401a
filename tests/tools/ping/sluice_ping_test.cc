// sluice_ping as a user runs it: against real servers, and with all that can be wrong.

#include <string>

#include "absl/strings/str_cat.h"
#include "common/net/private_directory.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/json.h"
#include "tests/testing/process/launch.h"
#include "tests/testing/process/process.h"
#include "tests/testing/process/programs.h"
#include "tests/testing/server/certificates.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;

Words Ping(const Words& flags) {
  return With({"tools/ping/sluice_ping", "--seconds=0.5", "--model-size=4"}, flags);
}

TEST(SluicePingTest, MeasuresATcpServerAndRecommendsFlags) {
  const Standalone server({"--workers=1"});
  EXPECT_THAT(OutputOf(Ping({server.address()}), 0),
              AllOf(HasSubstr(absl::StrCat("server         ", server.address(), ", Sluice ")),
                    HasSubstr("plaintext"), HasSubstr("connections   push MB/s   pull MB/s\n"),
                    HasSubstr("a round of 4.0 MB"), HasSubstr("recommended: --connections="),
                    HasSubstr("Reason: ")));
}

TEST(SluicePingTest, WritesJson) {
  const Standalone server({"--workers=1", "--shared-memory=off"});
  const std::string json = OutputOf(Ping({server.address(), "--json"}), 0);
  EXPECT_EQ(JsonNumberAt(json, "model_bytes"), 4e6);
  EXPECT_EQ(JsonAt(json, "shares_memory"), "false");
  EXPECT_EQ(JsonAt(json, "tls"), "false");
  EXPECT_EQ(JsonNumberAt(json, "tls_cipher_bytes_per_s"), 0);
  EXPECT_EQ(JsonAt(json, "rates"), "[4]");
  EXPECT_EQ(JsonAt(json, "rounds"), "[24]");
  EXPECT_GT(JsonNumberAt(json, "rates.0.push_bytes_per_s"), 0);
  EXPECT_GT(JsonNumberAt(json, "recommended.round_s"), 0);
}

TEST(SluicePingTest, UsesOneConnectionOfAUnixSocketAndFindsSharedMemory) {
  const auto directory = PrivateDirectory::Create();
  ASSERT_THAT(directory, IsOk());
  const std::string address = absl::StrCat("unix:", (*directory)->path(), "/s");
  const auto server = Start(ServerProgram({"--workers=1", absl::StrCat("--listen=", address)}));
  ASSERT_THAT(server->WaitForOutput("listening on (unix:[^ \n]+)"), IsOk());
  const std::string json = OutputOf(Ping({address, "--json"}), 0);
  EXPECT_EQ(JsonAt(json, "rates"), "[1]");
  EXPECT_EQ(JsonAt(json, "shares_memory"), "true");
  EXPECT_EQ(JsonAt(json, "recommended.push_encoding"), "float32");
}

TEST(SluicePingTest, TellsWhatTheCipherOfTlsTakes) {
  const TestAuthority authority;
  const Standalone server(
      With({"--workers=1"}, TlsFlags(WriteCredentials(authority.Server(), TestPath("server")))));
  const Words caller =
      TlsFlags(WriteCredentials(authority.Client({Role::kWorker}), TestPath("caller")));
  EXPECT_THAT(OutputOf(Ping(With({server.address()}, caller)), 0),
              ContainsRegex(
                  "\nTLS            takes at least [0-9]+ % of a core here for the fastest push: a "
                  "core of this machine encrypts [1-9][0-9]* MB/s\n"));
  const std::string json = OutputOf(Ping(With({server.address(), "--json"}, caller)), 0);
  EXPECT_EQ(JsonAt(json, "tls"), "true");
  EXPECT_GT(JsonNumberAt(json, "tls_least_share_of_core"), 0);
}

TEST(SluicePingTest, EndsWithTwoForAWrongCommandLine) {
  EXPECT_THAT(OutputOf(Ping({}), 2), HasSubstr("found no address of a server"));
  EXPECT_THAT(OutputOf(Ping({"nowhere"}), 2), HasSubstr("nowhere"));
  EXPECT_THAT(OutputOf(Ping({"127.0.0.1:1", "--seconds=0"}), 2), HasSubstr("--seconds"));
  EXPECT_THAT(OutputOf(Ping({"127.0.0.1:1", "--model-size=nan"}), 2), HasSubstr("--model-size"));
}

TEST(SluicePingTest, EndsWithThreeIfNoServerAnswers) {
  EXPECT_THAT(OutputOf(Ping({absl::StrCat("127.0.0.1:", FreePort()), "--connect-timeout=0.1"}), 3),
              HasSubstr("sluice_ping: no server at 127.0.0.1:"));
}

TEST(SluicePingTest, EndsWithOneForAWrongToken) {
  const std::string token = TestPath("token");
  const std::string other = TestPath("other");
  OutputOf(
      {"/bin/sh", "-c", absl::StrCat("umask 77; echo secret >", token, "; echo other >", other)},
      0);
  const Standalone server({"--workers=1", absl::StrCat("--token-file=", token)});
  EXPECT_THAT(OutputOf(Ping({server.address(), absl::StrCat("--token-file=", other)}), 1),
              HasSubstr("token"));
  EXPECT_THAT(OutputOf(Ping({server.address(), absl::StrCat("--token-file=", token)}), 0),
              HasSubstr("recommended: "));
}

}  // namespace
}  // namespace sluice
