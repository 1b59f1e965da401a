// sluicectl: the operator's tool. It shows and changes a running server, and works with the files
// that servers wrote.
//
//   sluicectl status --server=host:7070
//
// tools/ctl/README.md shows each command; kExitCodes lists the exit codes.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>
#include <iostream>
#include <iterator>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/command_line.h"
#include "common/wire/versions.h"
#include "tools/ctl/commands/command.h"
#include "tools/ctl/render/text.h"

namespace sluice {
namespace {

constexpr void (*kGroups[])(CLI::App&, std::vector<Command>&) = {
    AddLookCommands,   AddTopCommand,         AddLogCommands,   AddTraceCommands,
    AddChangeCommands, AddCheckpointCommands, AddTableCommands, AddContextCommands};

void AddCommonFlags(CLI::App& app, CommonFlags& flags) {
  app.add_flag("--json", flags.json, "print JSON, one object in a line, instead of text");
  app.add_flag("--quiet", flags.quiet, "print nothing about what was done; errors are printed");
  AddConnectionFlags(app, flags.connection);
}

// OK if all that was printed has been written.
absl::Status EndOutput() {
  std::cout.flush();
  if (std::cout.good()) return absl::OkStatus();
  return absl::DataLossError(
      "could not write all of the output to stdout; is its disk full, or has its reader ended?");
}

int Main(int argc, char** argv) {
  CLI::App app("Shows and changes a running server, and works with the checkpoints of servers.",
               "sluicectl");
  app.footer(kExitCodes);
  app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  app.require_subcommand(1);
  app.fallthrough();  // flags of all commands may follow the command
  CommonFlags flags;
  AddCommonFlags(app, flags);
  AddVersionFlag(app, WireVersions());
  std::vector<Command> commands;
  for (const auto add : kGroups) add(app, commands);
  const absl::optional<int> exit_code = ExitCodeOfUsage(app, argc, argv);
  if (exit_code.has_value()) return *exit_code;
  NoteGiven(argc, argv, flags.connection);
  signal(SIGPIPE, SIG_IGN);  // a server or a reader may go at any time
  signal(SIGXFSZ, SIG_IGN);  // a write beyond ulimit -f then fails
  const auto chosen = std::find_if(commands.begin(), commands.end(),
                                   [](const Command& command) { return command.app->parsed(); });
  absl::Status done = chosen->run(flags);
  done.Update(EndOutput());
  if (!done.ok()) {
    std::cerr << absl::StrCat(app.get_name(), ": ",
                              Printable(NameVariables(std::string(done.message()))), "\n");
  }
  return ExitCodeOfCommand(done);
}

}  // namespace
}  // namespace sluice

int main(int argc, char** argv) { return sluice::Main(argc, argv); }
