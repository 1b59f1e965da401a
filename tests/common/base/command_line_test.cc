#include "common/base/command_line.h"

#include <cstdlib>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/commit.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace sluice {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class VersionFlagTest : public ::testing::Test {
 protected:
  VersionFlagTest() : app_("Does something", "program") {}

  // What `program --version` prints.
  std::string Version() {
    const char* const words[] = {"program", "--version"};
    ::testing::internal::CaptureStdout();
    const absl::optional<int> code = ExitCodeOfUsage(app_, 2, words);
    const std::string printed = ::testing::internal::GetCapturedStdout();
    EXPECT_EQ(code, 0);
    return printed;
  }

  CLI::App app_;
};

TEST_F(VersionFlagTest, EveryProgramHasIt) {
  EXPECT_EQ(Version(), absl::StrCat("program (Sluice) ", kVersion, "\ncommit ", kCommit, "\n"));
}

TEST_F(VersionFlagTest, SaysWhatTheProgramIsBuiltWith) {
  AddVersionFlag(app_, {{"gRPC", "1.2.3"}, {"LibTorch", "4.5"}});
  EXPECT_EQ(Version(), absl::StrCat("program (Sluice) ", kVersion, "\ncommit ", kCommit,
                                    "\ngRPC 1.2.3\nLibTorch 4.5\n"));
}

TEST_F(VersionFlagTest, IsLeftToAProgramThatKeepsItsHelpFlag) {
  app_.set_help_flag();
  const char* const words[] = {"program", "--version"};
  EXPECT_THROW(ParseArguments(app_, 2, words), CLI::ParseError);
}

// A program with flags of each kind, and its environment.
class EnvironmentTest : public ::testing::Test {
 protected:
  EnvironmentTest() : app_("Does something", "program") {
    CLI::App& group = *app_.add_option_group("Group", "of flags");
    group.add_option("--push-encoding", encoding_);
    group.add_option("--momentum", momentum_)->check(CLI::Range(0, 1));
    app_.add_option("--workers", workers_)->check(CLI::Range(1, 9));
    CLI::Option* const directory = app_.add_option("--directory", directory_);
    app_.add_option("--every", every_)->needs(directory);
    app_.add_flag("--test,!--no-test", test_);
    app_.add_flag_callback("--nesterov", [this] { nesterov_ = true; });
  }
  ~EnvironmentTest() override {
    for (const std::string& variable : set_) unsetenv(variable.c_str());
  }

  void Set(const std::string& variable, const std::string& value) {
    setenv(variable.c_str(), value.c_str(), 1);
    set_.push_back(variable);
  }

  // Parses the words; the error, or empty.
  std::string Parse(std::vector<const char*> words = {}) {
    words.insert(words.begin(), "program");
    try {
      ParseArguments(app_, static_cast<int>(words.size()), words.data());
    } catch (const CLI::ParseError& error) {
      return error.what();
    }
    return "";
  }

  CLI::App app_;
  std::string encoding_ = "none";
  double momentum_ = 0;
  std::string directory_;
  int workers_ = 1;
  int every_ = 0;
  bool test_ = true;
  bool nesterov_ = false;
  std::vector<std::string> set_;
};

TEST_F(EnvironmentTest, SetsFlagsThatTheCommandLineDoesNotGive) {
  Set("SLUICE_PUSH_ENCODING", "int8");
  Set("SLUICE_WORKERS", "3");
  Set("SLUICE_TEST", "false");
  Set("SLUICE_NESTEROV", "true");
  EXPECT_EQ(Parse(), "");
  EXPECT_EQ(encoding_, "int8");
  EXPECT_EQ(workers_, 3);
  EXPECT_FALSE(test_);
  EXPECT_TRUE(nesterov_);
}

TEST_F(EnvironmentTest, IsOverruledByTheCommandLine) {
  Set("SLUICE_WORKERS", "3");
  Set("SLUICE_TEST", "false");
  EXPECT_EQ(Parse({"--workers=4", "--test"}), "");
  EXPECT_EQ(workers_, 4);
  EXPECT_TRUE(test_);
}

TEST_F(EnvironmentTest, SetsNothingWithAnEmptyVariable) {
  Set("SLUICE_WORKERS", "");
  EXPECT_EQ(Parse(), "");
  EXPECT_EQ(workers_, 1);
}

TEST_F(EnvironmentTest, ANegativeNumberIsNoLargeOne) {
  uint64_t seed = 0;
  app_.add_option("--seed", seed);
  EXPECT_EQ(Parse({"--seed=-7"}), "--seed: expected a whole number from 0, found -7");
  Set("SLUICE_SEED", "-7");
  EXPECT_THAT(Parse(), HasSubstr("found -7 (set in the environment: SLUICE_SEED)"));
}

TEST_F(EnvironmentTest, AnErrorNamesTheVariable) {
  Set("SLUICE_WORKERS", "many");
  EXPECT_THAT(Parse(), HasSubstr("many"));
  EXPECT_THAT(Parse(), HasSubstr("(set in the environment: SLUICE_WORKERS)"));
}

TEST_F(EnvironmentTest, AnErrorOfAFlagInAGroupNamesTheVariable) {
  Set("SLUICE_MOMENTUM", "2");
  EXPECT_THAT(Parse(), HasSubstr("(set in the environment: SLUICE_MOMENTUM)"));
}

TEST_F(EnvironmentTest, AnErrorOfASwitchNamesTheVariable) {
  Set("SLUICE_TEST", "maybe");
  EXPECT_THAT(Parse(), HasSubstr("(set in the environment: SLUICE_TEST)"));
}

TEST_F(EnvironmentTest, AnErrorOfTwoFlagsNamesTheVariableThatIsSet) {
  Set("SLUICE_EVERY", "3");
  EXPECT_EQ(Parse(), "--every requires --directory (set in the environment: SLUICE_EVERY)");
}

TEST_F(EnvironmentTest, AnErrorOfAnotherFlagNamesNoVariable) {
  Set("SLUICE_WORKERS", "3");
  EXPECT_THAT(Parse({"--every=x"}), Not(HasSubstr("environment")));
}

TEST_F(EnvironmentTest, IsNotReadForHelp) {
  Set("SLUICE_WORKERS", "many");
  const char* const words[] = {"program", "--help"};
  ::testing::internal::CaptureStdout();
  EXPECT_EQ(ExitCodeOfUsage(app_, 2, words), 0);
  EXPECT_THAT(::testing::internal::GetCapturedStdout(), Not(HasSubstr("SLUICE_WORKERS")));
}

TEST_F(EnvironmentTest, AFlagOfAProgramWithAHelpOfItsOwnIsNoRequestForHelp) {
  app_.set_help_flag();
  app_.allow_extras();
  Set("SLUICE_WORKERS", "3");
  EXPECT_EQ(Parse({"-h"}), "");
  EXPECT_EQ(workers_, 3);
}

// The same program, and a file of flags.
class ConfigFileTest : public EnvironmentTest {
 protected:
  ConfigFileTest() : path_(absl::StrCat(::testing::TempDir(), "/job.json")) {
    const std::map<std::string, int> kLevels = {{"low", 0}, {"high", 1}};
    app_.add_option("--level", level_)->transform(CLI::CheckedTransformer(kLevels));
    app_.add_option("--hosts", hosts_);
  }

  // Parses the words with this file.
  std::string ParseFile(const std::string& text, std::vector<const char*> words = {}) {
    std::ofstream(path_) << text;
    argument_ = absl::StrCat("--config=", path_);
    words.push_back(argument_.c_str());
    return Parse(words);
  }

  // The error of a file, which must name it.
  std::string ErrorOf(const std::string& text) {
    const std::string error = ParseFile(text);
    EXPECT_THAT(error, HasSubstr(path_));
    return error;
  }

  const std::string path_;
  std::string argument_;
  int level_ = 0;
  std::vector<std::string> hosts_;
};

TEST_F(ConfigFileTest, SetsFlagsOfEveryKindAndHasComments) {
  EXPECT_EQ(ParseFile(R"({
    // how it is sent
    "push-encoding": "int8", /* and by whom */ "workers": 3,
    "test": false, "nesterov": true, "level": "high", "hosts": ["a", "b"]})"),
            "");
  EXPECT_EQ(encoding_, "int8");
  EXPECT_EQ(workers_, 3);
  EXPECT_FALSE(test_);
  EXPECT_TRUE(nesterov_);
  EXPECT_EQ(level_, 1);
  EXPECT_EQ(hosts_, std::vector<std::string>({"a", "b"}));
}

TEST_F(ConfigFileTest, IsOverruledByTheEnvironmentAndTheCommandLine) {
  Set("SLUICE_PUSH_ENCODING", "sign");
  Set("SLUICE_WORKERS", "4");
  EXPECT_EQ(ParseFile(R"({"push-encoding": "int8", "workers": 3, "every": 7, "directory": "d"})",
                      {"--workers=5"}),
            "");
  EXPECT_EQ(encoding_, "sign");
  EXPECT_EQ(workers_, 5);
  EXPECT_EQ(every_, 7);
}

TEST_F(ConfigFileTest, IsNamedByTheEnvironment) {
  std::ofstream(path_) << R"({"workers": 3})";
  Set("SLUICE_CONFIG", path_);
  EXPECT_EQ(Parse(), "");
  EXPECT_EQ(workers_, 3);
}

TEST_F(ConfigFileTest, IsNotLookedForWhereTheCommandLineNamesAnother) {
  Set("SLUICE_CONFIG", "/nowhere/job.json");
  EXPECT_EQ(ParseFile(R"({"workers": 3})"), "");
  EXPECT_EQ(workers_, 3);
}

TEST_F(ConfigFileTest, AMissingFileIsNamed) {
  EXPECT_THAT(Parse({"--config=/nowhere/job.json"}), HasSubstr("/nowhere/job.json"));
}

TEST_F(ConfigFileTest, AMissingFileOfTheEnvironmentIsNamed) {
  Set("SLUICE_CONFIG", "/nowhere/else.json");
  EXPECT_THAT(Parse(), HasSubstr("/nowhere/else.json"));
}

TEST_F(ConfigFileTest, AnErrorOfSyntaxNamesTheLineAndTheColumn) {
  EXPECT_THAT(ErrorOf("{\n  \"workers\": 3\n  \"every\": 4}"), HasSubstr("line 3, column 9"));
  EXPECT_THAT(ErrorOf(""), HasSubstr("line 1, column 1"));
}

TEST_F(ConfigFileTest, AnErrorOfSyntaxQuotesFewBytesAndEscapesThem) {
  const std::string error = ErrorOf(absl::StrCat("{\"workers\": \"\xE9", std::string(5000, 'x')));
  EXPECT_THAT(error, HasSubstr("last read: '\\\"\\351x'"));
  EXPECT_LT(ErrorOf(absl::StrCat("{\"workers\" ", std::string(5000, '7'))).size(),
            path_.size() + 300);
  EXPECT_LT(ErrorOf(absl::StrCat("{\"", std::string(5000, 'x'), "\": 1, \"", std::string(5000, 'x'),
                                 "\": 2}"))
                .size(),
            path_.size() + 300);
}

TEST_F(ConfigFileTest, MayBeginWithAByteOrderMarkOfUtf8) {
  EXPECT_EQ(ParseFile("\xEF\xBB\xBF{\"workers\": 3}"), "");
  EXPECT_EQ(workers_, 3);
}

TEST_F(ConfigFileTest, RefusesBytesThatAreNoText) {
  EXPECT_THAT(ErrorOf(std::string("\xFF\xFE{\0\"\0", 6)),
              HasSubstr(R"(it is no text: found "\377\376{\000\"\000" at byte 0, expected JSON)"));
  EXPECT_THAT(ErrorOf(std::string("{\"workers\": 3}\0\0", 16)),
              HasSubstr(R"(found "\000\000" at byte 14)"));
  EXPECT_THAT(ErrorOf(std::string("\177ELF\2\1\1\0\0", 9)), HasSubstr(R"(found "\177ELF\002)"));
  EXPECT_THAT(
      ErrorOf(R"({"push-encoding": "int8\u0000"})"),
      HasSubstr(R"("push-encoding" is "int8\u0000", expected a number or a text, not empty)"));
}

TEST_F(ConfigFileTest, AnUnknownKeyIsToldTheNearest) {
  EXPECT_THAT(ErrorOf(R"({"worker": 3})"),
              HasSubstr("no flag of this program is named \"worker\"; the nearest is \"workers\""));
}

TEST_F(ConfigFileTest, RefusesWhatIsNoFlagOfAFile) {
  for (const char* key : {"config", "print-config", "help", "version", "no-test"}) {
    EXPECT_THAT(ErrorOf(absl::StrCat("{\"", key, "\": true}")),
                HasSubstr("no flag of this program"))
        << key;
  }
}

TEST_F(ConfigFileTest, RefusesValuesOfAWrongType) {
  EXPECT_THAT(ErrorOf(R"({"test": 1})"), HasSubstr("\"test\" is 1, expected true or false"));
  for (const char* value : {"true", "null", "{}", "[3]", "\"\""}) {
    EXPECT_THAT(ErrorOf(absl::StrCat("{\"workers\": ", value, "}")),
                HasSubstr(absl::StrCat("\"workers\" is ", value, ", expected a number or a text")));
  }
  EXPECT_THAT(ErrorOf("[]"), HasSubstr("no JSON object"));
  EXPECT_THAT(ErrorOf(R"({"workers": 3, "workers": 4})"), HasSubstr("\"workers\" is there twice"));
}

TEST_F(ConfigFileTest, RefusesValuesThatAreNestedHoweverDeep) {
  for (const size_t depth : {2, 200'000}) {
    const std::string nested = std::string(depth, '[') + std::string(depth, ']');
    EXPECT_THAT(ErrorOf(absl::StrCat("{\"workers\": ", nested, "}")), HasSubstr("too deep"));
  }
}

TEST_F(ConfigFileTest, AWrongValueNamesTheFlagAndTheFile) {
  EXPECT_THAT(ErrorOf(R"({"workers": 30})"), HasSubstr("--workers"));
  EXPECT_THAT(ErrorOf(R"({"workers": "many"})"), HasSubstr("--workers"));
}

TEST_F(ConfigFileTest, RefusesAFileWithoutEnd) {
  EXPECT_THAT(Parse({"--config=/dev/zero"}),
              HasSubstr("/dev/zero is a device, expected a regular file"));
}

TEST_F(ConfigFileTest, PrintsWhatItReads) {
  const std::string printed =
      R"({
  "workers": 3,
  "test": false,
  "nesterov": true,
  "level": "high",
  "hosts": [
    "a",
    "b"
  ],
  "push-encoding": "int8"
})";
  EXPECT_EQ(Parse({"--push-encoding=int8", "--workers=3", "--no-test", "--nesterov", "--level=high",
                   "--hosts", "a", "b", "--print-config"}),
            printed);
  EXPECT_EQ(ParseFile(printed, {"--print-config"}), printed);
}

TEST_F(ConfigFileTest, PrintsDefaultsWhoseFlagsMayBeGiven) {
  app_.get_option("--workers")->capture_default_str();
  app_.get_option("--every")->capture_default_str();
  EXPECT_EQ(Parse({"--print-config"}), "{\n  \"workers\": 1\n}");
  EXPECT_EQ(Parse({"--directory=d", "--print-config"}),
            "{\n  \"workers\": 1,\n  \"directory\": \"d\",\n  \"every\": 0\n}");
}

TEST(NameVariablesTest, NamesTheVariableOfASwitchThatIsTurnedOff) {
  setenv("SLUICE_ERROR_FEEDBACK", "false", 1);
  EXPECT_EQ(NameVariables("--no-error-feedback: needs error feedback"),
            "--no-error-feedback: needs error feedback (set in the environment: "
            "SLUICE_ERROR_FEEDBACK)");
  unsetenv("SLUICE_ERROR_FEEDBACK");
}

TEST(NameVariablesTest, NamesAVariableOnce) {
  setenv("SLUICE_SERVER", "a:1", 1);
  const std::string once = NameVariables("--server and --server: wrong");
  EXPECT_EQ(once, "--server and --server: wrong (set in the environment: SLUICE_SERVER)");
  EXPECT_EQ(NameVariables(once), once);
  unsetenv("SLUICE_SERVER");
}

// ---- Wrong values ----

// What a program with a flag of each kind says of a command line.
std::string Complaint(const std::vector<const char*>& given) {
  enum class Colour { kRed, kBlue };
  CLI::App app("Does something", "program");
  Colour colour = Colour::kRed;
  int count = 1;
  uint32_t index = 0;
  double factor = 1;
  bool quiet = false;
  bool on = false;
  std::string mixed;
  std::string side;
  CLI::App& group = *app.add_option_group("Group", "of flags");
  group.add_option("--colour", colour)
      ->transform(CLI::CheckedTransformer(
          std::map<std::string, Colour>{{"blue", Colour::kBlue}, {"red", Colour::kRed}}));
  group.add_option("--count", count)->check(CLI::PositiveNumber);
  group.add_option("--index", index);
  app.add_option("--factor", factor)->check(CLI::NonNegativeNumber);
  app.add_option("--on", on);
  app.add_flag("--quiet", quiet);
  app.add_option("--mixed", mixed)->check(CLI::IsMember({"auto"}) | CLI::Range(1, 16));
  app.add_subcommand("turn")->add_option("--side", side)->check(CLI::IsMember({"left", "right"}));
  std::vector<const char*> words = {"program"};
  words.insert(words.end(), given.begin(), given.end());
  try {
    ParseArguments(app, static_cast<int>(words.size()), words.data());
  } catch (const CLI::ParseError& error) {
    return error.what();
  }
  return "";
}

TEST(WrongValueTest, IsSeenAndWhatIsExpectedIsSaid) {
  EXPECT_EQ(Complaint({"--colour=green"}), "--colour: expected one of blue, red, found green");
  EXPECT_EQ(Complaint({"--count=0"}), "--count: expected a whole number from 1, found 0");
  EXPECT_EQ(Complaint({"--count=many"}), "--count: expected a whole number from 1, found many");
  EXPECT_EQ(Complaint({"--index=-1"}), "--index: expected a whole number from 0, found -1");
  EXPECT_EQ(Complaint({"--index=4294967296"}),
            "--index: expected a smaller number from 0, found 4294967296");
  EXPECT_EQ(Complaint({"--factor=-1"}), "--factor: expected a number from 0, found -1");
  EXPECT_EQ(Complaint({"--on=perhaps"}), "--on: expected on or off, found perhaps");
  EXPECT_EQ(Complaint({"--quiet=loud"}), "--quiet: expected true or false, found loud");
  EXPECT_EQ(Complaint({"--mixed=0"}), "--mixed: expected auto, or a number from 1 to 16, found 0");
  EXPECT_EQ(Complaint({"turn", "--side=up"}), "--side: expected one of left, right, found up");
}

TEST(WrongValueTest, IsToldTheNameThatIsNear) {
  EXPECT_EQ(Complaint({"--colour=bleu"}),
            "--colour: expected one of blue, red, found bleu; did you mean blue?");
  EXPECT_EQ(Complaint({"--mixed=aut"}),
            "--mixed: expected auto, or a number from 1 to 16, found aut; did you mean auto?");
  EXPECT_EQ(Complaint({"turn", "--side=lefft"}),
            "--side: expected one of left, right, found lefft; did you mean left?");
}

TEST(WrongValueTest, IsEscapedAndCut) {
  const std::string found = Complaint({("--colour=\x1b" + std::string(5000, 'x')).c_str()});
  EXPECT_THAT(found, HasSubstr("found \\033xxx"));
  EXPECT_LT(found.size(), 500u);
}

TEST(WrongValueTest, RightValuesPass) {
  EXPECT_EQ(Complaint({"--colour=blue", "--count=1", "--index=0", "--factor=0", "--mixed=auto"}),
            "");
}

}  // namespace
}  // namespace sluice
