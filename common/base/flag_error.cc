#include "common/base/flag_error.h"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "common/base/error.h"
#include "common/base/nearest.h"

namespace sluice {
namespace {

// Null if neither the program nor the command that was called has the flag.
const CLI::Option* FindFlag(const CLI::App& app, const std::string& flag) {
  for (const CLI::App* command : app.get_subcommands()) {
    const CLI::Option* const found = FindFlag(*command, flag);
    if (found != nullptr) return found;
  }
  return app.get_option_no_throw(flag);
}

// "--slack" of a text that names it first.
std::string FlagIn(absl::string_view text) {
  const size_t begin = text.find("--");
  if (begin == text.npos) return "";
  const auto end = std::find_if(text.begin() + begin + 2, text.end(), [](char letter) {
    return !absl::ascii_isalnum(letter) && letter != '-';
  });
  return std::string(text.begin() + begin, end);
}

bool IsNumber(absl::string_view type) {
  return absl::StartsWith(type, "INT") || absl::StartsWith(type, "UINT") ||
         absl::StartsWith(type, "FLOAT");
}

// The range of a number, from "INT:POSITIVE" or "INT:INT in [1 - 64]".
std::string RangeIn(absl::string_view type) {
  const bool whole = !absl::StartsWith(type, "FLOAT");
  if (absl::EndsWith(type, ":POSITIVE")) return whole ? " from 1" : " above 0";
  const size_t begin = type.find('[');
  const size_t end = type.find(']');
  if (begin < end && end != type.npos) {
    const std::vector<std::string> ends =
        absl::StrSplit(type.substr(begin + 1, end - begin - 1), " - ");
    return absl::StrCat(" from ", absl::StrJoin(ends, " to "));
  }
  const bool unsigned_type = absl::StartsWith(type, "UINT");
  return unsigned_type || absl::StrContains(type, "NONNEGATIVE") ? " from 0" : "";
}

// What a value of this type of CLI11 is; empty for a text.
std::string Expected(absl::string_view type, absl::string_view value) {
  const std::string names = absl::StrJoin(NamesIn(type), ", ");
  if (!names.empty() && absl::StrContains(type, '[')) {
    return absl::StrCat(names, ", or a number", RangeIn(type));
  }
  if (!names.empty()) return absl::StrCat("one of ", names);
  if (absl::StartsWith(type, "BOOLEAN")) return "on or off";
  if (!IsNumber(type)) return "";
  const std::string range = RangeIn(type);
  if (absl::StartsWith(type, "FLOAT")) return absl::StrCat("a number", range);
  const bool too_large =
      absl::c_all_of(value, absl::ascii_isdigit) && !absl::StrContains(range, "to");
  return absl::StrCat(too_large && value != "0" ? "a smaller number" : "a whole number", range);
}

// Flags of `app` and of the command that was called, with their dashes.
void AddFlags(const CLI::App& app, std::vector<std::string>* flags) {
  for (const CLI::Option* const option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) flags->push_back(absl::StrCat("--", name));
  }
  for (const CLI::App* const inner : app.get_subcommands(
           [](const CLI::App* one) { return one->get_name().empty() || one->parsed(); })) {
    AddFlags(*inner, flags);
  }
}

// "--lr is not a flag; did you mean --learning-rate?".
std::string NoFlag(const CLI::App& app, absl::string_view word) {
  static const auto* const short_forms = new std::map<absl::string_view, const char*>{
      {"--lr", "--learning-rate"}, {"--wd", "--weight-decay"}, {"--bs", "--batch-size"}};
  const absl::string_view flag = word.substr(0, word.find('='));
  std::vector<std::string> flags;
  AddFlags(app, &flags);
  const auto meant = short_forms->find(flag);
  const bool known = meant != short_forms->end() && absl::c_linear_search(flags, meant->second);
  return absl::StrCat(
      Shown(flag), " is not a flag",
      known ? absl::StrCat("; did you mean ", meant->second, "?") : DidYouMean(flag, flags));
}

// What is wrong with words that nobody expected; empty if there are none.
std::string WhatIsNotExpected(const CLI::App& app) {
  const std::vector<std::string> words = app.remaining(true);
  if (words.empty()) return "";
  if (absl::StartsWith(words.front(), "-")) return NoFlag(app, words.front());
  for (const CLI::App* const command : app.get_subcommands()) {
    return absl::StrCat(command->get_name(), " takes no such word: ", Shown(words.front()));
  }
  std::vector<std::string> commands;
  for (const CLI::App* const command :
       app.get_subcommands([](const CLI::App* one) { return !one->get_name().empty(); })) {
    commands.push_back(command->get_name());
  }
  if (commands.empty()) return "";
  return absl::StrCat(Shown(words.front()), " is not a command",
                      DidYouMean(words.front(), commands));
}

}  // namespace

std::vector<absl::string_view> NamesIn(absl::string_view type) {
  const size_t begin = type.find('{');
  const size_t end = type.find('}', begin);
  if (begin == type.npos || end == type.npos) return {};
  std::vector<absl::string_view> names =
      absl::StrSplit(type.substr(begin + 1, end - begin - 1), ',');
  for (absl::string_view& name : names) name = name.substr(0, name.find("->"));
  return names;
}

std::string SentenceOf(const CLI::App& app, const CLI::ParseError& error) {
  const std::string text = error.what();
  const auto code = static_cast<CLI::ExitCodes>(error.get_exit_code());
  if (code == CLI::ExitCodes::ExtrasError || code == CLI::ExitCodes::RequiredError) {
    const std::string unexpected = WhatIsNotExpected(app);
    return unexpected.empty() ? text : unexpected;
  }
  const bool of_value =
      error.get_name() == "ValidationError" || error.get_name() == "ConversionError";
  // Our own checks say what they expect.
  if (!of_value || absl::StrContains(text, "expected")) return text;
  const std::string flag = FlagIn(text);
  const CLI::Option* const option = flag.empty() ? nullptr : FindFlag(app, flag);
  if (option == nullptr || option->results().empty()) return text;
  const std::string& value = option->results().back();
  const bool is_switch = option->get_items_expected_max() == 0;
  const std::string type = option->get_type_name();
  const std::string expected = is_switch ? "true or false" : Expected(type, value);
  if (expected.empty()) return text;
  const std::vector<absl::string_view> named = NamesIn(type);
  return absl::StrCat(flag, ": expected ", expected, ", found ", Shown(value),
                      DidYouMean(value, {named.begin(), named.end()}));
}

}  // namespace sluice
