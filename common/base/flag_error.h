// Says what is wrong with a command line.

#ifndef SLUICE_COMMON_BASE_FLAG_ERROR_H_
#define SLUICE_COMMON_BASE_FLAG_ERROR_H_

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace sluice {

// The sentence for an error of app.parse() about a value: "--slack: expected a whole number from 0,
// found x". CLI11's own does not say what it expects, or has the numbers of named values and ranges
// of 300 digits. About a flag or a command that does not exist: with the nearest one. Other errors
// stay as they are.
std::string SentenceOf(const CLI::App& app, const CLI::ParseError& error);

// The names in a type of CLI11 such as "{a,b}" or "ENUM:value in {a->1,b->2}"; none without braces.
std::vector<absl::string_view> NamesIn(absl::string_view type);

}  // namespace sluice

#endif  // SLUICE_COMMON_BASE_FLAG_ERROR_H_
