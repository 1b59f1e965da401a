// responsiveness_main: measures how soon a server answers small calls while it makes steps of a
// large model, encodes them, and writes them to a slow disk. tools/bench/responsiveness starts it.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "common/base/clock.h"
#include "common/net/private_directory.h"
#include "tests/testing/process/launch.h"
#include "tests/testing/process/process.h"
#include "tests/testing/process/timed_calls.h"
#include "tests/testing/quantile.h"
#include "tools/bench/harness/machine_info.h"
#include "tools/bench/harness/progress_flag.h"

namespace sluice::bench {
namespace {

constexpr absl::Duration kPause = absl::Milliseconds(5);  // between two calls of a kind
constexpr absl::Duration kLongestStart = absl::Minutes(2);

struct Flags {
  double megabytes = 1600;
  int workers = 1;
  std::string pull_encoding = "float16";
  double disk = 400;  // MB/s
  int checkpoint_every = 4;
  double seconds = 20;
  std::string durability = "journal";
  std::string server;
  bool tcp = false;
  bool quiet = false;

  uint32_t elements() const { return static_cast<uint32_t>(megabytes * 1e6 / sizeof(float)); }
};

struct Row {
  std::string name;
  std::vector<double> seconds;
};

// The processes of a job, and the directory to which it writes.
class LoadedServer {
 public:
  static absl::StatusOr<std::unique_ptr<LoadedServer>> Start(const Flags& flags) {
    auto loaded = std::make_unique<LoadedServer>();
    const absl::Status started = loaded->StartServer(flags);
    if (!started.ok()) return started;
    loaded->StartWorkers(flags);
    return loaded;
  }

  const std::string& address() const { return address_; }

  // Takes what the processes write, and waits until each worker has made a step or the server ends.
  absl::Status AwaitSteps(uint64_t least) {
    const absl::Time until = RealClock().Now() + kLongestStart;
    while (RealClock().Now() < until) {
      const absl::Status works = Pass(absl::Milliseconds(100));
      if (!works.ok()) return works;
      const auto step = StepOf(address_);
      if (step.ok() && *step >= least) return absl::OkStatus();
    }
    return absl::DeadlineExceededError(absl::StrCat("the job made fewer than ", least, " steps in ",
                                                    absl::FormatDuration(kLongestStart)));
  }

  // An error if a process ends meanwhile.
  absl::Status Pass(absl::Duration time) {
    const absl::Time until = RealClock().Now() + time;
    do {
      for (const auto& process : processes_) {
        const auto ended = process->Wait(absl::Milliseconds(20));
        if (absl::IsDeadlineExceeded(ended.status())) continue;
        return absl::AbortedError(absl::StrCat("a process ended early:\n", process->output()));
      }
    } while (RealClock().Now() < until);
    return absl::OkStatus();
  }

 private:
  absl::Status StartServer(const Flags& flags) {
    auto socket = PrivateDirectory::Create();
    auto disk = PrivateDirectory::Create();
    if (!socket.ok()) return socket.status();
    if (!disk.ok()) return disk.status();
    socket_ = *std::move(socket);
    disk_ = *std::move(disk);
    address_ = flags.tcp ? absl::StrCat("127.0.0.1:", FreePort())
                         : absl::StrCat("unix:", socket_->path(), "/server.sock");
    const Words words = {flags.server.empty() ? RunfilePath("server/sluice_server") : flags.server,
                         "--listen=" + address_,
                         absl::StrCat("--workers=", flags.workers),
                         "--checkpoint-dir=" + disk_->path(),
                         "--keep-checkpoints=1",
                         absl::StrCat("--checkpoint-every=", flags.checkpoint_every),
                         "--durability=" + flags.durability};
    auto server =
        Process::Start(words, {{"LD_PRELOAD", RunfilePath("tests/testing/process/slow_disk.so")},
                               {"SLUICE_DISK_MB_PER_S", absl::StrCat(flags.disk)},
                               {"GLOG_minloglevel", "0"}});
    if (!server.ok()) return server.status();
    processes_.push_back(*std::move(server));
    return processes_[0]->WaitForOutput("listening on ([^ ]+)").status();
  }

  void StartWorkers(const Flags& flags) {
    for (int i = 0; i < flags.workers; ++i) {
      processes_.push_back(sluice::Start(
          {RunfilePath("tests/testing/process/pushing_worker_program"), "--gradient=1e-3",
           "--steps=1000000", absl::StrCat("--elements=", flags.elements()),
           "--pull-encoding=" + flags.pull_encoding, absl::StrCat("--server=", address_)}));
    }
  }

  std::unique_ptr<PrivateDirectory> socket_;
  std::unique_ptr<PrivateDirectory> disk_;
  std::string address_;
  std::vector<std::unique_ptr<Process>> processes_;  // the server first; killed first
};

void Print(const Row& row) {
  const auto milliseconds = [&](double share) { return 1e3 * Quantile(row.seconds, share); };
  std::cout << absl::StrFormat("%-22s | %6d | %8.2f | %8.2f | %8.2f\n", row.name,
                               row.seconds.size(), milliseconds(0.5), milliseconds(0.99),
                               1e3 * *std::max_element(row.seconds.begin(), row.seconds.end()));
}

// Lets the measured time pass.
absl::Status Await(LoadedServer& server, const Flags& flags) {
  const absl::Time until = RealClock().Now() + absl::Seconds(flags.seconds);
  TimedProgress progress("measuring", absl::Seconds(flags.seconds), ProgressUnless(flags.quiet));
  absl::Status status;
  while (status.ok() && RealClock().Now() < until) {
    status = server.Pass(std::min(absl::Milliseconds(200), until - RealClock().Now()));
    progress.Note();
  }
  return status;
}

absl::Status Measure(const Flags& flags) {
  auto loaded = LoadedServer::Start(flags);
  if (!loaded.ok()) return loaded.status();
  LoadedServer& server = **loaded;
  absl::Status status = server.AwaitSteps(2);
  if (!status.ok()) return status;
  auto heartbeats = HeartbeatCalls(server.address(), flags.elements());
  if (!heartbeats.ok()) return heartbeats.status();
  const auto first = StepOf(server.address());
  const absl::Time began = RealClock().Now();
  std::vector<std::pair<std::string, std::unique_ptr<TimedCalls>>> calls;
  const auto time = [&](const std::string& name, TimedCall call) {
    calls.emplace_back(name, std::make_unique<TimedCalls>(std::move(call), kPause));
  };
  time("Heartbeat", *std::move(heartbeats));
  time("Join", JoinCalls(server.address(), flags.elements()));
  time("GetServerState", ServerStateCalls(server.address()));
  time("GetParameter (all)", StatisticsCalls(server.address()));
  status = Await(server, flags);
  if (!status.ok()) return status;
  std::cout << "call                   |  calls |  p50 ms  |  p99 ms  |  max ms\n";
  const auto last = StepOf(server.address());
  const double seconds = absl::ToDoubleSeconds(RealClock().Now() - began);
  for (auto& [name, timed] : calls) {
    const auto taken = timed->End();
    if (!taken.ok()) return taken.status();
    if (taken->empty()) return absl::DeadlineExceededError(name + " was never answered");
    Print({name, *taken});
  }
  if (!first.ok() || !last.ok()) return first.ok() ? last.status() : first.status();
  std::cout << absl::StrFormat("%d steps in %.1f s\n", *last - *first, seconds) << std::flush;
  return absl::OkStatus();
}

int Main(int argc, char** argv) {
  CLI::App app(
      "Measures how soon a server answers small calls while it makes steps of a large model,\n"
      "encodes them for pulls, and writes them to a slow disk.",
      "tools/bench/responsiveness");
  Flags flags;
  const auto number = [&](const char* name, double& value, const char* what) {
    app.add_option(name, value, what)->check(CLI::PositiveNumber)->capture_default_str();
  };
  number("--size", flags.megabytes, "MB of the model's parameters");
  number("--seconds", flags.seconds, "measured seconds");
  number("--disk", flags.disk, "MB/s of the server's disk; each sync takes 50 ms more");
  app.add_option("--workers", flags.workers, "workers of the job, which is sync")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  app.add_option("--pull-encoding", flags.pull_encoding, "of the workers")->capture_default_str();
  app.add_option("--durability", flags.durability, "of the server: journal or memory")
      ->capture_default_str();
  app.add_option("--checkpoint-every", flags.checkpoint_every, "steps between two checkpoints")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_flag("--tcp", flags.tcp, "connect over TCP on loopback (default: a unix socket)");
  app.add_option("--server", flags.server, "measure this sluice_server instead of the one built")
      ->check(CLI::ExistingFile);
  AddQuietFlag(app, flags.quiet);
  CLI11_PARSE(app, argc, argv);
  PrepareEnvironment(1);
  const absl::Status status = Measure(flags);
  if (status.ok()) return 0;
  std::cerr << absl::StrCat("responsiveness: ", status.message(), "\n");
  return 1;
}

}  // namespace
}  // namespace sluice::bench

int main(int argc, char** argv) { return sluice::bench::Main(argc, argv); }
