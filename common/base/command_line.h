// What is asked of command lines beyond what CLI11 asks.

#ifndef SLUICE_COMMON_BASE_COMMAND_LINE_H_
#define SLUICE_COMMON_BASE_COMMAND_LINE_H_

#include <CLI/CLI.hpp>

#include "absl/types/optional.h"

namespace sluice {

// Has `app` parse the arguments of main(), and throws CLI::ParseError as it does; also if one of
// them is empty, which CLI11 takes for the name of a group of options: then it may never return
// (seen with 2.1.2).
void ParseArguments(CLI::App& app, int argc, const char* const* argv);

// Parses them, and says on the terminal what CLI11 has to say. The code to exit with, if that is
// all: 0 after --help, 2 for a command line that is wrong.
absl::optional<int> ExitCodeOfUsage(CLI::App& app, int argc, const char* const* argv);

// The check of a number in [least, most]. CLI11's own lets NaN pass.
CLI::Validator NumberFrom(double least, double most);

// The same of seconds that become an absl::Duration: 31 years at most.
CLI::Validator SecondsFrom(double least);

// The least that is more than none.
inline constexpr double kMicrosecond = 1e-6;

}  // namespace sluice

#endif  // SLUICE_COMMON_BASE_COMMAND_LINE_H_
