#include "common/base/command_line.h"

#include <locale.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "absl/types/span.h"
#include "common/base/config_file.h"
#include "common/base/error.h"
#include "common/base/flag_error.h"
#include "common/base/help_text.h"

namespace sluice {
namespace {

constexpr int kBadUsage = 2;
constexpr char kEnvironment[] =
    "A flag that is not given has the value of its variable in the environment, which is named "
    "SLUICE_ and the flag's name in capitals, with _ for -. A switch takes true or false. A flag "
    "that is not there either has the value that the file of --config gives it.";
constexpr char kConfigVariable[] = "SLUICE_CONFIG";

// While it exists, this thread reads and writes numbers as C does: "0.5". CLI11 uses strtold(),
// which expects "0,5" if the program has chosen such a locale.
class NumbersOfC {
 public:
  NumbersOfC() : c_(newlocale(LC_ALL_MASK, "C", nullptr)), before_(uselocale(c_)) {}
  ~NumbersOfC() {
    uselocale(before_);
    freelocale(c_);
  }

  NumbersOfC(const NumbersOfC&) = delete;
  NumbersOfC& operator=(const NumbersOfC&) = delete;

 private:
  const locale_t c_;
  const locale_t before_;
};

// SLUICE_PUSH_ENCODING for push-encoding.
std::string VariableOf(absl::string_view flag) {
  return absl::StrCat("SLUICE_", absl::AsciiStrToUpper(absl::StrReplaceAll(flag, {{"-", "_"}})));
}

bool IsSet(const std::string& variable) {
  const char* const value = std::getenv(variable.c_str());
  return value != nullptr && *value != '\0';
}

bool IsGiven(const CLI::Option& option, absl::Span<const char* const> words) {
  const std::vector<std::string>& names = option.get_lnames();
  return std::any_of(names.begin(), names.end(), [&](const std::string& name) {
    return std::any_of(words.begin(), words.end(), [&](absl::string_view word) {
      return absl::ConsumePrefix(&word, "--") && absl::ConsumePrefix(&word, name) &&
             (word.empty() || word.front() == '=');
    });
  });
}

// Gives the options of `app`, of its groups and of its commands the values of their variables, if
// they are not among the words of the command line. CLI11's own envname() does not do: from version
// 2.4 on it leaves out groups of which no option is given, and ignores values that are not valid.
void ReadEnvironment(CLI::App& app, absl::Span<const char* const> words) {
  for (CLI::Option* option : app.get_options()) {
    if (option->get_lnames().empty()) continue;
    if (option == app.get_help_ptr() || option == app.get_help_all_ptr()) continue;
    if (option == app.get_version_ptr()) continue;
    const std::string variable = VariableOf(option->get_lnames().front());
    if (variable == kConfigVariable) continue;  // AddFiles() does it
    if (IsSet(variable) && !IsGiven(*option, words))
      option->add_result(std::getenv(variable.c_str()));
  }
  for (CLI::App* inner : app.get_subcommands([](CLI::App*) { return true; })) {
    ReadEnvironment(*inner, words);
  }
}

// Adds the flags about files of flags. The environment may name a file, too.
void AddFiles(CLI::App& app, bool reads_environment) {
  const bool named = reads_environment && IsSet(kConfigVariable);
  AddConfigFlags(app, named ? std::getenv(kConfigVariable) : "");
}

bool AsksForHelp(const CLI::App& app, int argc, const char* const* argv) {
  return app.get_help_ptr() != nullptr &&
         std::any_of(argv + 1, argv + argc, [](absl::string_view word) {
           return word == "--help" || word == "-h" || word == "--help-all" || word == "--version";
         });
}

// The sentence about a flag that is unsigned and has a negative value; "" if there is none. CLI11
// 2.1 takes it for a very large number.
std::string NegativeIn(const CLI::App& app) {
  for (const CLI::Option* const option : app.get_options()) {
    if (!absl::StartsWith(option->get_type_name(), "UINT")) continue;
    for (const std::string& value : option->results()) {
      if (!absl::StartsWith(absl::StripLeadingAsciiWhitespace(value), "-")) continue;
      return SentenceOf(app, CLI::ValidationError(option->get_name(), value));
    }
  }
  for (const CLI::App* const inner : app.get_subcommands([](const CLI::App*) { return true; })) {
    const std::string negative = NegativeIn(*inner);
    if (!negative.empty()) return negative;
  }
  return "";
}

// Throws the text that --help=GROUP asks for.
void TellGroup(const CLI::App& app, int argc, const char* const* argv) {
  for (int i = 1; i < argc; ++i) {
    absl::string_view title = argv[i];
    if (!absl::ConsumePrefix(&title, "--help=")) continue;
    const std::string text = HelpOfGroup(app, title);
    if (!text.empty()) throw CLI::CallForVersion(text, CLI::ExitCodes::Success);
    throw CLI::ParseError(
        absl::StrCat("--help: expected one of ", GroupTitles(app), ", found ", Shown(title)),
        CLI::ExitCodes::ExtrasError);
  }
}

// The names of the flags in a text, without their dashes.
std::vector<std::string> FlagsIn(absl::string_view text) {
  std::vector<std::string> flags;
  for (;;) {
    const size_t at = text.find("--");
    if (at == text.npos) return flags;
    text.remove_prefix(at + 2);
    const auto end = std::find_if(text.begin(), text.end(), [](char letter) {
      return !absl::ascii_islower(letter) && !absl::ascii_isdigit(letter) && letter != '-';
    });
    flags.emplace_back(text.begin(), end);
  }
}

}  // namespace

std::string CalledAs(absl::string_view name) {
  const absl::string_view started_as = program_invocation_name;  // glibc's: argv[0]
  return std::string(absl::StartsWith(started_as, "sluice ") ? started_as : name);
}

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
  app.name(CalledAs(app.get_name()));
  if (app.get_help_ptr() != nullptr && app.get_version_ptr() == nullptr) AddVersionFlag(app, {});
  app.footer(absl::StrCat(app.get_footer(), app.get_footer().empty() ? "" : "\n", kEnvironment));
  const bool reads_environment = !AsksForHelp(app, argc, argv);
  AddFiles(app, reads_environment);
  SetHelp(app);
  if (app.get_help_ptr() != nullptr) TellGroup(app, argc, argv);
  app.clear();  // else a second parse() would, after this
  if (reads_environment) ReadEnvironment(app, absl::MakeConstSpan(argv, argc));
  const NumbersOfC numbers;
  try {
    app.parse(argc, argv);
    if (!NegativeIn(app).empty()) throw CLI::ParseError("", CLI::ExitCodes::ValidationError);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) throw;
    const std::string negative = NegativeIn(app);
    const std::string named =
        NameFile(app, NameVariables(negative.empty() ? SentenceOf(app, error) : negative));
    if (named == error.what()) throw;
    throw CLI::ParseError(named, static_cast<CLI::ExitCodes>(error.get_exit_code()));
  }
  if (AsksForConfig(app)) throw CLI::CallForVersion(ConfigText(app), CLI::ExitCodes::Success);
}

ProgramArguments ParseProgramArguments(CLI::App& app, TakenFlags which, int argc, char** argv) {
  AddFiles(app, true);
  ProgramArguments arguments = SplitArguments(app, which, argc, argv);
  std::vector<const char*> words = {argv[0]};
  for (const std::string& word : arguments.taken) words.push_back(word.c_str());
  ParseArguments(app, static_cast<int>(words.size()), words.data());
  return arguments;
}

absl::optional<int> ExitCodeOfUsage(CLI::App& app, int argc, const char* const* argv) {
  try {
    ParseArguments(app, argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kBadUsage;
  }
  return absl::nullopt;
}

std::string NameVariables(const std::string& error) {
  std::vector<std::string> variables;
  for (const std::string& flag : FlagsIn(error)) {
    // A switch that --no-... turns off has a variable without "no".
    const std::string turned = absl::StartsWith(flag, "no-") ? flag.substr(3) : flag;
    for (const std::string& variable : {VariableOf(flag), VariableOf(turned)}) {
      const bool named = absl::StrContains(error, variable) ||
                         std::count(variables.begin(), variables.end(), variable) > 0;
      if (IsSet(variable) && !named) variables.push_back(variable);
    }
  }
  if (variables.empty()) return error;
  return absl::StrCat(error, " (set in the environment: ", absl::StrJoin(variables, ", "), ")");
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
