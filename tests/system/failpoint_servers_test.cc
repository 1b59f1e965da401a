// Two servers with journals, one of which dies at each point on its way to the disk, while the
// workers train on: every push that was answered is part of the parameters and of the rows of a
// table, once, and the job ends with the same bits as a job whose servers never die. There is too
// little memory for the table, so rows lie on the disk, too.
//
// SLUICE_KILLS is how often a server dies at each point.

#include <signal.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/process/launch.h"
#include "tests/testing/process/process.h"
#include "tests/testing/process/programs.h"
#include "tests/testing/seed.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

// Which server dies, where, and how often it is there before, at most.
struct Point {
  int server;
  const char* name;
  uint64_t most;
};

constexpr Point kPoints[] = {
    // The first server: an incarnation's start, a step, a checkpoint.
    {0, "life.create.after", 1},
    {0, "life.sync-directory.after", 1},
    {0, "journal.create.after", 3},
    {0, "journal.write.torn", 40},
    {0, "journal.sync.before", 20},
    {0, "journal.sync.after", 20},
    {0, "kept.rename.before", 20},
    {0, "kept.rename.after", 20},  // the last before workers are told
    {0, "rows.create.after", 3},
    {0, "rows.write.torn", 20},
    {0, "rows.rename.before", 3},
    {0, "rows.rename.after", 3},
    {0, "rows.remove.after", 2},
    {0, "stripe.write.torn", 5},
    {0, "stripe.rename.after", 3},
    {0, "checkpoint.create.after", 3},
    {0, "checkpoint.write.torn", 5},
    {0, "checkpoint.rename.before", 3},
    {0, "checkpoint.rename.after", 3},
    {0, "checkpoint.remove.after", 3},
    {0, "journal.remove.after", 2},
    // The other one: a step, its part of a checkpoint.
    {1, "journal.create.after", 3},
    {1, "journal.write.torn", 40},
    {1, "journal.sync.before", 20},
    {1, "journal.sync.after", 20},  // the last before it tells the first server
    {1, "rows.create.after", 3},
    {1, "rows.write.torn", 20},
    {1, "rows.rename.after", 3},
    {1, "rows.remove.after", 2},
    {1, "stripe.create.after", 3},
    {1, "stripe.write.torn", 5},
    {1, "stripe.rename.before", 3},
    {1, "stripe.rename.after", 3},
    {1, "stripe.sync-directory.after", 3},
    {1, "stripe.remove.after", 3},
    {1, "journal.remove.after", 2},
};

constexpr int kServers = 2;
constexpr int kStepsPerKill = 60;  // more than it takes to reach any point
constexpr absl::Duration kPatience = absl::Minutes(5);

int Kills() {
  const char* const asked = std::getenv("SLUICE_KILLS");
  return asked == nullptr ? 1 : std::atoi(asked);
}

int Steps() { return kStepsPerKill * (Kills() + 1); }

// A job of two servers and two workers, whose optimizer has momentum.
class TwoServers {
 public:
  explicit TwoServers(const std::string& name)
      : directory_(::testing::TempDir() + "two_servers_" + name) {
    std::filesystem::remove_all(directory_);
    for (int i = 0; i < kServers; ++i) addresses_.push_back(absl::StrCat("127.0.0.1:", FreePort()));
  }

  // `program` is sluice_server, or another one with the same flags.
  std::unique_ptr<Process> Start(int server, const Words& program = {
                                                 RunfilePath("server/sluice_server")}) const {
    return sluice::Start(
        With(program, {absl::StrCat("--servers=", addresses_[0], ",", addresses_[1]),
                       absl::StrCat("--index=", server), "--workers=2", "--checkpoint-every=7",
                       "--keep-checkpoints=2", "--durability=journal",
                       // Too little memory for half of the rows.
                       "--max-table-memory=0.03", "--table-dir=" + directory_,
                       absl::StrCat("--checkpoint-dir=", directory_, "/", server)}));
  }

  std::unique_ptr<Process> StartWorker(int gradient) const {
    return sluice::Start({RunfilePath("tests/testing/process/pushing_worker_program"),
                          absl::StrCat("--name=worker", gradient), "--server=" + addresses_[0],
                          absl::StrCat("--gradient=", gradient), absl::StrCat("--steps=", Steps()),
                          "--elements=4096", "--momentum=0.9", "--rows=50"});
  }

 private:
  const std::string directory_;
  std::vector<std::string> addresses_;
};

// What a process has said that is killed now.
std::string LastWords(Process& process) {
  process.Signal(SIGKILL);
  process.Wait().IgnoreError();
  return process.output();
}

class FailpointServersTest : public ::testing::TestWithParam<Point> {
 protected:
  // Waits for the job's end. Returns the checksums of the parameters and of the rows.
  static std::string Finish(const std::vector<std::unique_ptr<Process>>& workers,
                            const std::vector<std::unique_ptr<Process>>& servers) {
    std::set<std::string> rows;
    for (const auto& worker : workers) {
      EXPECT_THAT(worker->Wait(kPatience), IsOkAndHolds(0)) << worker->output();
      // One lost would be made good for by another; one that counts twice would leave one out.
      EXPECT_THAT(LinesWith(worker->output(), "pushes that counted"),
                  ElementsAre(absl::StrCat("pushes that counted: ", Steps())))
          << worker->output();
      rows.insert(absl::StrJoin(LinesWith(worker->output(), "checksum of all rows"), ", "));
    }
    EXPECT_THAT(rows, SizeIs(1)) << "the workers ended with different rows";
    for (const auto& server : servers) {
      EXPECT_THAT(server->Wait(), IsOkAndHolds(0)) << server->output();
    }
    EXPECT_THAT(Counters(servers[0]->output()),
                AllOf(HasSubstr(absl::StrCat(Steps(), " steps")), Not(HasSubstr("unbalanced"))));
    return ClosingRows(servers[0]->output())["parameters' CRC-32"] + ", " + *rows.begin();
  }

  // Of servers that nothing happens to; run once.
  static const std::string& Undisturbed() {
    static const auto* const checksum = [] {
      const TwoServers job("undisturbed");
      std::vector<std::unique_ptr<Process>> servers;
      for (const int server : {0, 1}) servers.push_back(job.Start(server));
      std::vector<std::unique_ptr<Process>> workers;
      for (const int gradient : {1, 3}) workers.push_back(job.StartWorker(gradient));
      return new std::string(Finish(workers, servers));
    }();
    return *checksum;
  }
};

TEST_P(FailpointServersTest, LosesNothingAndCountsNothingTwice) {
  const Point& point = GetParam();
  const TwoServers job(absl::StrCat(point.name, point.server));
  SCOPED_TRACE(HowToRepeat());
  std::mt19937_64 random(RunSeed());
  std::vector<std::unique_ptr<Process>> servers(kServers);
  const int other = 1 - point.server;
  servers[other] = job.Start(other);
  std::vector<std::unique_ptr<Process>> workers;
  for (const int gradient : {1, 3}) workers.push_back(job.StartWorker(gradient));
  for (int kill = 0; kill < Kills(); ++kill) {
    const std::string failpoint = absl::StrCat(point.name, ":", 1 + random() % point.most);
    servers[point.server] = job.Start(
        point.server, {RunfilePath("tests/testing/durable/failpoint_server_program"), failpoint});
    ASSERT_THAT(servers[point.server]->Wait(), IsOkAndHolds(-SIGKILL))
        << failpoint << " was not reached\n"
        << servers[point.server]->output() << "the other server:\n"
        << LastWords(*servers[other]) << "the workers:\n"
        << LastWords(*workers[0]) << LastWords(*workers[1]);
  }
  servers[point.server] = job.Start(point.server);
  EXPECT_EQ(Finish(workers, servers), Undisturbed());
}

std::string NameOf(const ::testing::TestParamInfo<Point>& info) {
  std::string name = absl::StrCat("server", info.param.server, "_", info.param.name);
  for (char& c : name) c = c == '.' || c == '-' ? '_' : c;
  return name;
}

INSTANTIATE_TEST_SUITE_P(EveryPoint, FailpointServersTest, ::testing::ValuesIn(kPoints), NameOf);

}  // namespace
}  // namespace sluice
