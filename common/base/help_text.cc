#include "common/base/help_text.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/base/flag_error.h"

namespace sluice {
namespace {

constexpr size_t kColumn = 30;  // where texts begin
constexpr size_t kNarrowest = 60;
constexpr size_t kUsual = 80;
constexpr size_t kWidest = 100;
constexpr size_t kLongestChoices = 60;  // of "{a,b,c}"; longer ones are in the text

size_t Width() {
  winsize size = {};
  size_t width = 0;
  const char* const columns = std::getenv("COLUMNS");
  if (isatty(STDOUT_FILENO) != 0 && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0) {
    width = size.ws_col;
  } else if (columns == nullptr || !absl::SimpleAtoi(columns, &width)) {
    width = kUsual;
  }
  return std::min(std::max(width, kNarrowest), kWidest);
}

// `text` in lines of `width`, of which all but the first are indented. No word is cut.
std::string Wrapped(absl::string_view text, size_t width, size_t indent = 0) {
  std::string wrapped;
  size_t at = indent;
  for (const absl::string_view word : absl::StrSplit(text, ' ', absl::SkipEmpty())) {
    if (at > indent && at + 1 + word.size() > width) {
      absl::StrAppend(&wrapped, "\n", std::string(indent, ' '));
      at = indent;
    }
    absl::StrAppend(&wrapped, at > indent ? " " : "", word);
    at += word.size() + (at > indent ? 1 : 0);
  }
  return wrapped;
}

// A name, and a text beside it, or below if there is no room.
std::string Entry(const std::string& name, const std::string& text, size_t width) {
  std::string entry = absl::StrCat("  ", name);
  if (text.empty()) return entry + "\n";
  const bool has_room = entry.size() + 2 <= kColumn;
  absl::StrAppend(&entry, has_room ? "" : "\n",
                  std::string(kColumn - (has_room ? entry.size() : 0), ' '),
                  Wrapped(text, width, kColumn), "\n");
  return entry;
}

bool TakesNoValue(const CLI::Option& option) { return option.get_items_expected_max() == 0; }

// What stands for a value: N a whole number, X a number.
std::string ValueOf(const CLI::Option& option) {
  if (TakesNoValue(option)) return "";
  const std::string type = option.get_type_name();
  const std::string choices = absl::StrCat("{", absl::StrJoin(NamesIn(type), ","), "}");
  if (choices != "{}" && choices.size() <= kLongestChoices) return choices;
  if (absl::StartsWith(type, "INT") || absl::StartsWith(type, "UINT")) return "N";
  if (absl::StartsWith(type, "FLOAT")) return "X";
  return absl::StartsWith(type, "BOOLEAN") ? "{on,off}" : "TEXT";
}

std::string TextOf(const CLI::Option& option) {
  std::string text = option.get_description();
  const std::string value = option.get_default_str();
  if (!value.empty() && !TakesNoValue(option)) absl::StrAppend(&text, " (default: ", value, ")");
  if (option.get_required()) absl::StrAppend(&text, " (required)");
  return text;
}

std::string EntryOf(const CLI::Option& option, size_t width) {
  const bool positional = option.get_positional();
  std::string name = option.get_name(positional, !positional);
  // Of "--test,--no-test{false}".
  name = absl::StrJoin(absl::StrSplit(name, "{false}"), "");
  const std::string value = positional ? "" : ValueOf(option);
  absl::StrAppend(&name, value.empty() ? "" : " ", value);
  if (option.get_expected_max() == CLI::detail::expected_max_vector_size)
    absl::StrAppend(&name, " ...");
  return Entry(name, TextOf(option), width);
}

std::vector<const CLI::App*> GroupsOf(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App* inner) {
    return inner->get_name().empty() && !inner->get_group().empty();
  });
}

// The flags of `app` itself, without those of its groups. A group has a --help that nobody can
// call.
std::vector<const CLI::Option*> ShownFlags(const CLI::App& app) {
  const bool is_group = app.get_name().empty() && app.get_parent() != nullptr;
  return app.get_options([&](const CLI::Option* option) {
    const bool asks = option == app.get_help_ptr() || option == app.get_help_all_ptr();
    return option->nonpositional() && !option->get_group().empty() && !(is_group && asks);
  });
}

std::string Flags(const CLI::App& app, size_t width) {
  std::string text;
  for (const CLI::Option* const option : ShownFlags(app)) text += EntryOf(*option, width);
  return text;
}

std::string GroupText(const CLI::App& group, size_t width) {
  const std::string about = group.get_description();
  return absl::StrCat("\n", group.get_group(), about.empty() ? "" : absl::StrCat(" (", about, ")"),
                      ":\n", Flags(group, width));
}

const CLI::Option* Find(const CLI::App& app, const std::string& flag) {
  const CLI::Option* found = app.get_option_no_throw(flag);
  for (const CLI::App* const group : GroupsOf(app)) {
    if (found == nullptr) found = group->get_option_no_throw(flag);
  }
  return found;
}

size_t CountFlags(const CLI::App& app) {
  size_t count = ShownFlags(app).size();
  for (const CLI::App* const group : GroupsOf(app)) count += ShownFlags(*group).size();
  return count;
}

class HelpText final : public CLI::Formatter {
 public:
  HelpText(std::vector<std::string> first, std::vector<std::string> examples)
      : first_(std::move(first)), examples_(std::move(examples)) {}

  std::string make_help(const CLI::App* app, std::string name,
                        CLI::AppFormatMode mode) const override {
    const size_t width = Width();
    std::string text =
        absl::StrCat(Wrapped(app->get_description(), width),
                     app->get_description().empty() ? "" : "\n", make_usage(app, std::move(name)));
    const bool is_short = mode == CLI::AppFormatMode::Normal && !first_.empty();
    return text + (is_short ? Short(*app, width) : Whole(*app, width));
  }

 private:
  std::string Short(const CLI::App& app, size_t width) const {
    std::string text = "\nOptions:\n";
    for (const std::string& flag : first_) {
      const CLI::Option* const option = Find(app, flag);
      if (option != nullptr) text += EntryOf(*option, width);
    }
    absl::StrAppend(&text, "\nExamples:\n");
    for (const std::string& example : examples_) absl::StrAppend(&text, "  ", example, "\n");
    const std::string rest =
        absl::StrCat("--help-all lists all ", CountFlags(app),
                     " flags, and --help=GROUP those of one of the groups ", GroupTitles(app), ".");
    return absl::StrCat(text, "\n", Wrapped(rest, width), "\n");
  }

  static std::string Whole(const CLI::App& app, size_t width) {
    std::string text;
    const auto positionals = app.get_options([](const CLI::Option* option) {
      return option->get_positional() && !option->get_group().empty();
    });
    if (!positionals.empty()) text += "\nPositionals:\n";
    for (const CLI::Option* const option : positionals) text += EntryOf(*option, width);
    absl::StrAppend(&text, "\nOptions:\n", Flags(app, width));
    for (const CLI::App* const group : GroupsOf(app)) text += GroupText(*group, width);
    const auto commands =
        app.get_subcommands([](const CLI::App* inner) { return !inner->get_name().empty(); });
    if (!commands.empty()) text += "\nSubcommands:\n";
    for (const CLI::App* const command : commands) {
      text += Entry(command->get_display_name(), command->get_description(), width);
    }
    for (const absl::string_view line : absl::StrSplit(app.get_footer(), '\n')) {
      if (!line.empty()) absl::StrAppend(&text, "\n", Wrapped(line, width), "\n");
    }
    return text;
  }

  const std::vector<std::string> first_;
  const std::vector<std::string> examples_;
};

}  // namespace

void ShowFirst(CLI::App& app, std::vector<std::string> flags, std::vector<std::string> examples) {
  app.formatter(std::make_shared<HelpText>(std::move(flags), std::move(examples)));
}

void SetHelp(CLI::App& app) {
  if (std::dynamic_pointer_cast<HelpText>(app.get_formatter()) == nullptr) ShowFirst(app, {}, {});
  for (CLI::App* const command : app.get_subcommands([](CLI::App*) { return true; }))
    SetHelp(*command);
  if (app.get_help_ptr() != nullptr) app.set_help_all_flag("--help-all", "list all flags and exit");
}

std::string HelpOfGroup(const CLI::App& app, absl::string_view title) {
  for (const CLI::App* const group : GroupsOf(app)) {
    if (absl::EqualsIgnoreCase(group->get_group(), title))
      return GroupText(*group, Width()).substr(1);
  }
  return "";
}

std::string GroupTitles(const CLI::App& app) {
  std::vector<std::string> titles;
  for (const CLI::App* const group : GroupsOf(app)) titles.push_back(group->get_group());
  return absl::StrJoin(titles, ", ");
}

}  // namespace sluice
