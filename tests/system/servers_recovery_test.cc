// Several servers with checkpoints, whose workers push gradients of one value: a server that is
// killed and started again continues from the last checkpoint, with all others. Each has a
// directory of its own.

#include <signal.h>

#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/system/servers_by_hand.h"
#include "tests/testing/process/launch.h"
#include "tests/testing/process/process.h"
#include "tests/testing/process/programs.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr int kSteps = 400;
const Words kJournal = {"--durability=journal"};
// A server that starts after the first one has ended waits for it as long as that.
const Words kImpatient = {"--server-lease=10"};

class ServersRecoveryTest : public ServersByHand {
 protected:
  std::string DirectoryOf(int index) const { return TestPath(absl::StrCat("checkpoints", index)); }

  std::unique_ptr<Process> StartSaving(int index, const Words& flags = {}) {
    leases_ = {"--lease=30"};
    server_flags_ =
        With({"--checkpoint-dir=" + DirectoryOf(index), "--checkpoint-every=10"}, flags);
    return StartServer(index);
  }

  void StartAllSaving(size_t servers = kServers, const Words& flags = {}) {
    addresses_.resize(servers);
    servers_.clear();
    for (size_t index = 0; index < servers; ++index) {
      servers_.push_back(StartSaving(static_cast<int>(index), flags));
    }
  }

  void ShareADirectory() const {
    std::filesystem::create_directories(DirectoryOf(0));
    for (int index = 1; index < kServers; ++index) {
      std::filesystem::create_directory_symlink(DirectoryOf(0), DirectoryOf(index));
    }
  }

  void Kill(int index) {
    servers_[index]->Signal(SIGKILL);
    ASSERT_THAT(servers_[index]->Wait(), IsOkAndHolds(-SIGKILL));
  }

  // The names in that server's directory that begin so.
  std::vector<std::string> FilesOf(int index, const std::string& prefix) const {
    std::vector<std::string> files;
    for (const auto& entry : std::filesystem::directory_iterator(DirectoryOf(index))) {
      const std::string name = entry.path().filename();
      if (name.rfind(prefix, 0) == 0) files.push_back(name);
    }
    return files;
  }
};

TEST_F(ServersRecoveryTest, GoOnWhenAServerIsKilledAndStartedAgain) {
  StartAllSaving();
  StartWorkers(kSteps);
  for (const int index : {1, 2, 1}) {
    ASSERT_THAT(WaitForAccepted(first(), 20), IsOk());
    Kill(index);
    servers_[index] = StartSaving(index);
    ASSERT_THAT(servers_[index]->WaitForOutput("loaded this server's part"), IsOk());
  }
  ExpectEnded(kSteps);
  EXPECT_THAT(servers_[0]->output(), HasSubstr("server 2 of 3 was started again; all servers go "
                                               "back to the last checkpoint"));
}

TEST_F(ServersRecoveryTest, GoOnWhenTheFirstServerIsKilledAndStartedAgain) {
  StartAllSaving();
  StartWorkers(kSteps);
  ASSERT_THAT(WaitForAccepted(first(), 40), IsOk());
  Kill(0);
  servers_[0] = StartSaving(0);
  ExpectEnded(kSteps);
  for (const int index : {1, 2}) {
    EXPECT_THAT(servers_[index]->output(),
                HasSubstr("the first server has begun a new incarnation, which this server joins"));
  }
}

TEST_F(ServersRecoveryTest, LoseNothingWithJournals) {
  StartAllSaving(kServers, kJournal);
  StartWorkers(kSteps);
  std::string first_servers;  // what all processes of the first server have said
  for (const std::vector<int>& killed : std::vector<std::vector<int>>{{1}, {0}, {2}, {0, 1, 2}}) {
    ASSERT_THAT(WaitForAccepted(first(), 30), IsOk());
    for (const int index : killed) {
      Kill(index);
      if (index == 0) first_servers += servers_[0]->output();
    }
    for (const int index : killed) servers_[index] = StartSaving(index, kJournal);
    for (const int index : killed) {
      if (index == 0) continue;
      ASSERT_THAT(servers_[index]->WaitForOutput("loaded this server's part"), IsOk());
    }
  }
  ExpectEnded(kSteps);
  for (const auto& worker : workers_) {
    EXPECT_THAT(worker->output(), Not(HasSubstr("has lost its last")));
  }
  // There is nothing to repeat where a server is killed right after a checkpoint.
  EXPECT_THAT(first_servers + servers_[0]->output(), HasSubstr("was repeated from the journal"));
}

TEST_F(ServersRecoveryTest, RepeatTheirJournalsAlsoIfTheyWriteNoneAnyMore) {
  StartAllSaving(kServers, kJournal);
  StartWorkers(kSteps);
  ASSERT_THAT(WaitForAccepted(first(), 30), IsOk());
  for (const int index : {0, 1, 2}) Kill(index);
  StartAllSaving();
  ExpectEnded(kSteps);
  for (const auto& worker : workers_) {
    EXPECT_THAT(worker->output(), Not(HasSubstr("has lost its last")));
  }
}

TEST_F(ServersRecoveryTest, GoBackTogetherBecauseTrainingDiverges) {
  for (const Words& durability : {Words(), kJournal}) {
    for (int index = 0; index < kServers; ++index) std::filesystem::remove_all(DirectoryOf(index));
    StartAllSaving(kServers, With({"--on-divergence=restore"}, durability));
    workers_.clear();
    // Each step takes a while, so that the job is not over when the server sees that it diverges. A
    // worker takes for the rate what a step subtracts for 1 of its own gradient: 2 or 2 / 3.
    const Words slow = {"--batch-time=0.002", "--elements=8192", "--bad-from-step=100"};
    workers_.push_back(StartWorker(1, 1000, With(slow, {"--bad-above-rate=1.5"})));
    workers_.push_back(StartWorker(3, 1000, With(slow, {"--bad-above-rate=0.5"})));
    ExpectExitCodes(workers_, 0);
    ExpectExitCodes(servers_, 0);
    EXPECT_THAT(ClosingRows(servers_[0]->output())["warning"],
                HasSubstr("with the learning rate 0.5 in place of 1, because training diverges"));
  }
}

TEST_F(ServersRecoveryTest, RefuseAServerWithoutAJournal) {
  const auto first_server = StartSaving(0, kJournal);
  const auto other = StartSaving(1);
  EXPECT_THAT(other->Wait(kJob), IsOkAndHolds(2));
  EXPECT_THAT(other->output(), HasSubstr("the first server writes a journal, and server 1 none; "
                                         "give all servers the same --durability"));
}

// Two servers cannot repeat what three have journaled, and so lose nothing by mistake.
TEST_F(ServersRecoveryTest, RefuseTheJournalsOfAnotherNumberOfServers) {
  ShareADirectory();
  StartAllSaving(kServers, kJournal);
  StartWorkers(kWithoutEnd);
  ASSERT_THAT(WaitForAccepted(first(), 30), IsOk());
  for (const int index : {0, 1, 2}) Kill(index);
  StartAllSaving(2, With(kJournal, kImpatient));
  ExpectExitCodes(servers_, 1);
  EXPECT_THAT(servers_[0]->output(),
              HasSubstr("which 3 servers have made, and only as many can repeat them, not 2"));
}

// Without its journal, or an older copy of it, a server lacks steps that workers were told of.
TEST_F(ServersRecoveryTest, SayWhichServerLacksStepsThatWereDurable) {
  StartAllSaving(kServers, kJournal);
  StartWorkers(kWithoutEnd);
  ASSERT_THAT(WaitForAccepted(first(), 30), IsOk());
  for (const int index : {0, 1, 2}) Kill(index);
  for (const std::string& file : FilesOf(2, "journal-")) {
    std::filesystem::remove(DirectoryOf(2) + "/" + file);
  }
  StartAllSaving(kServers, With(kJournal, kImpatient));
  ExpectExitCodes(servers_, 1);
  EXPECT_THAT(servers_[0]->output(), HasSubstr(" was durable, but server 2 of 3 can repeat its "
                                               "steps only up to step "));
}

TEST_F(ServersRecoveryTest, GoOnWithFewerServersFromOneDirectory) {
  ShareADirectory();
  StartAllSaving();
  StartWorkers(40);
  ExpectTrained(40);
  workers_.clear();
  // However many checkpoints the second job has time for, none of the first stays.
  StartAllSaving(2, {"--keep-checkpoints=1"});
  StartWorkers(80);
  ExpectEnded(80);
  EXPECT_THAT(FilesOf(0, "stripe-000001"), IsEmpty());
}

TEST_F(ServersRecoveryTest, SayWhichFileIsMissing) {
  StartAllSaving();
  StartWorkers(40);
  ExpectTrained(40);
  for (const std::string& file : FilesOf(1, "stripe-")) {
    std::filesystem::remove(DirectoryOf(1) + "/" + file);
  }
  StartAllSaving(kServers, kImpatient);
  ExpectExitCodes(servers_, 1);
  EXPECT_THAT(servers_[0]->output(),
              HasSubstr(absl::StrCat(
                  "server 1 of 3 cannot load its part of the checkpoint: ", DirectoryOf(1),
                  "/stripe-000001-000000000040-1-of-3"
                  ".safetensors is missing")));
}

TEST_F(ServersRecoveryTest, RefuseAServerWithoutADirectory) {
  const auto first_server = StartSaving(0);
  server_flags_.clear();
  const auto other = StartServer(1);
  EXPECT_THAT(other->Wait(kJob), IsOkAndHolds(2));
  EXPECT_THAT(other->output(), HasSubstr("the first server saves checkpoints, and server 1 has no "
                                         "directory for them"));
}

TEST_F(ServersRecoveryTest, SaveTheLastStepWhenTheyAreStopped) {
  StartAllSaving();
  StartWorkers(kWithoutEnd, {"--connect-timeout=5"});
  ASSERT_THAT(WaitForAccepted(first(), 40), IsOk());
  for (const auto& server : servers_) server->Signal(SIGTERM);
  ExpectExitCodes(servers_, 0);
  EXPECT_THAT(FilesOf(0, "checkpoint-").size(), FilesOf(1, "stripe-").size());
}

}  // namespace
}  // namespace sluice
