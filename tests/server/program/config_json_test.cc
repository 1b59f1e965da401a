#include "server/program/config_json.h"

#include <sys/stat.h>

#include <fstream>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/json.h"
#include "tests/testing/server/server_flags.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::Not;

auto IsRefusedFor(const std::string& why) {
  return HasCode(absl::StatusCode::kInvalidArgument, HasSubstr(why));
}

std::string ConfigOf(const std::vector<std::string>& arguments) {
  const auto config = DescribeConfig(ParseServerFlags(arguments));
  EXPECT_THAT(config, IsOk());
  return config.value_or("");
}

TEST(ConfigTest, TellsEveryLimitAndItsFlag) {
  const std::string defaults = ConfigOf({});
  EXPECT_EQ(JsonAt(defaults, "limits.message_bytes"), "4194304");
  EXPECT_EQ(JsonAt(defaults, "limits.metadata_bytes"), "8192");
  EXPECT_EQ(JsonAt(defaults, "limits.streams_per_connection"), "256");
  EXPECT_EQ(JsonAt(defaults, "limits.handshake"), "10s");
  EXPECT_EQ(JsonAt(defaults, "limits.connections"), "16384");
  EXPECT_EQ(JsonAt(defaults, "limits.connections_per_address"), "0");
  EXPECT_THAT(JsonAt(defaults, "limits.parameters"), MatchesRegex("[1-9][0-9]{6,}"));
  EXPECT_EQ(JsonAt(defaults, "limits.tensors"), "1000000");
  EXPECT_EQ(JsonAt(defaults, "limits.tensor_name_bytes"), "256");
  EXPECT_EQ(JsonAt(defaults, "limits.dimensions"), "8");
  EXPECT_EQ(JsonAt(defaults, "limits.join_bytes"), "67108864");
  EXPECT_EQ(JsonAt(defaults, "limits.join_time"), "60s");
  EXPECT_EQ(JsonAt(defaults, "limits.workers"), "1024");
  EXPECT_EQ(JsonAt(defaults, "limits.worker_name_bytes"), "128");
  EXPECT_EQ(JsonAt(defaults, "limits.observers"), "16");
  EXPECT_EQ(JsonAt(defaults, "limits.observers_pulls"), "8");
  EXPECT_THAT(JsonAt(defaults, "limits.bytes_in_flight"), MatchesRegex("[1-9][0-9]{6,}"));
  EXPECT_EQ(JsonAt(defaults, "limits.lease"), "10s");
  const std::string tight = ConfigOf({"--max-streams=32", "--handshake-timeout=2.5",
                                      "--max-connections=100", "--max-connections-per-address=20",
                                      "--max-workers=8", "--max-in-flight=12", "--lease=3"});
  EXPECT_EQ(JsonAt(tight, "limits.streams_per_connection"), "32");
  EXPECT_EQ(JsonAt(tight, "limits.connections"), "100");
  EXPECT_EQ(JsonAt(tight, "limits.connections_per_address"), "20");
  EXPECT_EQ(JsonAt(tight, "limits.handshake"), "2.500s");
  EXPECT_EQ(JsonAt(tight, "limits.workers"), "8");
  EXPECT_EQ(JsonAt(tight, "limits.bytes_in_flight"), "12000000");
  EXPECT_EQ(JsonAt(tight, "limits.lease"), "3s");
}

TEST(ConfigTest, TellsWhatTheFlagsComeTo) {
  const std::string config =
      ConfigOf({"--listen=127.0.0.1:7070", "--mode=backup", "--workers=4", "--clip-norm=2",
                "--start-timeout=60", "--threads=3", "--checkpoint-dir=/c"});
  EXPECT_EQ(JsonAt(config, "listen"), "127.0.0.1:7070");
  EXPECT_EQ(JsonAt(config, "workers"), "4");
  EXPECT_EQ(JsonAt(config, "consistency.mode"), "BACKUP");
  EXPECT_EQ(JsonAt(config, "consistency.quorum"), "3");
  EXPECT_EQ(JsonAt(config, "guards.clip_norm"), "2");
  EXPECT_EQ(JsonAt(config, "guards.on_divergence"), "warn");
  EXPECT_EQ(JsonAt(config, "start_timeout"), "60s");
  EXPECT_EQ(JsonAt(config, "threads"), "3");
  EXPECT_EQ(JsonAt(config, "checkpoints.directory"), "/c");
  EXPECT_EQ(JsonAt(config, "tls"), "absent");
}

TEST(ConfigTest, TellsWhereTheMetricsAre) {
  EXPECT_EQ(JsonAt(ConfigOf({"--metrics=127.0.0.1:9464"}), "metrics"), "127.0.0.1:9464");
  EXPECT_EQ(JsonAt(ConfigOf({}), "metrics"), "");
  EXPECT_EQ(JsonAt(ConfigOf({"--page=127.0.0.1:8080"}), "page"), "127.0.0.1:8080");
  EXPECT_EQ(JsonAt(ConfigOf({}), "page"), "");
  EXPECT_EQ(JsonAt(ConfigOf({"--page=127.0.0.1:8080", "--page-runs=/r"}), "page_runs"), "/r");
}

TEST(ConfigTest, TellsWhichFilesOfEventsItWrites) {
  EXPECT_EQ(JsonAt(ConfigOf({"--json-log=/l/job.jsonl"}), "json_log"), "/l/job.jsonl");
  EXPECT_EQ(JsonAt(ConfigOf({}), "json_log"), "");
  EXPECT_EQ(JsonAt(ConfigOf({"--tensorboard=/runs/a"}), "tensorboard"), "/runs/a");
  EXPECT_EQ(JsonAt(ConfigOf({}), "tensorboard"), "");
}

TEST(ConfigTest, AStartTimeoutOf0IsNone) {
  EXPECT_EQ(JsonAt(ConfigOf({"--listen=127.0.0.1:7070", "--start-timeout=0"}), "start_timeout"),
            "absent");
}

TEST(ConfigTest, TellsOfSecretsOnlyThatThereAreSome) {
  const std::string path = ::testing::TempDir() + "/config_token";
  std::ofstream(path) << "open sesame\n";
  ASSERT_EQ(chmod(path.c_str(), 0600), 0);
  const std::string config = ConfigOf({"--listen=0.0.0.0:7070", "--token-file=" + path,
                                       "--tls-cert=c.pem", "--tls-key=k.pem", "--tls-ca=a.pem"});
  EXPECT_EQ(JsonAt(config, "token"), "true");
  EXPECT_EQ(JsonAt(config, "tls.key"), "k.pem");
  EXPECT_THAT(config, Not(HasSubstr("sesame")));
}

TEST(ConfigTest, IsRefusedAsTheServerWouldBe) {
  EXPECT_THAT(DescribeConfig(ParseServerFlags({"--mode=fast"})),
              IsRefusedFor("mode \"fast\" is unknown"));
  EXPECT_THAT(DescribeConfig(ParseServerFlags({"--listen=0.0.0.0:7070"})),
              IsRefusedFor("--insecure-on-network"));
}

}  // namespace
}  // namespace sluice
