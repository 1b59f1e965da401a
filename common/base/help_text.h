// The text of --help: lines as wide as the terminal, values by plain words instead of CLI11's
// types, and, of a program with many flags, those that most people use first.

#ifndef SLUICE_COMMON_BASE_HELP_TEXT_H_
#define SLUICE_COMMON_BASE_HELP_TEXT_H_

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace sluice {

// Makes --help list these flags alone, then the examples, one a line, and the titles of all groups.
// --help-all then lists the rest.
void ShowFirst(CLI::App& app, std::vector<std::string> flags, std::vector<std::string> examples);

// Gives `app` this text, and --help-all. ParseArguments() calls it.
void SetHelp(CLI::App& app);

// The flags of the group with that title, in any case; "" if there is none.
std::string HelpOfGroup(const CLI::App& app, absl::string_view title);

// The titles of the groups: "Optimizer, Job, Server".
std::string GroupTitles(const CLI::App& app);

}  // namespace sluice

#endif  // SLUICE_COMMON_BASE_HELP_TEXT_H_
