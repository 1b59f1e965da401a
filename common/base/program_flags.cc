#include "common/base/program_flags.h"

#include <algorithm>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/base/error.h"
#include "common/base/nearest.h"

namespace sluice {
namespace {

constexpr absl::string_view kPrefix = "--sluice-";

// Flags of several words that programs have which know nothing of Sluice. Those of one word all are
// such.
constexpr absl::string_view kOrdinary[] = {
    "checkpoint-dir",   "checkpoint-every", "clip-norm",       "connect-timeout", "json-log",
    "keep-checkpoints", "lr-floor",         "lr-gamma",        "lr-schedule",     "lr-step-size",
    "lr-total-steps",   "lr-warmup-steps",  "max-connections", "max-restarts",    "max-workers",
    "print-config",     "shared-memory",    "start-timeout",   "table-dir",       "tls-ca",
    "tls-cert",         "tls-key",          "token-file"};

bool IsOrdinary(absl::string_view name) {
  return !absl::StrContains(name, '-') || absl::c_linear_search(kOrdinary, name);
}

// "mode" of "--mode=async".
absl::string_view NameIn(absl::string_view word) {
  absl::ConsumePrefix(&word, "--");
  return word.substr(0, word.find('='));
}

const CLI::Option* FlagNamed(const CLI::App& app, absl::string_view name) {
  return app.get_option_no_throw(absl::StrCat("--", name));
}

void AddNames(const CLI::App& app, std::vector<std::string>* names) {
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names->push_back(name);
  }
  for (const CLI::App* group : app.get_subcommands([](const CLI::App*) { return true; })) {
    AddNames(*group, names);
  }
}

CLI::ParseError UnknownFlag(const CLI::App& app, absl::string_view word) {
  std::vector<std::string> names;
  AddNames(app, &names);
  const std::string given(word.substr(0, word.find('=')));
  const std::string nearest = NearestOf(given.substr(kPrefix.size()), names);
  return CLI::ParseError(
      absl::StrCat("Sluice has no flag ", Shown(given), "; the nearest is ", kPrefix, nearest),
      CLI::ExitCodes::ExtrasError);
}

// The flag of Sluice that `word` names, without its prefix, or an empty text. Throws if there is
// none behind the prefix.
std::string TakenWord(const CLI::App& app, TakenFlags which, absl::string_view word) {
  absl::string_view rest = word;
  if (absl::ConsumePrefix(&rest, kPrefix)) {
    if (FlagNamed(app, NameIn(rest)) == nullptr) throw UnknownFlag(app, word);
    return absl::StrCat("--", rest);
  }
  if (absl::StartsWith(word, "--sluice_")) throw UnknownFlag(app, word);
  const bool ours = which == TakenFlags::kAll && absl::StartsWith(word, "--") && word != "--";
  return ours && FlagNamed(app, NameIn(word)) != nullptr ? std::string(word) : "";
}

}  // namespace

ProgramArguments SplitArguments(const CLI::App& app, TakenFlags which, int argc, char** argv) {
  ProgramArguments arguments;
  int i = 1;
  for (; i < argc && absl::string_view(argv[i]) != "--"; ++i) {
    const absl::string_view word = argv[i];
    const std::string taken = TakenWord(app, which, word);
    if (taken.empty()) {
      arguments.left.push_back(argv[i]);
      const std::string name(NameIn(word));
      if (absl::StartsWith(word, "--") && !IsOrdinary(name) && FlagNamed(app, name) != nullptr) {
        arguments.look_like_ours.push_back(absl::StrCat("--", name));
      }
      continue;
    }
    arguments.taken.push_back(taken);
    const bool wants_value = !absl::StrContains(taken, '=') &&
                             FlagNamed(app, NameIn(taken))->get_items_expected_max() > 0;
    const absl::string_view next = i + 1 < argc ? argv[i + 1] : "";
    if (wants_value && !next.empty() && !absl::StartsWith(next, "--")) {
      arguments.taken.emplace_back(argv[++i]);
    }
  }
  arguments.left.insert(arguments.left.end(), argv + i, argv + argc);
  std::vector<std::string>& names = arguments.look_like_ours;
  absl::c_sort(names);
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return arguments;
}

std::string WithPrefix(const CLI::App& app, absl::string_view text) {
  std::string prefixed;
  for (;;) {
    const size_t at = text.find("--");
    absl::StrAppend(&prefixed, text.substr(0, at));
    if (at == text.npos) return prefixed;
    text.remove_prefix(at + 2);
    const auto end = absl::c_find_if(text, [](char letter) {
      return !absl::ascii_islower(letter) && !absl::ascii_isdigit(letter) && letter != '-';
    });
    const std::string name(text.begin(), end);
    absl::StrAppend(&prefixed, FlagNamed(app, name) == nullptr ? "--" : kPrefix, name);
    text.remove_prefix(name.size());
  }
}

}  // namespace sluice
