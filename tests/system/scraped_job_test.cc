// --metrics, as a real Prometheus reads it from a real job.

#include <signal.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <regex>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/net/address.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/web/http/raw_client.h"
#include "tests/testing/json.h"
#include "tests/testing/process/launch.h"
#include "tests/testing/process/process.h"
#include "tests/testing/process/programs.h"
#include "tests/testing/server/inspection.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr uint64_t kSteps = 10;
constexpr uint64_t kStop = 5;  // the step at which worker b stops
constexpr uint64_t kElements = 4096;

// A series, "sluice_pushes_total{disposition=\"stale\"}", and its value.
using Samples = std::map<std::string, double>;

class Prometheus {
 public:
  // Scrapes the server whose metrics are at `target` each second.
  explicit Prometheus(const std::string& target)
      : url_(absl::StrCat("http://127.0.0.1:", FreePort())) {
    const std::string folder = TestPath("prometheus");
    std::filesystem::create_directories(folder);
    std::ofstream(folder + "/prometheus.yml")
        << "global: {scrape_interval: 1s, scrape_timeout: 1s}\n"
        << "rule_files: ['" << RunfilePath("server/metrics/alerts.yml") << "']\n"
        << "scrape_configs: [{job_name: sluice, static_configs: [{targets: ['" << target
        << "']}]}]\n";
    process_ = Start({"prometheus", absl::StrCat("--config.file=", folder, "/prometheus.yml"),
                      absl::StrCat("--storage.tsdb.path=", folder, "/data"),
                      absl::StrCat("--web.listen-address=", url_.substr(strlen("http://")))});
    EXPECT_THAT(process_->WaitForOutput("Server is ready to receive web requests"), IsOk());
  }

  // All that it knows of the job now.
  Samples Query() const {
    const std::string all = OutputOf({"promtool", "query", "instant", url_, "{job=\"sluice\"}"}, 0);
    Samples samples;
    for (const absl::string_view line : absl::StrSplit(all, '\n', absl::SkipEmpty())) {
      const std::vector<std::string> parts = absl::StrSplit(line, " => ");
      const std::vector<std::string> value = absl::StrSplit(parts.back(), ' ');
      EXPECT_TRUE(absl::SimpleAtod(value[0], &samples[SeriesOf(parts[0])])) << line;
    }
    return samples;
  }

  // Asks until some series answer a query, or none does. After a scrape that came too late all are
  // gone until the next one.
  bool AwaitSeriesOfQuery(const std::string& query, bool is_absent) const {
    const absl::Time until = absl::Now() + Process::kPatience;
    while ((SeriesOfQuery(query) == 0) != is_absent) {
      if (absl::Now() > until) return false;
    }
    return true;
  }

  // Asks until it knows that.
  Samples Await(const std::function<bool(Samples&)>& known) const {
    const absl::Time until = absl::Now() + Process::kPatience;
    Samples samples = Query();
    while (!known(samples) && absl::Now() < until) samples = Query();
    EXPECT_TRUE(known(samples)) << process_->output();
    return samples;
  }

 private:
  // How many series answer a query.
  size_t SeriesOfQuery(const std::string& query) const {
    const std::string answer = OutputOf({"promtool", "query", "instant", url_, query}, 0);
    const std::vector<std::string> lines = absl::StrSplit(answer, '\n', absl::SkipEmpty());
    return lines.size();
  }

  // Without the labels that Prometheus adds, and the spaces.
  static std::string SeriesOf(const std::string& shown) {
    static const auto* const added = new std::regex(R"re((instance="[^"]*"|job="sluice")(, )?)re");
    std::string series = std::regex_replace(shown, *added, "");
    series = std::regex_replace(series, std::regex(", ?\\}"), "}");
    return std::regex_replace(series, std::regex("\\{\\}|, "), "");
  }

  const std::string url_;
  std::unique_ptr<Process> process_;
};

Words Worker(const std::string& name, const Words& flags) {
  return With(
      {RunfilePath("tests/testing/process/pushing_worker_program"), absl::StrCat("--name=", name),
       absl::StrCat("--steps=", kSteps), "--gradient=1", absl::StrCat("--elements=", kElements)},
      flags);
}

std::string MetricsOf(Process& server) {
  const auto target = server.WaitForOutput("metrics at http://(127.0.0.1:[0-9]+)/metrics");
  EXPECT_THAT(target, IsOk());
  return target.value_or("");
}

std::string Scrape(const std::string& target) {
  RawClient client(*ParseAddress(target));
  client.Ask("GET /metrics", "Host: localhost\r\nConnection: close\r\n");
  return client.ReadAll();
}

// That number of GetServerState's answer.
double Inspected(const std::string& state, const std::string& path) {
  double number = 0;
  EXPECT_TRUE(absl::SimpleAtod(JsonAt(state, path), &number)) << path << " in " << state;
  return number;
}

// What the panels of the dashboard ask, for all jobs and for the last ten seconds.
std::vector<std::string> QueriesOfTheDashboard() {
  std::ifstream file(RunfilePath("server/metrics/grafana.json"));
  const std::string dashboard{std::istreambuf_iterator<char>(file), {}};
  std::vector<std::string> queries;
  for (int panel = 0;; ++panel) {
    const std::string targets = absl::StrCat("panels.", panel, ".targets");
    if (JsonAt(dashboard, absl::StrCat("panels.", panel, ".type")) == "absent") return queries;
    for (int target = 0;; ++target) {
      const std::string query = JsonAt(dashboard, absl::StrCat(targets, ".", target, ".expr"));
      if (query == "absent") break;
      queries.push_back(absl::StrReplaceAll(
          query, {{"$job", ".*"}, {"$instance", ".*"}, {"$__rate_interval", "10s"}}));
    }
  }
}

void ExpectPushesOf(const std::string& state, Samples& samples) {
  for (const char* disposition :
       {"accepted", "stale", "skipped", "duplicate", "rejected", "aborted"}) {
    EXPECT_EQ(samples[absl::StrCat("sluice_pushes_total{disposition=\"", disposition, "\"}")],
              Inspected(state, absl::StrCat("pushes.", disposition)))
        << disposition;
  }
}

void ExpectBytesOf(const std::string& state, Samples& samples) {
  const auto bytes = [&](const char* metric, const char* labels) {
    return samples[absl::StrCat("sluice_", metric, "{", labels, "server=\"0\"}")];
  };
  const char* const received = "direction=\"received\"";
  const char* const sent = "direction=\"sent\"";
  EXPECT_EQ(samples["sluice_tensor_bytes_total{direction=\"received\"}"],
            Inspected(state, "bytesReceived"));
  EXPECT_EQ(samples["sluice_tensor_bytes_total{direction=\"sent\"}"],
            Inspected(state, "bytesSent"));
  EXPECT_EQ(bytes("wire_bytes_total", received), Inspected(state, "wireBytesReceived"));
  EXPECT_EQ(bytes("wire_bytes_total", sent), Inspected(state, "wireBytesSent"));
  const std::string int8 = absl::StrCat(received, "encoding=\"int8\"");
  EXPECT_EQ(bytes("encoding_tensor_bytes_total", int8.c_str()), 15 * 4 * kElements);
}

TEST(ScrapedJobTest, PrometheusKnowsWhatTheInspectorKnows) {
  Standalone server({"--metrics=127.0.0.1:0", "--workers=2", "--lease=5", "--wait-for-more",
                     "--shared-memory=off", "--durability=journal",
                     absl::StrCat("--checkpoint-dir=", TestPath("checkpoints"))});
  const Prometheus prometheus(MetricsOf(server.process()));
  const auto a = Start(Worker("a", {server.flag(), "--push-encoding=int8"}));
  const auto b = Start(
      Worker("b", {server.flag(), "--push-encoding=int8", absl::StrCat("--stop-at-step=", kStop)}));
  ASSERT_THAT(b->WaitForOutput("stopped at step"), IsOk());
  const std::string silence = "sluice_awaited_worker_silence_seconds{worker=\"b\"}";
  Samples waits = prometheus.Await([&](Samples& seen) { return seen.count(silence) > 0; });
  EXPECT_EQ(waits["sluice_step"], kStop);
  EXPECT_EQ(waits["sluice_awaited_workers"], 1);
  EXPECT_EQ(waits["sluice_workers{state=\"connected\"}"], 2);
  EXPECT_EQ(waits["sluice_phase{phase=\"training\"}"], 1);
  EXPECT_GE(waits["sluice_current_wait_seconds"], 1);
  const std::vector<std::string> queries = QueriesOfTheDashboard();
  EXPECT_GT(queries.size(), 30U);
  for (const std::string& query : queries) {
    // Nothing warns, and nobody has reported a measurement.
    const bool is_absent = absl::StrContains(query, "_warning{") ||
                           absl::StrContains(query, "sluice_measured_") ||
                           absl::StrContains(query, "sluice_checkpoint_age_");
    EXPECT_TRUE(prometheus.AwaitSeriesOfQuery(query, is_absent)) << query;
  }

  b->Signal(SIGKILL);
  ASSERT_THAT(a->Wait(), IsOkAndHolds(0)) << a->output();
  Samples ended = prometheus.Await([](Samples& seen) {
    return seen["sluice_step_seconds_count{server=\"0\"}"] == kSteps &&
           seen["sluice_workers{state=\"connected\"}"] == 0;
  });
  ReflectionClient client(server.address());
  const std::string state = Inspect(client, "GetServerState");
  EXPECT_EQ(ended["sluice_step"], kSteps);
  EXPECT_EQ(ended["sluice_pushes_total{disposition=\"accepted\"}"], kSteps + kStop);
  EXPECT_EQ(ended["sluice_gradient_staleness_steps_count"], kSteps + kStop);
  EXPECT_EQ(ended["sluice_workers{state=\"evicted\"}"], 1);
  EXPECT_EQ(ended["sluice_journal_sync_seconds_count{server=\"0\"}"], kSteps);
  EXPECT_EQ(ended["sluice_parameters"], kElements);
  EXPECT_EQ(ended["sluice_in_flight_bytes"], 0);
  EXPECT_EQ(ended["sluice_learning_rate"], Inspected(state, "learningRate"));
  ExpectPushesOf(state, ended);
  ExpectBytesOf(state, ended);
}

TEST(ScrapedJobTest, UnderMpirunTheServerOfRank0IsRead) {
  const auto job = Mpirun(
      {{1, ServerProgram({"--metrics=127.0.0.1:0"})}, {1, Worker("a", {"--stop-at-step=2"})}},
      RankDeath::kIsRecovered);
  const std::string target = MetricsOf(*job);
  ASSERT_THAT(job->WaitForOutput("stopped at step 2"), IsOk());
  EXPECT_THAT(Scrape(target), HasSubstr("\nsluice_step 2\n"));
}

TEST(ScrapedJobTest, PromtoolHasNothingToSayAgainstNamesAndHelp) {
  Standalone server({"--metrics=127.0.0.1:0"});
  const std::string response = Scrape(MetricsOf(server.process()));
  const std::string file = TestPath("metrics");
  std::ofstream(file) << response.substr(response.find("# HELP"));
  EXPECT_EQ(OutputOf({"sh", "-c", absl::StrCat("promtool check metrics < ", file)}, 0), "");
}

// The worker's gradients are bad from step 100 on, unless the learning rate is below 0.6.
TEST(ScrapedJobTest, AServerThatGoesBackCountsFrom0AtTheSameAddress) {
  Standalone server({"--metrics=127.0.0.1:0", "--on-divergence=restore", "--lease=30",
                     "--wait-for-more",
                     absl::StrCat("--checkpoint-dir=", TestPath("checkpoints"))});
  const std::string target = MetricsOf(server.process());
  OutputOf({RunfilePath("tests/testing/process/pushing_worker_program"), server.flag(),
            "--steps=1000", "--gradient=1", "--batch-time=0.002", "--elements=3",
            "--bad-from-step=100", "--bad-above-rate=0.6"},
           0);
  const std::string all_steps = "\nsluice_step_seconds_count{server=\"0\"} 1000\n";
  const absl::Time until = absl::Now() + Process::kPatience;
  std::string metrics = Scrape(target);
  while (!absl::StrContains(metrics, all_steps) && absl::Now() < until) metrics = Scrape(target);
  EXPECT_THAT(metrics,
              AllOf(HasSubstr(all_steps), HasSubstr("\nsluice_incarnation 2\n"),
                    HasSubstr("\nsluice_step 1000\n"), HasSubstr("\nsluice_learning_rate 0.5\n"),
                    HasSubstr("{disposition=\"accepted\"} 1000\n"),
                    HasSubstr("sluice_training_warning{kind=\"went_back\"} 1\n")));
}

TEST(ScrapedJobTest, AServerThatMayNotOrCannotListenThereSaysWhy) {
  const Standalone server({"--metrics=127.0.0.1:0"});
  EXPECT_THAT(OutputOf(ServerProgram({"--listen=127.0.0.1:0", "--metrics=0.0.0.0:9464"}), 2),
              HasSubstr("--metrics=0.0.0.0:9464 is beyond loopback"));
  EXPECT_THAT(OutputOf(ServerProgram({"--listen=127.0.0.1:0", "--metrics=9464"}), 2),
              HasSubstr("--metrics: address \"9464\" has no port"));
  EXPECT_THAT(
      OutputOf(
          ServerProgram({"--listen=127.0.0.1:0", absl::StrCat("--metrics=", server.address())}), 1),
      HasSubstr(absl::StrCat("cannot listen on ", server.address(), ": Address already")));
}

}  // namespace
}  // namespace sluice
