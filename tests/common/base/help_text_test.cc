#include "common/base/help_text.h"

#include <cstdlib>

#include "common/base/command_line.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace sluice {
namespace {

using ::testing::HasSubstr;

class HelpTextTest : public ::testing::Test {
 protected:
  HelpTextTest() {
    setenv("COLUMNS", "60", 1);
    app_.add_option("--mode", mode_, "which gradients make a step")
        ->check(CLI::IsMember({"sync", "async"}))
        ->capture_default_str();
    app_.add_option("--workers", workers_, "how many workers come")->capture_default_str();
    CLI::App& group = *app_.add_option_group("Guards", "What is refused");
    group.add_option("--clip-norm-of-the-whole-vector", norm_, "the largest norm");
    group.add_flag("--careful,!--no-careful", careful_, "look twice");
  }
  ~HelpTextTest() override { unsetenv("COLUMNS"); }

  // What the program prints, and its exit code.
  std::string Print(const char* word, int code = 0) {
    const char* const words[] = {"program", word};
    ::testing::internal::CaptureStdout();
    ::testing::internal::CaptureStderr();
    EXPECT_EQ(ExitCodeOfUsage(app_, 2, words), code);
    return ::testing::internal::GetCapturedStdout() + ::testing::internal::GetCapturedStderr();
  }

  CLI::App app_{"Does something.", "program"};
  std::string mode_ = "sync";
  uint32_t workers_ = 3;
  double norm_ = 0;
  bool careful_ = false;
};

TEST_F(HelpTextTest, HasWordsInPlaceOfTypesAndLinesAsWideAsTheTerminal) {
  const std::string text = Print("--help");
  EXPECT_THAT(text, HasSubstr("  --mode {sync,async}         which gradients make a step\n"
                              "                              (default: sync)\n"
                              "  --workers N                 how many workers come\n"
                              "                              (default: 3)\n"));
  EXPECT_THAT(text, HasSubstr("\nGuards (What is refused):\n"
                              "  --clip-norm-of-the-whole-vector X\n"
                              "                              the largest norm\n"
                              "  --careful,--no-careful      look twice\n"));
}

TEST_F(HelpTextTest, ShowsWhatMostPeopleUseFirst) {
  ShowFirst(app_, {"--workers", "--careful"}, {"program --workers=2"});
  EXPECT_EQ(Print("--help"),
            "Does something.\n"
            "Usage: program [OPTIONS]\n"
            "\n"
            "Options:\n"
            "  --workers N                 how many workers come\n"
            "                              (default: 3)\n"
            "  --careful,--no-careful      look twice\n"
            "\n"
            "Examples:\n"
            "  program --workers=2\n"
            "\n"
            "--help-all lists all 9 flags, and --help=GROUP those of one\n"
            "of the groups Guards.\n");
  EXPECT_THAT(Print("--help-all"), HasSubstr("--clip-norm-of-the-whole-vector"));
}

TEST_F(HelpTextTest, HasAGroupAlone) {
  EXPECT_EQ(Print("--help=guards"),
            "Guards (What is refused):\n"
            "  --clip-norm-of-the-whole-vector X\n"
            "                              the largest norm\n"
            "  --careful,--no-careful      look twice\n"
            "\n");
  EXPECT_THAT(Print("--help=guard", 2), HasSubstr("--help: expected one of Guards, found guard"));
}

TEST_F(HelpTextTest, AWrongWordIsToldTheNearestOne) {
  EXPECT_THAT(Print("--moode=sync", 2), HasSubstr("--moode is not a flag; did you mean --mode?"));
  EXPECT_THAT(Print("--carefull", 2),
              HasSubstr("--carefull is not a flag; did you mean --careful?"));
  EXPECT_THAT(Print("--epochs=3", 2), HasSubstr("--epochs is not a flag\n"));
  app_.add_option("--learning-rate", norm_);
  EXPECT_THAT(Print("--lr=1", 2), HasSubstr("--lr is not a flag; did you mean --learning-rate?"));
  CLI::App& command = *app_.add_subcommand("checkpoint");
  command.add_option("--folder", mode_);
  app_.require_subcommand(1);
  EXPECT_THAT(Print("checkpoin", 2),
              HasSubstr("checkpoin is not a command; did you mean checkpoint?"));
}

}  // namespace
}  // namespace sluice
