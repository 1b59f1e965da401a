#include "common/base/command_line.h"

#include "absl/strings/str_cat.h"
#include "common/base/commit.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace sluice {
namespace {


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

}  // namespace
}  // namespace sluice
