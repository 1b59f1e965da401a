// Finds Sluice's flags among the arguments of a program that has flags of its own.

#ifndef SLUICE_COMMON_BASE_PROGRAM_FLAGS_H_
#define SLUICE_COMMON_BASE_PROGRAM_FLAGS_H_

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace sluice {

// Which of a program's arguments are Sluice's.
enum class TakenFlags {
  kPrefixed,  // --sluice-mode=async alone: a program may have a --mode of its own
  kAll,       // --mode=async, too
};

struct ProgramArguments {
  std::vector<std::string> taken;  // Sluice's flags without the prefix, and their values
  std::vector<char*> left;         // the program's, in their order
  // The flags among them that hardly a program but Sluice has: "--push-encoding". Whoever wrote
  // them has perhaps forgotten the prefix. Each once; none with TakenFlags::kAll.
  std::vector<std::string> look_like_ours;
};

// Splits the words after the program's name. `app` has Sluice's flags. The value of a flag is in
// its word, after a "=", or is the next word unless that is empty or begins with "--". What follows
// a "--" is the program's. Throws CLI::ParseError for a flag with the prefix that `app` does not
// have, and names the nearest.
ProgramArguments SplitArguments(const CLI::App& app, TakenFlags which, int argc, char** argv);

// A text about flags of `app` as a program with TakenFlags::kPrefixed says it: with the prefix.
std::string WithPrefix(const CLI::App& app, absl::string_view text);

}  // namespace sluice

#endif  // SLUICE_COMMON_BASE_PROGRAM_FLAGS_H_
