// Several servers that are started by hand, with workers that push gradients of one value (see
// pushing_worker_program.cc): in which order they may come, and how the job ends when one of them
// dies.

#include "tests/system/servers_by_hand.h"

#include <signal.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/process/launch.h"
#include "tests/testing/process/process.h"
#include "tests/testing/process/programs.h"
#include "tests/testing/server/certificates.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

using ServersByHandTest = ServersByHand;

TEST_F(ServersByHandTest, TheFirstServerMayComeFirst) {
  StartServers({0, 2, 1});
  StartWorkers(20);
  ExpectTrained(20);
}

TEST_F(ServersByHandTest, TheFirstServerMayComeLast) {
  StartServers({1, 2, 0});
  StartWorkers(20);
  ExpectTrained(20);
}

TEST_F(ServersByHandTest, WorkersMayComeBeforeAllServers) {
  StartWorkers(20);
  for (const auto& worker : workers_) {
    ASSERT_THAT(worker->WaitForOutput("waiting up to 1m for a server"), IsOk());
  }
  StartServers({0, 1, 2});
  ExpectTrained(20);
}

TEST_F(ServersByHandTest, WorkersMayComeBeforeSomeServers) {
  servers_.push_back(StartServer(0));
  StartWorkers(20);
  servers_.push_back(StartServer(1));
  servers_.push_back(StartServer(2));
  ExpectTrained(20);
}

TEST_F(ServersByHandTest, MeetOverTlsWithCertificatesOfServers) {
  const TestAuthority authority;
  server_flags_ = TlsFlags(WriteCredentials(authority.ServerOfSeveral(), TestPath("server")));
  worker_flags_ = TlsFlags(WriteCredentials(authority.Client({Role::kWorker}), TestPath("worker")));
  StartServers({2, 0, 1});
  StartWorkers(20);
  ExpectTrained(20);
  ExpectEachSays(servers_, ", with mutual TLS");
}

TEST_F(ServersByHandTest, RefuseACertificateWithoutTheServersRole) {
  const TestAuthority authority;
  server_flags_ = TlsFlags(WriteCredentials(authority.ServerOfSeveral(), TestPath("server")));
  const auto first = StartServer(0);
  server_flags_ = TlsFlags(WriteCredentials(authority.Client({Role::kWorker}), TestPath("other")));
  const auto other = StartServer(1);
  EXPECT_THAT(other->Wait(kJob), IsOkAndHolds(2));
  EXPECT_THAT(other->output(), HasSubstr("needs the role server"));
}

TEST_F(ServersByHandTest, GoOnWithoutAWorkerThatIsKilled) {
  leases_ = {"--lease=8"};
  StartServers();
  const auto one = StartWorker(1, 20, {"--stop-at-step=10", "--die"});
  workers_.push_back(StartWorker(3, 20));
  EXPECT_THAT(one->Wait(kJob), IsOkAndHolds(-SIGKILL)) << one->output();
  ExpectExitCodes(workers_, 0);
  ExpectExitCodes(servers_, 0);
  EXPECT_THAT(LinesWith(workers_[0]->output(), "parameters at"),
              ElementsAre("parameters at step 20: -50 to -50"));
  EXPECT_EQ(Counters(servers_[0]->output()), "20 steps, 30 received: 30 accepted");
}

// The 2^20 parameters are minus the sum of 10 gradients. The gradient of the other worker waits.
TEST_F(ServersByHandTest, ShowATensorToWhoeverAsksTheFirstOrNameTheFirst) {
  leases_ = {"--lease=8"};
  StartServers();
  workers_.push_back(StartWorker(3, 20));
  const auto one = StartWorker(1, 20, {"--stop-at-step=10"});
  ASSERT_THAT(one->WaitForOutput("stopped at step 10"), IsOk());
  const auto params = [](const std::string& address) {
    return Words{RunfilePath("tools/ctl/sluicectl"),
                 "--server=" + address,
                 "params",
                 "w",
                 "--first=1000000",
                 "--count=3"};
  };
  EXPECT_EQ(OutputOf(params(addresses_[0]), 0),
            "w [1048576] at step 10: 1048576 elements from 0 on\n"
            "min -20, max -20, mean -20, standard deviation 0, norm 20480, zeros 0.0 %\n"
            "values from 1000000 on: -20 -20 -20\n");
  EXPECT_THAT(OutputOf(params(addresses_[1]), 1), HasSubstr("call that, at " + addresses_[0]));
  one->Signal(SIGKILL);
  ExpectExitCodes(workers_, 0);
  ExpectExitCodes(servers_, 0);
}

TEST_F(ServersByHandTest, AccountForAWorkerThatIsKilledAtAnyMoment) {
  leases_ = {"--lease=8"};
  StartServers();
  const auto one = StartWorker(1, kWithoutEnd, {"--batch-time=0.02"});
  workers_.push_back(StartWorker(3, 100, {"--batch-time=0.02"}));
  ASSERT_THAT(WaitForAccepted(first(), 40), IsOk());
  one->Signal(SIGKILL);
  ExpectExitCodes(workers_, 0);
  ExpectExitCodes(servers_, 0);
  EXPECT_THAT(LinesWith(workers_[0]->output(), "pushes that counted"),
              ElementsAre("pushes that counted: 100"));
  EXPECT_THAT(
      Counters(servers_[0]->output()),
      AllOf(HasSubstr("100 steps"), Not(HasSubstr("unbalanced")), Not(HasSubstr("in progress"))));
}

TEST_F(ServersByHandTest, WaitForAServerThatStandsStill) {
  StartServers();
  StartWorkers(60, {"--batch-time=0.05"});
  ASSERT_THAT(WaitForAccepted(first(), 20), IsOk());
  servers_[1]->Signal(SIGSTOP);
  AwaitStandstill();
  servers_[1]->Signal(SIGCONT);
  ExpectTrained(60);
}

TEST_F(ServersByHandTest, EndTheJobOfAServerThatWasKilled) {
  StartServers();
  StartWorkers(kWithoutEnd, {"--connect-timeout=5"});
  ASSERT_THAT(WaitForAccepted(first(), 40), IsOk());
  servers_[1]->Signal(SIGKILL);
  EXPECT_THAT(servers_[1]->Wait(), IsOkAndHolds(-SIGKILL));
  servers_.erase(servers_.begin() + 1);
  ExpectExitCodes(servers_, 1);
  ExpectExitCodes(workers_, 3);
  EXPECT_THAT(LinesWith(servers_[0]->output(), "the job cannot go on"),
              ElementsAre(HasSubstr("server 1 of 3, at " + addresses_[1])));
  EXPECT_THAT(servers_[1]->output(), HasSubstr("the first server has ended the job"));
  ExpectEachSays(workers_, "server 1 of 3");
}

TEST_F(ServersByHandTest, EndTheJobOfAServerThatHasLostItsStripe) {
  StartServers();
  StartWorkers(kWithoutEnd, {"--connect-timeout=5"});
  ASSERT_THAT(WaitForAccepted(first(), 40), IsOk());
  servers_[1]->Signal(SIGKILL);
  EXPECT_THAT(servers_[1]->Wait(), IsOkAndHolds(-SIGKILL));
  servers_[1] = StartServer(1);
  ExpectExitCodes(servers_, 1);
  ExpectExitCodes(workers_, 3);
  EXPECT_THAT(LinesWith(servers_[0]->output(), "the job cannot go on"),
              ElementsAre(HasSubstr("server 1 of 3, at " + addresses_[1])));
  ExpectEachSays(workers_, "server 1 of 3");
}

TEST_F(ServersByHandTest, EndWithoutTheFirstServer) {
  StartServers();
  StartWorkers(kWithoutEnd, {"--connect-timeout=5"});
  ASSERT_THAT(WaitForAccepted(first(), 40), IsOk());
  servers_[0]->Signal(SIGKILL);
  EXPECT_THAT(servers_[0]->Wait(), IsOkAndHolds(-SIGKILL));
  servers_.erase(servers_.begin());
  ExpectExitCodes(servers_, 1);
  ExpectExitCodes(workers_, 3);
  ExpectEachSays(servers_, "cannot reach the first server, at " + first() + ", any more");
  ExpectEachSays(workers_, "lost the server at " + first());
}

TEST_F(ServersByHandTest, EndInGoodOrderAfterCtrlC) {
  StartServers();
  StartWorkers(kWithoutEnd);
  ASSERT_THAT(WaitForAccepted(first(), 40), IsOk());
  for (const auto& server : servers_) server->Signal(SIGINT);
  ExpectExitCodes(servers_, 0);
  ExpectExitCodes(workers_, 3);
  EXPECT_THAT(Counters(servers_[0]->output()), Not(HasSubstr("unbalanced")));
  ExpectEachSays(workers_, "the server is draining");
}

TEST_F(ServersByHandTest, RefuseASecondServerOfAnIndex) {
  StartServers();
  StartWorkers(1000);
  ASSERT_THAT(WaitForAccepted(first(), 10), IsOk());
  const std::string elsewhere = absl::StrCat("127.0.0.1:", FreePort());
  const auto second = Start(ServerProgram(
      {absl::StrCat("--servers=", first(), ",", addresses_[1], ",", elsewhere), "--index=2"}));
  EXPECT_THAT(second->Wait(kJob), IsOkAndHolds(2)) << second->output();
  EXPECT_THAT(second->output(), HasSubstr("another process follows as server 2 of 3"));
  ExpectTrained(1000);
}

}  // namespace
}  // namespace sluice
