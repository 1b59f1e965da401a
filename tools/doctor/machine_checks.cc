#include "tools/doctor/machine_checks.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "common/base/thread_pool.h"
#include "common/net/private_directory.h"
#include "common/net/unix_socket.h"
#include "common/tensor/shared_memory.h"
#include "server/program/memory_bytes.h"
#include "server/rpc/access/rpc_limits.h"

namespace sluice {
namespace {

// What a command prints, in one line; empty if it cannot run.
std::string OutputOfCommand(const std::string& command) {
  FILE* const pipe = popen(command.c_str(), "r");  // NOLINT(cert-env33-c): fixed commands
  if (pipe == nullptr) return "";
  std::string output;
  std::array<char, 4096> buffer{};
  for (size_t read = 0; (read = fread(buffer.data(), 1, buffer.size(), pipe)) > 0;) {
    output.append(buffer.data(), read);
  }
  if (pclose(pipe) != 0) return "";
  return absl::StrReplaceAll(absl::StripSuffix(output, "\n"), {{"\n", ", "}});
}

// The program's place, in quotes for the shell; empty if there is none.
std::string PlaceOfProgram(const std::string& folder, const std::string& program) {
  std::error_code error;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", error).parent_path();
  for (const auto& place :
       {self / program, self / "../../bin" / program, self / "../.." / folder / program}) {
    if (access(place.c_str(), X_OK) == 0) {
      return absl::StrCat("'", absl::StrReplaceAll(place.string(), {{"'", "'\\''"}}), "'");
    }
  }
  return "";
}

Finding CheckProgram(const std::string& folder, const std::string& program) {
  const std::string place = PlaceOfProgram(folder, program);
  if (place.empty()) {
    return {Verdict::kWarning, program,
            absl::StrCat("not there; install the package sluice, or build it: bazel build //",
                         folder, ":", program)};
  }
  const std::string version = OutputOfCommand(place + " --version 2>&1");
  if (!version.empty()) return {Verdict::kOk, program, version};
  return {Verdict::kWrong, program,
          absl::StrCat(place, " --version fails; run it, and install the library that it names")};
}

Finding CheckMpi() {
  const std::string version = OutputOfCommand("mpirun --version 2>/dev/null | head -n 1");
  if (version.empty()) {
    return {Verdict::kWarning, "MPI",
            "mpirun is not there; install openmpi-bin, or start servers and workers by hand"};
  }
  if (absl::StrContains(version, "5.0.7")) {
    return {Verdict::kWarning, "MPI",
            version +
                " crashes on command lines with a colon (open-mpi/ompi#13303); launch one "
                "program: mpirun -n 4 sluice_train"};
  }
  const bool allowed = std::getenv("OMPI_ALLOW_RUN_AS_ROOT") != nullptr &&
                       std::getenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM") != nullptr;
  if (geteuid() == 0 && absl::StrContains(version, "Open MPI") && !allowed) {
    return {Verdict::kWarning, "MPI",
            version +
                " refuses to run as root; set OMPI_ALLOW_RUN_AS_ROOT=1 and "
                "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1, or use another user"};
  }
  return {Verdict::kOk, "MPI", version};
}

// MB that the kernel can give to new processes; 0 if it does not say.
double AvailableMb() {
  std::ifstream info("/proc/meminfo");
  for (std::string name, line; info >> name && std::getline(info, line);) {
    double kb = 0;
    if (name == "MemAvailable:" && absl::SimpleAtod(absl::StripSuffix(line, "kB"), &kb)) {
      return kb * 1024 / 1e6;
    }
  }
  return 0;
}

Finding CheckMemory(const PlannedJob& job) {
  const double limit = static_cast<double>(MemoryBytes()) / 1e6;
  const double available = AvailableMb();
  const double usable = available > 0 ? std::min(available, limit) : limit;
  const std::string found =
      absl::StrFormat("%.0f MB are available, %.0f MB may be used", available, limit);
  if (job.model_mb == 0) return {Verdict::kOk, "memory", found};
  const uint32_t workers = std::max(job.workers, uint32_t{1});
  // Two vectors more than a server holds: the allocator and the sockets take memory, too.
  const double server = (workers + 3) * job.model_mb;
  const double all = server + workers * 3 * job.model_mb;
  const std::string need = absl::StrFormat(
      "%s; a server of %d workers takes some %.0f MB with SGD (momentum adds %.0f, Adam %.0f), and "
      "each worker %.0f",
      found, workers, server, job.model_mb, 2 * job.model_mb, 3 * job.model_mb);
  if (server > usable) {
    return {Verdict::kWrong, "memory", need + "; use fewer workers or a larger machine"};
  }
  if (all > usable) {
    return {Verdict::kWarning, "memory", need + "; put workers on other machines"};
  }
  return {Verdict::kOk, "memory", need};
}

// A connection takes two descriptors, and the server has some for itself.
Finding CheckDescriptors(const PlannedJob& job) {
  constexpr uint64_t kConnections = 8;  // of a worker at most
  rlimit limit = {};
  getrlimit(RLIMIT_NOFILE, &limit);
  const uint64_t workers = std::max(job.workers, uint32_t{1});
  const uint64_t needed = kOtherDescriptors + kDescriptorsOfConnection * kConnections * workers;
  // A server raises its limit as far as it may.
  const std::string found = absl::StrCat("a process may open ", limit.rlim_max, " files");
  if (limit.rlim_max >= needed) return {Verdict::kOk, "descriptors", found};
  return {Verdict::kWrong, "descriptors",
          absl::StrCat(found, ", expected ", needed, " for ", workers,
                       " workers; raise the hard limit (ulimit -Hn)")};
}

absl::Status TrySharedMemory() {
  constexpr uint64_t kElements = 1 << 18;  // 1 MB
  const auto memory = SharedMemory::Create(kElements);
  if (!memory.ok()) return memory.status();
  return SharedMemoryView::Open((*memory)->name()).status();
}

absl::Status TryUnixSocket() {
  const auto directory = PrivateDirectory::Create();
  if (!directory.ok()) return directory.status();
  const std::string path = (*directory)->path() + "/doctor.sock";
  const auto listening = ListenUnix(path);
  if (!listening.ok()) return listening.status();
  return ConnectUnix(path).status();
}

Finding CheckCores() {
  const uint32_t cores = ThreadPool::UsableCores();
  const char* const blas = std::getenv("OPENBLAS_NUM_THREADS");
  const std::string found = absl::StrCat(cores, " cores may be used, OPENBLAS_NUM_THREADS is ",
                                         blas == nullptr ? "not set" : blas);
  if (blas != nullptr || cores == 1) return {Verdict::kOk, "cores", found};
  return {Verdict::kWarning, "cores",
          found +
              "; if several workers of your own program share this machine, set it to 1 "
              "(sluice_train needs no such variable)"};
}

Finding CheckClock() {
  const absl::Time now = absl::Now();
  const std::string found = absl::FormatTime("%Y-%m-%d %H:%M:%S UTC", now, absl::UTCTimeZone());
  if (now > absl::FromCivil(absl::CivilDay(2024, 1, 1), absl::UTCTimeZone())) {
    return {Verdict::kOk, "clock", found};
  }
  return {Verdict::kWrong, "clock",
          found + " is before Sluice was made, and no certificate is valid then; set the clock"};
}

}  // namespace

Findings CheckMachine(const PlannedJob& job) {
  return {CheckProgram("server", "sluice_server"),
          CheckProgram("worker", "sluice_train"),
          CheckMpi(),
          CheckMemory(job),
          CheckDescriptors(job),
          FindingOf("shared memory", TrySharedMemory(), "1 MB was made and opened",
                    Verdict::kWarning, "workers of this machine can only use sockets"),
          FindingOf("unix socket", TryUnixSocket(), "one was made in a private directory",
                    Verdict::kWrong, "let this user write in XDG_RUNTIME_DIR or in /tmp"),
          CheckCores(),
          CheckClock()};
}

}  // namespace sluice
