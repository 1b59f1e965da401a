// Several servers, each with a directory of its own: what they say, and that no file changes, if a
// directory is lost, exchanged, older than the others, or another job's.

#include <signal.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
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

using ::testing::ContainsRegex;
using ::testing::HasSubstr;

const Words kJournal = {"--durability=journal"};

class ServersDirectoriesTest : public ServersByHand {
 protected:
  static std::string DirectoryOf(int index) { return TestPath(absl::StrCat("run", index)); }

  std::unique_ptr<Process> StartSaving(int index, const Words& flags = {}) const {
    return Start(ServerProgram(
        With({"--servers=" + absl::StrJoin(addresses_, ","), absl::StrCat("--index=", index),
              "--workers=2", "--lease=30", "--server-lease=5",
              "--checkpoint-dir=" + DirectoryOf(index), "--checkpoint-every=10"},
             flags)));
  }
  void StartAllSaving(const Words& flags = {}) {
    servers_.clear();
    for (size_t i = 0; i < addresses_.size(); ++i) {
      servers_.push_back(StartSaving(static_cast<int>(i), flags));
    }
  }
  void Train(int steps, const Words& flags = {}) {
    StartAllSaving(flags);
    workers_.clear();
    StartWorkers(steps);
    ExpectEnded(steps);
  }

  // The content of each file but locks.
  std::map<std::string, std::string> Files() const {
    std::map<std::string, std::string> files;
    for (size_t i = 0; i < addresses_.size(); ++i) {
      const std::string directory = DirectoryOf(static_cast<int>(i));
      if (!std::filesystem::exists(directory)) continue;
      for (const auto& entry : std::filesystem::directory_iterator(directory)) {
        if (entry.path().filename().string().rfind("LOCK", 0) == 0) continue;
        std::ifstream file(entry.path(), std::ios::binary);
        files[entry.path()] = {std::istreambuf_iterator<char>(file), {}};
      }
    }
    return files;
  }

  static void Remove(int index) { std::filesystem::remove_all(DirectoryOf(index)); }
  static void Exchange(int a, int b) {
    const std::string aside = TestPath("aside");
    std::filesystem::rename(DirectoryOf(a), aside);
    std::filesystem::rename(DirectoryOf(b), DirectoryOf(a));
    std::filesystem::rename(aside, DirectoryOf(b));
  }
  static void Copy(const std::string& from, const std::string& to) {
    std::filesystem::remove_all(to);
    std::filesystem::copy(from, to);
  }
  static void RemoveFiles(int index, const std::string& prefix) {
    std::vector<std::filesystem::path> found;
    for (const auto& entry : std::filesystem::directory_iterator(DirectoryOf(index))) {
      if (entry.path().filename().string().rfind(prefix, 0) == 0) found.push_back(entry.path());
    }
    for (const auto& path : found) std::filesystem::remove(path);
  }

  // As on a full disk.
  static void EmptyFiles(int index, const std::string& prefix) {
    for (const auto& entry : std::filesystem::directory_iterator(DirectoryOf(index))) {
      if (entry.path().filename().string().rfind(prefix, 0) != 0) continue;
      std::filesystem::resize_file(entry.path(), 0);
    }
  }

  // The first server ends with 1 and says that; nothing has changed on any disk.
  void ExpectRefused(const std::string& what, const std::string& sentence,
                     const Words& flags = {}) {
    SCOPED_TRACE(what);
    const auto before = Files();
    StartAllSaving(flags);
    EXPECT_THAT(servers_[0]->Wait(kJob), IsOkAndHolds(1)) << servers_[0]->output();
    EXPECT_THAT(servers_[0]->output(), ContainsRegex(sentence));
    for (const auto& server : servers_) {
      server->WaitForOutput("listening on").status().IgnoreError();
      server->Signal(SIGTERM);  // it may have come too late to hear of the end
    }
    ExpectExitCodes(servers_, 1);
    EXPECT_TRUE(Files() == before);
  }
};

struct Fault {
  std::string what;
  std::function<void()> make;
  std::string sentence;
};

TEST_F(ServersDirectoriesTest, AreLeftAloneIfTheyDoNotBelongTogether) {
  const std::string old = TestPath("old");
  const std::string others = TestPath("others");
  Train(20);
  Copy(DirectoryOf(0), others);  // of another job, as it will be removed
  Copy(DirectoryOf(1), others + "1");
  for (const int index : {0, 1, 2}) Remove(index);
  Train(20);
  Copy(DirectoryOf(0), old);
  Train(40);
  std::vector<std::string> saved;
  for (const int index : {0, 1, 2}) {
    saved.push_back(TestPath(absl::StrCat("saved", index)));
    Copy(DirectoryOf(index), saved.back());
  }
  const std::vector<Fault> faults = {
      {"the first is lost", [] { Remove(0); },
       "run[12], the directory of server [12] of 3, has stripe-000002-000000000040-[12]-of-3."
       "safetensors of job .*, but .*run0, the first server's directory, knows no job: it has no "
       "checkpoint-\\* file of its own; nothing was changed. Restore the directory"},
      {"the first is empty, and one more",
       [] {
         Remove(0);
         Remove(1);
         std::filesystem::create_directories(DirectoryOf(0));
       },
       "run2, the directory of server 2 of 3, has stripe-"},
      {"the first has no checkpoint", [] { RemoveFiles(0, "checkpoint-"); },
       "run0, the directory of the first server, has stripe-.* has no checkpoint-\\* file: it is "
       "lost, or none could be saved, .*: remove the files stripe-.* of all servers to begin anew"},
      {"the first has no checkpoint, and its stripe alone names the job",
       [] {
         RemoveFiles(0, "checkpoint-");
         EmptyFiles(0, "life-");
       },
       "run0, the directory of the first server, has stripe-.* and step 40, but .* has no "
       "checkpoint"},
      {"the first has nothing, and names no job",
       [] {
         RemoveFiles(0, "checkpoint-");
         RemoveFiles(0, "stripe-");
         EmptyFiles(0, "life-");
       },
       "run0, the first server's directory, does not name its job in the file life-\\*, and has no "
       "checkpoint-\\* file: it is lost, or none could be saved"},
      {"the first two are exchanged", [] { Exchange(0, 1); },
       "run0, the directory of the first server, has stripe-000002-000000000040-1-of-3"},
      {"others are exchanged", [] { Exchange(1, 2); },
       "has stripe-000002-000000000040-[12]-of-3.safetensors of job .*, but no file of server"},
      {"another's is lost", [] { Remove(2); },
       "server 2 of 3 cannot load its part of the checkpoint: .*-2-of-3.safetensors is missing"},
      {"the first is another job's", [&] { Copy(others, DirectoryOf(0)); },
       "has stripe-000002.* of job .*, but .*run0, the first server's directory, is that of job"},
      {"another is another job's", [&] { Copy(others + "1", DirectoryOf(1)); },
       "run1, the directory of server 1 of 3, has stripe-.* of job .*, but .*is that of job"},
      {"the first is an older copy", [&] { Copy(old, DirectoryOf(0)); },
       "and incarnation 2, but .*run0, the first server's directory, knows only those before 2: it "
       "is an older copy"},
  };
  for (const Fault& fault : faults) {
    for (const int index : {0, 1, 2}) Copy(saved[index], DirectoryOf(index));
    fault.make();
    ExpectRefused(fault.what, fault.sentence);
  }
  for (const int index : {0, 1, 2}) Copy(saved[index], DirectoryOf(index));
  Train(60);
}

TEST_F(ServersDirectoriesTest, AreLeftAloneWithTheirJournalsIfTheFirstIsLost) {
  StartAllSaving(kJournal);
  StartWorkers(kWithoutEnd);
  ASSERT_THAT(servers_[0]->WaitForOutput("mode"), IsOk());
  ASSERT_THAT(WaitForAccepted(first(), 30), IsOk());
  for (const auto& server : servers_) {
    server->Signal(SIGKILL);
    ASSERT_THAT(server->Wait(), IsOkAndHolds(-SIGKILL));
  }
  Remove(0);
  ExpectRefused("journals and stripes", "run[12], the directory of server [12] of 3, has ",
                kJournal);
  for (const int index : {1, 2}) RemoveFiles(index, "stripe-");
  ExpectRefused("journals alone", "has journal-.* of a job that it does not name, but", kJournal);
}

TEST_F(ServersDirectoriesTest, OfOneServerAreNotThoseOfANewJobOfSeveral) {
  {
    Standalone server({"--workers=1", "--checkpoint-dir=" + DirectoryOf(1)});
    const auto worker = Start({RunfilePath("tests/testing/process/pushing_worker_program"),
                               server.flag(), "--steps=10", "--gradient=1"});
    EXPECT_THAT(worker->Wait(kJob), IsOkAndHolds(0));
    EXPECT_THAT(server.process().Wait(kJob), IsOkAndHolds(0));
  }
  ExpectRefused("one server's", "run1, the directory of server 1 of 3, has checkpoint-");
  // It goes on where its own server is the first, and the others read a copy.
  Exchange(1, 0);
  for (const int index : {1, 2}) Copy(DirectoryOf(0), DirectoryOf(index));
  StartAllSaving();
  StartWorkers(20);
  ExpectExitCodes(workers_, 0);
  ExpectExitCodes(servers_, 0);
  ExpectEachSays(workers_, "parameters at step 20: -30 to -30");
}

// The second servers of two jobs.
TEST_F(ServersDirectoriesTest, AreLockedEach) {
  StartAllSaving();
  StartWorkers(kWithoutEnd);
  ASSERT_THAT(servers_[0]->WaitForOutput("mode"), IsOk());
  ASSERT_THAT(WaitForAccepted(first(), 10), IsOk());
  const auto job = servers_[0]->WaitForOutput("job ([^ ]+): listening");
  ASSERT_THAT(job, IsOk());
  std::filesystem::create_directory_symlink(DirectoryOf(1), TestPath("link"));
  for (const std::string& directory : {DirectoryOf(1), TestPath("link")}) {
    const auto other = Start(
        ServerProgram({absl::StrCat("--servers=127.0.0.1:", FreePort(), ",127.0.0.1:", FreePort()),
                       "--index=1", "--workers=1", "--checkpoint-dir=" + directory}));
    EXPECT_THAT(other->Wait(kJob), IsOkAndHolds(1));
    EXPECT_THAT(other->output(),
                ContainsRegex(absl::StrCat(directory, "/LOCK-1 is held by process ",
                                           servers_[1]->pid(), " on .*, server 1 of 3 of job ",
                                           *job, "; stop it, or use another directory")));
  }
  const auto first_of_other = Start(
      ServerProgram({"--listen=127.0.0.1:0", "--workers=1", "--checkpoint-dir=" + DirectoryOf(0)}));
  EXPECT_THAT(first_of_other->Wait(kJob), IsOkAndHolds(1));
  EXPECT_THAT(first_of_other->output(),
              ContainsRegex(absl::StrCat("/LOCK is held by process ", servers_[0]->pid(),
                                         " on .*, server 0 of 3 of job ", *job, ";")));
}

// A lock ends with its process.
TEST_F(ServersDirectoriesTest, AreFreeWhenTheirServersAreKilled) {
  StartAllSaving(kJournal);
  StartWorkers(100, {"--batch-time=0.05"});
  ASSERT_THAT(servers_[0]->WaitForOutput("mode"), IsOk());
  ASSERT_THAT(WaitForAccepted(first(), 30), IsOk());
  for (const auto& server : servers_) {
    server->Signal(SIGKILL);
    ASSERT_THAT(server->Wait(), IsOkAndHolds(-SIGKILL));
  }
  StartAllSaving(kJournal);
  ExpectEnded(100);
}

}  // namespace
}  // namespace sluice
