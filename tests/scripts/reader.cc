#include <fstream>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "gtest/gtest.h"
#include "tests/scripts/player.h"

namespace sluice {
namespace {

std::vector<std::string> WordsOf(absl::string_view text) {
  return absl::StrSplit(text, ' ', absl::SkipEmpty());
}

// A value, or "100x0.5": so many equal ones.
void AddValues(const std::string& word, std::vector<float>* values) {
  const std::vector<std::string> parts = absl::StrSplit(word, 'x');
  size_t count = 1;
  float value = 0;
  EXPECT_TRUE(absl::SimpleAtof(parts.back(), &value) &&
              (parts.size() == 1 || absl::SimpleAtoi(parts[0], &count)))
      << word << " is no number";
  values->insert(values->end(), count, value);
}

// An action, "name words: values -> answers".
ScriptLine LineOf(absl::string_view text, int number) {
  ScriptLine line;
  line.number = number;
  const std::pair<absl::string_view, absl::string_view> both =
      absl::StrSplit(text, absl::MaxSplits(" -> ", 1));
  line.answers = std::string(absl::StripAsciiWhitespace(both.second));
  const std::pair<absl::string_view, absl::string_view> action =
      absl::StrSplit(both.first, absl::MaxSplits(": ", 1));
  line.words = WordsOf(action.first);
  for (const std::string& word : WordsOf(action.second)) AddValues(word, &line.values);
  return line;
}

}  // namespace

std::vector<Story> ReadScript(const std::string& path) {
  std::ifstream file(path);
  EXPECT_TRUE(file.good()) << path;
  std::vector<Story> stories;
  std::vector<std::string> rows = {"1", "3"};
  std::string text;
  for (int number = 1; std::getline(file, text); ++number) {
    SCOPED_TRACE(absl::StrCat(path, ":", number));
    absl::string_view line = absl::StripAsciiWhitespace(text);
    if (line.empty() || line[0] == '#') continue;
    if (absl::ConsumePrefix(&line, "story ")) {
      stories.push_back({std::string(line), rows, {}});
    } else if (absl::ConsumePrefix(&line, "rows ")) {
      (stories.empty() ? rows : stories.back().rows) = WordsOf(line);
    } else if (stories.empty()) {
      ADD_FAILURE() << "an action before the first story";
    } else {
      stories.back().lines.push_back(LineOf(line, number));
    }
  }
  return stories;
}

}  // namespace sluice
