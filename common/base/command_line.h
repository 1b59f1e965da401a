// Parses command lines with CLI11, and adds the checks that CLI11 lacks.

#ifndef SLUICE_COMMON_BASE_COMMAND_LINE_H_
#define SLUICE_COMMON_BASE_COMMAND_LINE_H_

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "common/base/program_flags.h"
#include "common/base/version.h"

namespace sluice {

// How a program calls itself in its help and in its errors: "sluice train" if `sluice train`
// started it, which gives this name as argv[0]; otherwise `name`.
std::string CalledAs(absl::string_view name);

// Adds --version, which also says what the program is built with. ParseArguments() adds it to
// programs for which this was not called.
void AddVersionFlag(CLI::App& app, const std::vector<BuiltWith>& parts);

// Parses the arguments of main() with `app`, which throws CLI::ParseError. This function also
// throws it if an argument is empty: CLI11 takes an empty argument for the name of a group of
// options, and then may never return (seen with 2.1.2). A program that has --help gets --version,
// and with groups of flags --help-all and --help=GROUP (help_text.h).
//
// A flag that the command line does not give has the value of its variable in the environment:
// SLUICE_PUSH_ENCODING for --push-encoding. --help and --version do not read the environment.
void ParseArguments(CLI::App& app, int argc, const char* const* argv);

// Does the same with those arguments of a program that are Sluice's flags. Returns the split.
ProgramArguments ParseProgramArguments(CLI::App& app, TakenFlags which, int argc, char** argv);

// Parses the arguments, and prints CLI11's help or error. Returns the exit code if the program
// shall end: 0 after --help or --version, 2 for a wrong command line.
absl::optional<int> ExitCodeOfUsage(CLI::App& app, int argc, const char* const* argv);

// Appends to an error the variables of the environment that set the flags which it names.
std::string NameVariables(const std::string& error);

// Checks that a number is in [least, most]. CLI11's own check lets NaN pass.
CLI::Validator NumberFrom(double least, double most);

// Checks seconds that become an absl::Duration: from `least` to 31 years.
CLI::Validator SecondsFrom(double least);

// The smallest number of seconds that is more than 0.
inline constexpr double kMicrosecond = 1e-6;

}  // namespace sluice

#endif  // SLUICE_COMMON_BASE_COMMAND_LINE_H_
