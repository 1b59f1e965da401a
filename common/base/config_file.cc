#include "common/base/config_file.h"

#include <sys/stat.h>

#include <algorithm>
#include <istream>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/base/error.h"
#include "common/base/input_file.h"
#include "common/base/nearest.h"

namespace sluice {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kLargestConfig = 1 << 20;  // bytes
constexpr int kDeepest = 1;                 // a list, as the value of a flag
constexpr char kConfig[] = "--config";
constexpr char kPrintConfig[] = "--print-config";

CLI::ParseError ConfigError(absl::string_view file, absl::string_view what) {
  return CLI::ParseError(absl::StrCat(file, ": ", what), CLI::ExitCodes::ConfigError);
}

bool IsSwitch(const CLI::Option& option) { return option.get_items_expected_max() == 0; }

// The flags that a file may set, in the order of --help.
std::vector<const CLI::Option*> FlagsOf(const CLI::App& app) {
  std::vector<const CLI::Option*> flags;
  for (const CLI::Option* option : app.get_options()) {
    const bool own = option == app.get_help_ptr() || option == app.get_help_all_ptr() ||
                     option == app.get_version_ptr();
    if (!own && option->get_configurable() && !option->get_lnames().empty()) {
      flags.push_back(option);
    }
  }
  for (const CLI::App* group : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (!group->get_name().empty()) continue;  // a command, which is not a group
    const std::vector<const CLI::Option*> inner = FlagsOf(*group);
    flags.insert(flags.end(), inner.begin(), inner.end());
  }
  return flags;
}

std::string KeyOf(const CLI::Option& option) { return option.get_lnames().front(); }

std::string UnknownKey(const std::string& key, const std::vector<const CLI::Option*>& flags) {
  std::vector<std::string> keys;
  for (const CLI::Option* flag : flags) keys.push_back(KeyOf(*flag));
  const std::string unknown = absl::StrCat("no flag of this program is named \"", Shown(key), "\"");
  if (keys.empty()) return absl::StrCat(unknown, ", which has none; leave it out");
  return absl::StrCat(unknown, "; the nearest is \"", NearestOf(key, keys), "\"");
}

// The text that the command line would have; empty if the type is wrong.
std::string TextOf(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  return value.is_number() ? value.dump() : "";
}

std::vector<std::string> ListOf(const Json& values) {
  std::vector<std::string> texts;
  for (const Json& value : values) texts.push_back(TextOf(value));
  return texts;
}

bool IsControl(char letter) { return absl::ascii_iscntrl(static_cast<unsigned char>(letter)); }

bool IsWord(const std::string& text) {
  return !text.empty() && std::none_of(text.begin(), text.end(), IsControl);
}

// What the command line would give to `option`. Empty if the value is none for it.
std::vector<std::string> InputsOf(const CLI::Option& option, const Json& value) {
  if (IsSwitch(option)) {
    if (!value.is_boolean()) return {};
    return {value.get<bool>() ? "true" : "false"};
  }
  const bool lists = value.is_array() && option.get_items_expected_max() > 1;
  std::vector<std::string> inputs = lists ? ListOf(value) : ListOf(Json::array({value}));
  return std::all_of(inputs.begin(), inputs.end(), IsWord) ? inputs : std::vector<std::string>();
}

std::string WrongValue(const CLI::Option& option, const Json& value) {
  const char* expected = IsSwitch(option)                      ? "true or false"
                         : option.get_items_expected_max() > 1 ? "a list of numbers or texts"
                                                               : "a number or a text, not empty "
                                                                 "and without control characters";
  return absl::StrCat(
      "\"", KeyOf(option), "\" is ",
      value.dump(-1, ' ', true, Json::error_handler_t::replace).substr(0, kShownBytes),
      ", expected ", expected);
}

// Throws if the text is UTF-16 or another program's bytes, of which the parser says only that they
// are wrong.
void CheckText(const std::string& file, const std::string& text) {
  const auto at = std::find_if(text.begin(), text.end(), [](char letter) {
    return IsControl(letter) && !absl::ascii_isspace(static_cast<unsigned char>(letter));
  });
  const bool utf16 = absl::StartsWith(text, "\xFF\xFE") || absl::StartsWith(text, "\xFE\xFF");
  if (at == text.end() && !utf16) return;
  const size_t begin = utf16 ? 0 : static_cast<size_t>(at - text.begin());
  throw ConfigError(file, absl::StrCat("it is no text: found \"", Shown(text.substr(begin, 8)),
                                       "\" at byte ", begin, ", expected JSON in UTF-8"));
}

// What the parser says, without its prefix "[json.exception.parse_error.101] ". It quotes what it
// read last, of any length, which the result has escaped.
std::string Readable(absl::string_view error) {
  constexpr absl::string_view kQuote = "last read: '";
  error.remove_prefix(std::min(error.find("] ") + 2, error.size()));
  const size_t begin = error.find(kQuote);
  const size_t end = error.rfind('\'');
  if (begin == error.npos || end < begin + kQuote.size()) return std::string(error);
  const size_t quoted = begin + kQuote.size();
  return absl::StrCat(error.substr(0, quoted), Shown(error.substr(quoted, end - quoted)),
                      error.substr(end));
}

// Reads the file for CLI11, which passes its stream.
class JsonConfig : public CLI::Config {
 public:
  explicit JsonConfig(const CLI::App& app) : app_(app) {}

  std::string to_config(const CLI::App* app, bool /*default_also*/, bool /*write_description*/,
                        std::string /*prefix*/) const override {
    return ConfigText(*app);
  }

  std::vector<CLI::ConfigItem> from_config(std::istream& input) const override {
    const auto file = app_.get_config_ptr()->as<std::string>();
    const std::vector<const CLI::Option*> flags = FlagsOf(app_);
    std::vector<CLI::ConfigItem> items;
    const Json object = Parse(file, input);
    for (const auto& [key, value] : object.items()) {
      const auto found = std::find_if(flags.begin(), flags.end(),
                                      [&key = key](auto* flag) { return KeyOf(*flag) == key; });
      if (found == flags.end()) throw ConfigError(file, UnknownKey(key, flags));
      CLI::ConfigItem item;
      item.name = key;
      item.inputs = InputsOf(**found, value);
      if (item.inputs.empty()) throw ConfigError(file, WrongValue(**found, value));
      items.push_back(std::move(item));
    }
    return items;
  }

 private:
  static Json Parse(const std::string& file, std::istream& input) {
    std::string text(kLargestConfig + 1, '\0');
    input.read(text.data(), static_cast<std::streamsize>(text.size()));
    text.resize(static_cast<size_t>(input.gcount()));
    if (text.size() > kLargestConfig) throw ConfigError(file, "it is larger than 1 MiB");
    CheckText(file, text);
    std::set<std::string> keys;
    const auto check = [&](int depth, Json::parse_event_t event, Json& parsed) {
      using Event = Json::parse_event_t;
      const bool begins = event == Event::object_start || event == Event::array_start;
      if (begins && depth > kDeepest) throw ConfigError(file, "a value is no flag's: too deep");
      if (event != Event::key || depth != 1) return true;
      const auto key = parsed.get<std::string>();
      if (keys.insert(key).second) return true;
      throw ConfigError(file, absl::StrCat("\"", Shown(key), "\" is there twice; leave one out"));
    };
    Json object;
    try {
      object = Json::parse(text, check, true, true);
    } catch (const Json::exception& error) {
      throw ConfigError(file, Readable(error.what()));
    }
    if (object.is_object()) return object;
    throw ConfigError(file, "it is no JSON object; expected {\"workers\": 4, …}");
  }

  const CLI::App& app_;
};

// CLI11 stores the number of a named value. The names are in the type: "ENUM:value in {a->1,b->2}".
std::string NameOf(const CLI::Option& option, const std::string& value) {
  const std::string type = option.get_type_name();
  const size_t arrow = type.find(absl::StrCat("->", value, ","));
  const size_t last = type.find(absl::StrCat("->", value, "}"));
  const size_t end = std::min(arrow, last);
  if (end == std::string::npos) return value;
  const size_t begin = type.find_last_of("{,", end);
  return begin == std::string::npos ? value : type.substr(begin + 1, end - begin - 1);
}

// A number where it has the same text as JSON.
Json ValueOf(const CLI::Option& option, const std::string& text) {
  if (IsSwitch(option)) return CLI::detail::to_flag_value(text) > 0;
  const std::string name = NameOf(option, text);
  const Json number = Json::parse(name, nullptr, false);
  if (number.is_number() && number.dump() == name) return number;
  return name;
}

// A default counts only where the flag may be given.
bool MayBeGiven(const CLI::Option& option) {
  const std::set<CLI::Option*> needs = option.get_needs();
  return std::all_of(needs.begin(), needs.end(), [](auto* other) { return other->count() > 0; });
}

// CLI11 opens the file, and would wait for the other end of a pipe. Empty if it may.
std::string WhyNoInput(const std::string& file) {
  struct stat facts = {};
  if (stat(file.c_str(), &facts) != 0) return "";  // CLI11 says that it is not there
  return std::string(CheckRegular(file, facts).message());
}

}  // namespace

void AddConfigFlags(CLI::App& app, const std::string& file) {
  if (app.get_option_no_throw(kConfig) != nullptr) return;
  if (app.get_option_no_throw(kPrintConfig) != nullptr) return;
  app.set_config(kConfig, file,
                 "file of flags, a JSON object such as {\"mode\": \"ssp\", \"slack\": 4}, with "
                 "comments; --print-config writes one",
                 !file.empty())
      ->check([](const std::string& given) { return WhyNoInput(given); });
  app.config_formatter(std::make_shared<JsonConfig>(app));
  app.add_flag(kPrintConfig, "print the flags and their values as --config reads them, and exit")
      ->configurable(false);
}

bool AsksForConfig(const CLI::App& app) {
  const CLI::Option* const asked = app.get_option_no_throw(kPrintConfig);
  return asked != nullptr && asked->count() > 0;
}

std::string ConfigText(const CLI::App& app) {
  Json object = Json::object();
  for (const CLI::Option* option : FlagsOf(app)) {
    const bool defaults = option->count() == 0;
    if (defaults && (option->get_default_str().empty() || !MayBeGiven(*option))) continue;
    if (!defaults && option->get_items_expected_max() > 1) {
      for (const std::string& text : option->results()) {
        object[KeyOf(*option)].push_back(ValueOf(*option, text));
      }
      continue;
    }
    const std::string text = defaults ? option->get_default_str() : option->results().back();
    object[KeyOf(*option)] = ValueOf(*option, text);
  }
  return object.dump(2, ' ', false, Json::error_handler_t::replace);
}

std::string NameFile(const CLI::App& app, const std::string& error) {
  const CLI::Option* const config = app.get_config_ptr();
  if (config == nullptr) return error;
  const bool given = config->count() > 0;
  const std::string file = given ? config->as<std::string>() : config->get_default_str();
  if (file.empty() || absl::StrContains(error, file)) return error;
  return absl::StrCat(error, " (flags are also set by ", file, ")");
}

}  // namespace sluice
