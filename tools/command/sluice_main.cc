// sluice: one name for all programs. "sluice train FLAGS" becomes sluice_train FLAGS.
//
// The program lies beside this one, in ../libexec/sluice, or where Bazel builds it. It replaces
// this process, so flags, exit codes, signals and mpirun work as without sluice. It calls itself
// "sluice train" then.
//
// PrintHelp() says the exit codes.

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "common/base/nearest.h"
#include "common/base/version.h"

namespace sluice {
namespace {

constexpr int kBadUsage = 2;
constexpr int kNoProgram = 127;  // as of a shell

struct Command {
  const char* name;
  const char* folder;  // of the checkout
  const char* program;
  const char* help;
};

constexpr std::array<Command, 6> kCommands = {{
    {"serve", "server", "sluice_server", "serves parameters"},
    {"train", "worker", "sluice_train", "trains a model, with a server or without"},
    {"evaluate", "tools/evaluate", "sluice_evaluate", "measures loss and accuracy"},
    {"predict", "worker/torch/examples", "predict", "says what a checkpoint sees in an image"},
    {"ctl", "tools/ctl", "sluicectl",
     "looks into a running server, changes it, and works with checkpoints"},
    {"doctor", "tools/doctor", "sluice_doctor", "checks this machine, and the way to a server"},
}};

void PrintHelp(std::ostream& out) {
  out << "Runs the programs of Sluice.\nUsage: sluice COMMAND [FLAGS…]\n\nSubcommands:\n";
  for (const Command& command : kCommands) {
    out << absl::StrFormat("  %-28s%s (%s)\n", command.name, command.help, command.program);
  }
  out << absl::StrFormat("  %-28s%s\n", "version", "prints the version")
      << absl::StrFormat("  %-28s%s\n", "help", "prints this, or with a command its flags")
      << "\nsluice COMMAND --help lists the flags of a command.\n"
         "\nExit codes: those of the program; 2 there is no such command; 127 the program is not\n"
         "there.\n";
}

const Command* Find(absl::string_view name) {
  const auto* const found =
      std::find_if(kCommands.begin(), kCommands.end(),
                   [name](const Command& known) { return name == known.name; });
  return found == kCommands.end() ? nullptr : found;
}

int RefuseCommand(absl::string_view name) {
  std::vector<std::string> names;
  for (const Command& command : kCommands) names.emplace_back(command.name);
  std::cerr << absl::StrCat("sluice: there is no command \"", name, "\"; the nearest is ",
                            NearestOf(name, names), "; sluice help lists all\n");
  return kBadUsage;
}

// Where a program may be, the likeliest place first.
std::vector<std::filesystem::path> PlacesOf(const Command& command) {
  std::error_code error;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", error).parent_path();
  return {self / command.program, self / "../libexec/sluice" / command.program,
          self / "../.." / command.folder / command.program};
}

// Returns only if there is no such program.
int Run(const Command& command, char** argv) {
  for (const std::filesystem::path& place : PlacesOf(command)) {
    if (access(place.c_str(), X_OK) != 0) continue;
    const std::string path = place.lexically_normal();
    std::string name = absl::StrCat("sluice ", command.name);  // see CalledAs()
    argv[0] = name.data();
    execv(path.c_str(), argv);
    std::cerr << absl::StrCat("sluice: ", path, ": ", strerror(errno), "\n");
    return kNoProgram;
  }
  std::cerr << absl::StrCat(
      "sluice: ", command.program,
      " is not there; install the package sluice, or build it: bazel build //", command.folder, ":",
      command.program, "\n");
  return kNoProgram;
}

// "sluice help train" is "sluice train --help".
int Help(int argc, char** argv) {
  if (argc < 3) {
    PrintHelp(std::cout);
    return 0;
  }
  const Command* const command = Find(argv[2]);
  if (command == nullptr) return RefuseCommand(argv[2]);
  std::string flag = "--help";
  std::array<char*, 3> words = {argv[0], flag.data(), nullptr};
  return Run(*command, words.data());
}

int Main(int argc, char** argv) {
  if (argc < 2) {
    PrintHelp(std::cerr);
    return kBadUsage;
  }
  const absl::string_view name = argv[1];
  if (name == "help" || name == "--help" || name == "-h") return Help(argc, argv);
  if (name == "version" || name == "--version") {
    std::cout << VersionText("sluice", {}) << "\n";
    return 0;
  }
  const Command* const command = Find(name);
  return command == nullptr ? RefuseCommand(name) : Run(*command, argv + 1);
}

}  // namespace
}  // namespace sluice

int main(int argc, char** argv) { return sluice::Main(argc, argv); }
