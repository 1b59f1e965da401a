// A real server that dies at each point on its way to the disk, again and again, while its workers
// train on: every push that was answered is part of the parameters, once, no step is made twice,
// and the job ends with the same bits as a job whose server never dies.
//
// SLUICE_KILLS is how often it dies at each point; how long it takes to come back is printed.

#include <signal.h>

#include <iostream>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/durable/server_lives.h"
#include "tests/testing/process/record_sheet.h"
#include "tests/testing/quantile.h"
#include "tests/testing/seed.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// How often it is reached, at most, before the server dies there.
struct Point {
  const char* name;
  uint64_t most;
};

// In the order of an incarnation: its start, a step, a checkpoint, and removing files that the
// checkpoint replaces.
constexpr Point kPoints[] = {
    {"life.create.after", 1},        {"life.sync-directory.after", 1},
    {"journal.create.after", 3},     {"journal.sync-directory.after", 3},
    {"journal.write.before", 40},    {"journal.write.torn", 40},
    {"journal.sync.before", 20},     {"journal.sync.after", 20},
    {"kept.write.torn", 20},         {"kept.rename.before", 20},
    {"kept.rename.after", 20},  // the last before workers are told
    {"checkpoint.create.after", 3},  {"checkpoint.write.torn", 10},
    {"checkpoint.sync.before", 3},   {"checkpoint.rename.before", 3},
    {"checkpoint.rename.after", 3},  {"checkpoint.sync-directory.after", 3},
    {"checkpoint.remove.before", 3}, {"checkpoint.remove.after", 3},
    {"journal.remove.before", 3},    {"journal.remove.after", 3},
};

constexpr uint64_t kStepsPerKill = 60;  // more than it takes to reach any point
constexpr absl::Duration kPatience = absl::Minutes(5);

int Kills() {
  const char* const asked = std::getenv("SLUICE_KILLS");
  return asked == nullptr ? 2 : std::atoi(asked);
}

uint64_t Steps() { return kStepsPerKill * (Kills() + 1); }

// A job of two workers whose optimizer has momentum, so that checkpoints hold more than parameters.
class FailpointServerTest : public ::testing::TestWithParam<Point> {
 protected:
  static ServerLives LivesIn(const std::string& name) {
    return ServerLives(
        ::testing::TempDir() + "failpoints_" + name,
        {"--workers=2", "--checkpoint-every=7", "--keep-checkpoints=2", "--durability=journal"});
  }

  static std::unique_ptr<Process> StartWorker(const ServerLives& lives, int gradient) {
    return lives.StartWorker(
        absl::StrCat("worker", gradient),
        {absl::StrCat("--gradient=", gradient), absl::StrCat("--steps=", Steps()),
         "--elements=4096", "--momentum=0.9"});
  }

  // Waits for the job's end. Returns the parameters' checksum.
  static std::string Finish(Process& server, const std::vector<Process*>& workers) {
    for (Process* worker : workers) {
      EXPECT_THAT(worker->Wait(kPatience), IsOkAndHolds(0)) << worker->output();
      // One lost would be made good for by another; one that counts twice would leave one out.
      EXPECT_THAT(LinesWith(worker->output(), "pushes that counted"),
                  ElementsAre(absl::StrCat("pushes that counted: ", Steps())));
    }
    EXPECT_THAT(server.Wait(), IsOkAndHolds(0)) << server.output();
    EXPECT_THAT(Counters(server.output()),
                AllOf(HasSubstr(absl::StrCat(Steps(), " steps")), Not(HasSubstr("unbalanced"))));
    return ClosingRows(server.output())["parameters' CRC-32"];
  }

  // A server that nothing happens to.
  static void SetUpTestSuite() {
    const ServerLives lives = LivesIn("undisturbed");
    const auto server = lives.StartAndAwait();
    const auto first = StartWorker(lives, 1);
    const auto second = StartWorker(lives, 3);
    undisturbed_ = Finish(*server, {first.get(), second.get()});
  }

  static void TearDownTestSuite() {
    RecordSheet sheet("failpoints", RunSeed());
    sheet.Counts("kills", kills_);
    sheet.Count("steps_of_each_job", Steps());
    sheet.Times("recovery_s", recoveries_);
    EXPECT_THAT(sheet.Write(), IsOk());
    if (recoveries_.empty()) return;
    std::cout << recoveries_.size() << " times the server came back: p50 "
              << Quantile(recoveries_, 0.5) << ", p99 " << Quantile(recoveries_, 0.99) << "\n";
  }

  static std::string undisturbed_;
  static std::map<std::string, uint64_t> kills_;
  static std::vector<absl::Duration> recoveries_;
};

std::string FailpointServerTest::undisturbed_;
std::map<std::string, uint64_t> FailpointServerTest::kills_;
std::vector<absl::Duration> FailpointServerTest::recoveries_;

TEST_P(FailpointServerTest, LosesNothingAndCountsNothingTwice) {
  const Point& point = GetParam();
  const ServerLives lives = LivesIn(point.name);
  const auto first = StartWorker(lives, 1);
  const auto second = StartWorker(lives, 3);
  SCOPED_TRACE(HowToRepeat());
  std::mt19937_64 random(RunSeed());
  Incarnation newest;
  for (int kill = 0; kill <= Kills(); ++kill) {
    const std::string failpoint = absl::StrCat(point.name, ":", 1 + random() % point.most);
    const bool last = kill == Kills();
    const absl::Time started = absl::Now();
    const auto server =
        last ? lives.Start()
             : lives.Start(
                   {RunfilePath("tests/testing/durable/failpoint_server_program"), failpoint});
    // It may die before it answers; then nobody learns the number of its incarnation.
    if (server->WaitForOutput("listening on").ok()) {
      if (kill > 0) recoveries_.push_back(absl::Now() - started);
      EXPECT_GT(lives.NewestIncarnation(), newest);
      newest = lives.NewestIncarnation();
    }
    if (last) {
      EXPECT_EQ(Finish(*server, {first.get(), second.get()}), undisturbed_);
      return;
    }
    ASSERT_THAT(server->Wait(), IsOkAndHolds(-SIGKILL)) << failpoint << " was not reached\n"
                                                        << server->output();
    ++kills_[point.name];
    for (Process* worker : {first.get(), second.get()}) ServerLives::ExpectAtWork(*worker);
  }
}

std::string NameOf(const ::testing::TestParamInfo<Point>& info) {
  std::string name = info.param.name;
  for (char& c : name) c = c == '.' || c == '-' ? '_' : c;
  return name;
}

INSTANTIATE_TEST_SUITE_P(EveryPoint, FailpointServerTest, ::testing::ValuesIn(kPoints), NameOf);

}  // namespace
}  // namespace sluice
