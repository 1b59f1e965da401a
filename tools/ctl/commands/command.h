// A command of sluicectl: its place in the command line, and what runs it.

#ifndef SLUICE_TOOLS_CTL_COMMANDS_COMMAND_H_
#define SLUICE_TOOLS_CTL_COMMANDS_COMMAND_H_

#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "tools/ctl/commands/connection_flags.h"

namespace sluice {

// The flags that all commands share.
struct CommonFlags {
  ConnectionFlags connection;
  bool json = false;
  bool quiet = false;
};

// Prints to stdout. An error is one sentence, and ExitCodeOfCommand() gives its code.
using RunCommand = std::function<absl::Status(const CommonFlags&)>;

struct Command {
  CLI::App* app;
  RunCommand run;
};

// Each adds a group of commands to `app`, and appends to `commands` what runs them.
void AddLookCommands(CLI::App& app, std::vector<Command>& commands);
void AddTopCommand(CLI::App& app, std::vector<Command>& commands);
void AddLogCommands(CLI::App& app, std::vector<Command>& commands);
void AddTraceCommands(CLI::App& app, std::vector<Command>& commands);
void AddChangeCommands(CLI::App& app, std::vector<Command>& commands);
void AddCheckpointCommands(CLI::App& app, std::vector<Command>& commands);
void AddTableCommands(CLI::App& app, std::vector<Command>& commands);
void AddContextCommands(CLI::App& app, std::vector<Command>& commands);

// How a user names one checkpoint, for --help; FindCheckpoint() reads it.
inline constexpr char kNameOfCheckpoint[] =
    "its file, or the servers' --checkpoint-dir with commas between them: then its newest";

// Lines of the table of exit codes, for --help.
extern const char kExitCodes[];

// 0 for OK; 1 if the server refused, or a file is damaged; 2 for a wrong command line
// (INVALID_ARGUMENT without a reason); 3 if there is no server (UNAVAILABLE without a reason); 4 if
// the caller is not allowed to (UNAUTHENTICATED, PERMISSION_DENIED).
int ExitCodeOfCommand(const absl::Status& status);

// Makes an error of the command line of another error, such as one with a reason.
absl::Status WrongCommandLine(const absl::Status& status);

// Returns OK if `assume_yes`, or if the user, asked on the terminal, answers "y" or "yes". Without
// a terminal, INVALID_ARGUMENT asks for --yes; another answer is CANCELLED.
absl::Status Confirm(bool assume_yes, const std::string& question);

}  // namespace sluice

#endif  // SLUICE_TOOLS_CTL_COMMANDS_COMMAND_H_
