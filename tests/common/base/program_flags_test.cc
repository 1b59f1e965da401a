#include "common/base/program_flags.h"

#include <string>
#include <vector>

#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/base/command_line.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace sluice {
namespace {

// Sluice's flags: one of each kind, in a group as all of them are.
class ProgramFlagsTest : public ::testing::Test {
 protected:
  ProgramFlagsTest() {
    app_.set_help_flag();
    app_.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
    CLI::App& group = *app_.add_option_group("Group", "of flags");
    group.add_option("--mode", mode_);
    group.add_option("--push-encoding", encoding_);
    group.add_option("--checkpoint-dir", folder_);
    group.add_flag("--error-feedback,!--no-error-feedback", feedback_);
  }

  // "TAKEN | LEFT | those left that look like Sluice's", or the error.
  std::string Split(const std::string& line, TakenFlags which = TakenFlags::kPrefixed) {
    std::vector<std::string> words = {"program"};
    if (!line.empty()) {
      for (const absl::string_view word : absl::StrSplit(line, ' ')) words.emplace_back(word);
    }
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    try {
      const ProgramArguments split =
          ParseProgramArguments(app_, which, static_cast<int>(words.size()), argv.data());
      return absl::StrJoin({absl::StrJoin(split.taken, " "), absl::StrJoin(split.left, " "),
                            absl::StrJoin(split.look_like_ours, " ")},
                           " | ");
    } catch (const CLI::ParseError& error) {
      return error.what();
    }
  }

  CLI::App app_;
  std::string mode_;
  std::string encoding_;
  std::string folder_;
  bool feedback_ = true;
};

TEST_F(ProgramFlagsTest, TakesThoseWithThePrefixAndLeavesTheProgramsInTheirOrder) {
  const std::pair<const char*, const char*> lines[] = {
      {"", " |  | "},
      {"--sluice-mode=async", "--mode=async |  | "},
      {"--sluice-mode async data", "--mode async | data | "},
      {"a --sluice-mode=ssp --mode train -v --workers 4 b",
       "--mode=ssp | a --mode train -v --workers 4 b | "},
      {"--sluice-mode=sync x --sluice-mode=async", "--mode=sync --mode=async | x | "},
      {"--sluice-no-error-feedback data", "--no-error-feedback | data | "},
      {"--sluice-error-feedback=false", "--error-feedback=false |  | "},
      {"--sluice-mode=", "--mode: 1 required TEXT missing"},
      {"--sluice-mode --epochs 3", "--mode: 1 required TEXT missing"},
      {"--sluice-mode", "--mode: 1 required TEXT missing"},
      {"--config my.yaml --sluice-mode=ssp", "--mode=ssp | --config my.yaml | "},
      {"-- --sluice-mode=ssp --sluice-bogus", " | -- --sluice-mode=ssp --sluice-bogus | "},
      {"--sluice x --sluicemode -sluice-mode=ssp",
       " | --sluice x --sluicemode -sluice-mode=ssp | "},
      // Those that hardly another program has are told.
      {"--push-encoding=int8 x", " | --push-encoding=int8 x | --push-encoding"},
      {"--push-encoding int8 --no-error-feedback --push-encoding=sign",
       " | --push-encoding int8 --no-error-feedback --push-encoding=sign | --no-error-feedback "
       "--push-encoding"},
      {"--checkpoint-dir=d --mode=x --push-encodings",
       " | --checkpoint-dir=d --mode=x --push-encodings | "},
      {"-- --push-encoding=int8", " | -- --push-encoding=int8 | "},
      // Those that Sluice does not have are errors.
      {"--sluice-moed=async", "Sluice has no flag --sluice-moed; the nearest is --sluice-mode"},
      {"x --sluice-", "Sluice has no flag --sluice-; the nearest is --sluice-mode"},
      {"--sluice_push_encoding=int8",
       "Sluice has no flag --sluice_push_encoding; the nearest is --sluice-push-encoding"},
      {"--sluice-confg=f", "Sluice has no flag --sluice-confg; the nearest is --sluice-config"},
  };
  for (const auto& [line, split] : lines) EXPECT_EQ(Split(line), split) << line;
}

TEST_F(ProgramFlagsTest, TakesAllIfToldSo) {
  const std::pair<const char*, const char*> lines[] = {
      {"--mode=async --workers 4", "--mode=async | --workers 4 | "},
      {"a --mode ssp b --sluice-push-encoding=int8", "--mode ssp --push-encoding=int8 | a b | "},
      {"--sluice-moed=async", "Sluice has no flag --sluice-moed; the nearest is --sluice-mode"},
      {"--push-encoding=int8 -- --mode=x", "--push-encoding=int8 | -- --mode=x | "},
  };
  for (const auto& [line, split] : lines) EXPECT_EQ(Split(line, TakenFlags::kAll), split) << line;
}

TEST_F(ProgramFlagsTest, AnEmptyArgumentIsTheProgramsAndNoValue) {
  EXPECT_EQ(Split("x  y"), " | x  y | ");
  EXPECT_EQ(Split("--sluice-mode "), "--mode: 1 required TEXT missing");
}

TEST_F(ProgramFlagsTest, ParsesWhatItTakes) {
  Split("--mode=train --sluice-mode=ssp --sluice-no-error-feedback");
  EXPECT_EQ(mode_, "ssp");
  EXPECT_FALSE(feedback_);
}

TEST_F(ProgramFlagsTest, NamesFlagsAsTheProgramsUserWritesThem) {
  EXPECT_EQ(
      WithPrefix(app_, "--mode: x; leave --no-error-feedback out -- or --epochs=3 (--mode)"),
      "--sluice-mode: x; leave --sluice-no-error-feedback out -- or --epochs=3 (--sluice-mode)");
  EXPECT_EQ(WithPrefix(app_, "no --sluice-mode --"), "no --sluice-mode --");
}

}  // namespace
}  // namespace sluice
