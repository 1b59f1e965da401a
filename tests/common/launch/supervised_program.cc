// A program that supervises itself. What the supervised one does is asked of it on the command
// line.
//
//   supervised_program [--max-restarts=N] [--pause=SECONDS] [--once]
//                      [--over] [--die=SIGNAL | --exit=CODE | --wait]
//
// It prints what it was told. --once: it does that only when it runs for the first time; --over: it
// says that the job is over; --wait: it says which process it is, and waits for a signal.

#include <signal.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <iostream>
#include <string>

#include "common/base/logging.h"
#include "common/launch/supervisor.h"

namespace sluice {
namespace {

constexpr char kFirst[] = "that it is the first";
constexpr char kAgain[] = "that it runs again";

struct Flags {
  uint32_t max_restarts = 0;
  double pause = absl::ToDoubleSeconds(Supervisor::kShortLife);
  bool once = false;
  bool over = false;
  int die = 0;
  int exit = 0;
  bool wait = false;
};

int Supervise(const Flags& flags) {
  auto supervisor = Supervisor::Start("rank 7", absl::Seconds(flags.pause));
  if (!supervisor.ok() || !(*supervisor)->socket().Send(kFirst).ok()) return 99;
  return (*supervisor)->Run(kAgain, flags.max_restarts, [](int code) { return code == 2; });
}

int RunSupervised(const Flags& flags, const SupervisorSocket& socket) {
  const auto told = socket.Receive();
  if (!told.ok()) return 98;
  std::cout << "was told " << *told << std::endl;
  if (SupervisorSocket::Inherited().has_value()) std::cout << "could inherit twice" << std::endl;
  if (flags.once && *told != kFirst) return 0;
  if (flags.over && !socket.SayJobIsOver().ok()) return 97;
  if (flags.wait) {
    std::cout << "waits as process " << getpid() << std::endl;
    for (;;) pause();
  }
  if (flags.die != 0) raise(flags.die);
  return flags.exit;
}

int Main(int argc, char** argv) {
  CLI::App app;
  Flags flags;
  app.add_option("--max-restarts", flags.max_restarts);
  app.add_option("--pause", flags.pause);
  app.add_flag("--once", flags.once);
  app.add_flag("--over", flags.over);
  app.add_option("--die", flags.die);
  app.add_option("--exit", flags.exit);
  app.add_flag("--wait", flags.wait);
  CLI11_PARSE(app, argc, argv);
  InitLogging();
  const auto socket = SupervisorSocket::Inherited();
  return socket.has_value() ? RunSupervised(flags, *socket) : Supervise(flags);
}

}  // namespace
}  // namespace sluice

int main(int argc, char** argv) { return sluice::Main(argc, argv); }
