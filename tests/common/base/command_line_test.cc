#include "common/base/command_line.h"

#include <cstdlib>
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
  EXPECT_THROW(ParseArguments(app_, 2, words), CLI::ExtrasError);
}

// A program with flags of each kind, and its environment.
class EnvironmentTest : public ::testing::Test {
 protected:
  EnvironmentTest() : app_("Does something", "program") {
    CLI::App& group = *app_.add_option_group("Group", "of flags");
    group.add_option("--push-encoding", encoding_);
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

TEST_F(EnvironmentTest, AnErrorNamesTheVariable) {
  Set("SLUICE_WORKERS", "many");
  EXPECT_THAT(Parse(), HasSubstr("many"));
  EXPECT_THAT(Parse(), HasSubstr("(set in the environment: SLUICE_WORKERS)"));
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

}  // namespace
}  // namespace sluice
