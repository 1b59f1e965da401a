#include "common/base/command_line.h"

#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/base/error.h"

namespace sluice {
namespace {

constexpr int kBadUsage = 2;

}  // namespace

void AddVersionFlag(CLI::App& app, const std::vector<BuiltWith>& parts) {
  app.set_version_flag(
      "--version", [&app, parts] { return VersionText(app.get_name(), parts); },
      "print the version of this program and of what it is built with, and exit");
}

void ParseArguments(CLI::App& app, int argc, const char* const* argv) {
  for (int i = 1; i < argc; ++i) {
    if (*argv[i] != '\0') continue;
    throw CLI::ParseError(absl::StrCat("argument ", i, " is empty; is a variable not set?"),
                          CLI::ExitCodes::ExtrasError);
  }
  if (app.get_help_ptr() != nullptr && app.get_version_ptr() == nullptr) AddVersionFlag(app, {});
  app.parse(argc, argv);
}

absl::optional<int> ExitCodeOfUsage(CLI::App& app, int argc, const char* const* argv) {
  try {
    ParseArguments(app, argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kBadUsage;
  }
  return absl::nullopt;
}

CLI::Validator NumberFrom(double least, double most) {
  const auto check = [=](const std::string& text) {
    double number = 0;
    // NaN is in no range.
    if (absl::SimpleAtod(text, &number) && number >= least && number <= most) return std::string();
    return absl::StrCat("expected a number from ", least, " to ", most, ", found ", Shown(text));
  };
  return CLI::Validator(check, absl::StrCat("[", least, " - ", most, "]"));
}

CLI::Validator SecondsFrom(double least) { return NumberFrom(least, 1e9); }

}  // namespace sluice
