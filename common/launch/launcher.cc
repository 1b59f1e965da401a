#include "common/launch/launcher.h"

#include <glog/logging.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/base/file_descriptor.h"
#include "common/launch/child_process.h"

namespace sluice {
namespace {

// What a launcher gives each rank: Open MPI, PMIx launchers, MPICH's hydra.
constexpr const char* kOfRank[] = {"OMPI_COMM_WORLD_RANK", "PMIX_NAMESPACE", "PMIX_RANK",
                                   "PMI_RANK"};
constexpr absl::Duration kLook = absl::Seconds(1);
// Longer than a launcher takes to start its ranks one after another.
constexpr absl::Duration kAlone = absl::Seconds(10);

// The entries of this process's environment that tell which rank it is.
std::vector<std::string> RankEntries() {
  std::vector<std::string> entries;
  for (const char* const name : kOfRank) {
    const char* const value = getenv(name);
    if (value != nullptr) entries.push_back(absl::StrCat(name, "=", value));
  }
  return entries;
}

// The environment with which a process was started; empty if it is another user's.
std::vector<std::string> EnvironmentOf(pid_t pid) {
  std::ifstream file(absl::StrCat("/proc/", pid, "/environ"), std::ios::binary);
  std::vector<std::string> entries;
  for (std::string entry; std::getline(file, entry, '\0');) entries.push_back(entry);
  return entries;
}

bool HasAll(const std::vector<std::string>& entries, const std::vector<std::string>& wanted) {
  return std::all_of(wanted.begin(), wanted.end(), [&](const std::string& entry) {
    return std::find(entries.begin(), entries.end(), entry) != entries.end();
  });
}

// "7 (a name) S 3 …": process 7 is a child of 3. 0 if it has ended.
pid_t ParentOf(pid_t pid) {
  std::ifstream file(absl::StrCat("/proc/", pid, "/stat"));
  std::string line;
  std::getline(file, line);
  const std::vector<std::string> words =
      absl::StrSplit(line.substr(std::min(line.rfind(')') + 1, line.size())), ' ');
  pid_t parent = 0;
  return words.size() > 2 && absl::SimpleAtoi(words[2], &parent) ? parent : 0;
}

bool Is(const char* name, const char* other) {
  const char* const value = getenv(name);
  const char* const same = getenv(other);
  return value != nullptr && same != nullptr && std::string(value) == same;
}

// Whether Open MPI has started several ranks, all on this node. Its launcher then has one child for
// each of them; a container's launcher of one rank has one child from the beginning.
bool HasAllRanks(pid_t launcher) {
  std::string name;
  std::getline(std::ifstream(absl::StrCat("/proc/", launcher, "/comm")), name);
  const bool is_mpirun = absl::StartsWith(name, "mpi") || absl::StartsWith(name, "orte") ||
                         absl::StartsWith(name, "prte");
  const char* const size = getenv("OMPI_COMM_WORLD_SIZE");
  return is_mpirun && Is("OMPI_COMM_WORLD_LOCAL_SIZE", "OMPI_COMM_WORLD_SIZE") &&
         std::string(size) != "1";
}

std::atomic<bool> ranks_met = false;

// Returns why this rank has to end.
std::string AwaitEnd(const Launcher& launcher, const FileDescriptor& ended) {
  const bool sees_all = HasAllRanks(launcher.pid());
  absl::Time alone_since = RealClock().Now();
  while (RealClock().Now() - alone_since < kAlone) {
    const bool looks = sees_all && !ranks_met;
    pollfd event = {ended.get(), POLLIN, 0};
    if (poll(&event, 1, looks ? static_cast<int>(absl::ToInt64Milliseconds(kLook)) : -1) > 0) {
      return absl::StrCat("the launcher, process ", launcher.pid(),
                          ", has ended without its ranks; this one ends as after SIGTERM");
    }
    if (ranks_met || launcher.Running() != 1) alone_since = RealClock().Now();
  }
  return "all other ranks of the launch have ended before they took part in the job, so this one "
         "ends, too; does their program start a job of Sluice?";
}

void Watch(const Launcher& launcher, const FileDescriptor& ended) {
  LOG(ERROR) << AwaitEnd(launcher, ended);
  kill(getpid(), SIGTERM);
}

}  // namespace

absl::optional<Launcher> Launcher::Find() {
  const std::vector<std::string> rank = RankEntries();
  if (rank.empty()) return absl::nullopt;
  pid_t pid = getppid();
  while (pid > 1 && HasAll(EnvironmentOf(pid), rank)) pid = ParentOf(pid);
  return pid > 1 ? absl::make_optional(Launcher(pid)) : absl::nullopt;
}

std::vector<pid_t> Launcher::Children() const {
  std::vector<pid_t> children;
  std::error_code error;
  auto thread = std::filesystem::directory_iterator(absl::StrCat("/proc/", pid_, "/task"), error);
  for (; !error && thread != std::filesystem::directory_iterator(); thread.increment(error)) {
    std::ifstream file(thread->path() / "children");
    for (pid_t child = 0; file >> child;) children.push_back(child);
  }
  return children;
}

uint32_t Launcher::Running() const { return static_cast<uint32_t>(Children().size()); }

bool Launcher::HasEnded(int rank) const {
  const std::vector<std::string> own = RankEntries();
  std::vector<std::string> wanted = own;
  for (std::string& entry : wanted) {
    const std::string name = entry.substr(0, entry.find('='));
    if (absl::EndsWith(name, "_RANK")) entry = absl::StrCat(name, "=", rank);
  }
  bool sees_own = false;
  for (const pid_t child : Children()) {
    const std::vector<std::string> entries = EnvironmentOf(child);
    if (HasAll(entries, wanted)) return false;
    sees_own = sees_own || HasAll(entries, own);
  }
  return sees_own;
}

void EndWithLauncher() {
  const auto launcher = Launcher::Find();
  if (!launcher.has_value()) return;
  FileDescriptor ended(OpenPidfd(launcher->pid()));
  if (!ended.ok()) return;
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);  // the thread inherits it
  std::thread(Watch, *launcher, std::move(ended)).detach();
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void NoteRanksMet() { ranks_met = true; }

}  // namespace sluice
