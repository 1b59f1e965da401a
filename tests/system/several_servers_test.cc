// Jobs with several servers, as a user starts them: under mpirun and by hand. They train to the
// same bits as one server, and end with a sentence when a server is lost.

#include <signal.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/process/launch.h"
#include "tests/testing/process/process.h"
#include "tests/testing/process/programs.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Ne;
using ::testing::Not;
using ::testing::Pair;

constexpr int kWorkers = 3;
constexpr int kSteps = 12;

// ---- Under mpirun ----

Words Train(const Words& flags) {
  return With(
      {RunfilePath("worker/sluice_train"), "--model=mlp", absl::StrCat("--max-steps=", kSteps),
       "--batch-size=16", "--seed=7", "--progress=off", "--no-test"},
      flags);
}

// The closing table of a job with three workers.
std::map<std::string, std::string> TrainWith(int servers, Words flags) {
  flags.push_back(absl::StrCat("--servers=", servers));
  const auto job = Mpirun({{servers + kWorkers, Train(flags)}});
  EXPECT_THAT(job->Wait(kJob), IsOkAndHolds(0)) << job->output();
  EXPECT_EQ(Counters(job->output()), "12 steps, 36 received: 36 accepted") << job->output();
  return ClosingRows(job->output());
}

struct Training {
  const char* name;
  Words flags;
};

class SameBitsTest : public ::testing::TestWithParam<Training> {};

TEST_P(SameBitsTest, SeveralServersTrainToTheBitsOfOne) {
  const std::string alone = TrainWith(1, GetParam().flags)["parameters' CRC-32"];
  ASSERT_NE(alone, "");
  for (const int servers : {2, 3}) {
    EXPECT_THAT(TrainWith(servers, GetParam().flags), Contains(Pair("parameters' CRC-32", alone)))
        << servers << " servers";
  }
}

INSTANTIATE_TEST_SUITE_P(
    , SameBitsTest,
    ::testing::Values(Training{"momentum", {"--momentum=0.9"}},
                      Training{"overlap", {"--momentum=0.9", "--overlap"}},
                      Training{"lamb", {"--optimizer=lamb", "--clip-norm=0.5"}},
                      Training{"tcp", {"--momentum=0.9", "--listen=127.0.0.1:0"}}),
    [](const auto& info) { return std::string(info.param.name); });

TEST(SeveralServersTest, OneProgramServesAndAnotherTrains) {
  const auto job = Mpirun({{2, ServerProgram({"--servers=2"})}, {kWorkers, Train({})}});
  EXPECT_THAT(job->Wait(kJob), IsOkAndHolds(0)) << job->output();
  EXPECT_EQ(Counters(job->output()), "12 steps, 36 received: 36 accepted") << job->output();
}

// ---- By hand ----

// Three servers and workers that push gradients of one number; see pushing_worker_program.cc.
class ByHandTest : public ::testing::Test {
 protected:
  static constexpr int kServers = 3;

  ByHandTest() {
    std::vector<std::string> addresses;
    for (int i = 0; i < kServers; ++i) addresses.push_back(absl::StrCat("127.0.0.1:", FreePort()));
    first_ = addresses[0];
    list_ = absl::StrJoin(addresses, ",");
  }

  std::unique_ptr<Process> StartServer(int index) const {
    return Start(ServerProgram(
        {"--servers=" + list_, absl::StrCat("--index=", index), "--workers=2", "--lease=2"}));
  }

  // In the order of their indices, but the first one is started last.
  std::vector<std::unique_ptr<Process>> StartServers() const {
    std::vector<std::unique_ptr<Process>> servers(kServers);
    for (int i = kServers - 1; i >= 0; --i) servers[i] = StartServer(i);
    EXPECT_THAT(servers[0]->WaitForOutput("listening on"), IsOk());
    return servers;
  }

  std::unique_ptr<Process> StartWorker(int gradient, uint64_t steps) const {
    return Start({RunfilePath("tests/testing/process/pushing_worker_program"), "--server=" + first_,
                  absl::StrCat("--name=worker", gradient), absl::StrCat("--steps=", steps),
                  absl::StrCat("--gradient=", gradient)});
  }

  std::string first_;
  std::string list_;
};

TEST_F(ByHandTest, ServersThatStartInAnyOrderMeetAndEndTogether) {
  auto servers = StartServers();
  const auto one = StartWorker(1, 20);
  const auto three = StartWorker(3, 20);
  for (Process* worker : {one.get(), three.get()}) {
    EXPECT_THAT(worker->Wait(kJob), IsOkAndHolds(0)) << worker->output();
    EXPECT_THAT(LinesWith(worker->output(), "parameters at"),
                ElementsAre("parameters at step 20: -40 to -40"));
  }
  for (const auto& server : servers) {
    EXPECT_THAT(server->Wait(kJob), IsOkAndHolds(0)) << server->output();
  }
  EXPECT_EQ(Counters(servers[0]->output()), "20 steps, 40 received: 40 accepted")
      << servers[0]->output();
}

TEST_F(ByHandTest, GoesOnWithoutAWorkerThatIsKilled) {
  auto servers = StartServers();
  const auto one = StartWorker(1, 1'000'000);
  const auto three = StartWorker(3, 400);
  ASSERT_THAT(WaitForAccepted(first_, 40), IsOk());
  one->Signal(SIGKILL);
  EXPECT_THAT(three->Wait(kJob), IsOkAndHolds(0)) << three->output();
  for (const auto& server : servers) {
    EXPECT_THAT(server->Wait(kJob), IsOkAndHolds(0)) << server->output();
  }
  EXPECT_THAT(Counters(servers[0]->output()), HasSubstr("400 steps")) << servers[0]->output();
  EXPECT_THAT(Counters(servers[0]->output()), Not(HasSubstr("unbalanced")));
}

TEST_F(ByHandTest, EndsWithASentenceWhenAServerHasLostItsStripe) {
  auto servers = StartServers();
  const auto one = StartWorker(1, 1'000'000);
  const auto three = StartWorker(3, 1'000'000);
  ASSERT_THAT(WaitForAccepted(first_, 40), IsOk());
  servers[1]->Signal(SIGKILL);
  for (const auto& server : servers) {
    EXPECT_THAT(server->Wait(kJob), IsOkAndHolds(Ne(0))) << server->output();
  }
  EXPECT_THAT(LinesWith(servers[0]->output(), "server 1 of 3"),
              Contains(HasSubstr("the job cannot go on")))
      << servers[0]->output();
  for (Process* worker : {one.get(), three.get()}) {
    EXPECT_THAT(worker->Wait(kJob), IsOkAndHolds(Ne(0))) << worker->output();
  }
}

TEST_F(ByHandTest, RefusesAnotherServerOfTheSameIndex) {
  const auto servers = StartServers();
  const auto one = StartWorker(1, 1'000'000);
  const auto three = StartWorker(3, 1'000'000);
  ASSERT_THAT(WaitForAccepted(first_, 10), IsOk());
  const auto twice = StartServer(2);  // its port is taken
  EXPECT_THAT(twice->Wait(kJob), IsOkAndHolds(1)) << twice->output();
  const auto again = Start(ServerProgram(
      {"--servers=" + absl::StrCat(first_, ",127.0.0.1:", FreePort(), ",127.0.0.1:", FreePort()),
       "--index=2"}));
  EXPECT_THAT(again->Wait(kJob), IsOkAndHolds(2)) << again->output();
}

}  // namespace
}  // namespace sluice
