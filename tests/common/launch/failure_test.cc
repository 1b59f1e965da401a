// The exit codes of programs that no mpirun has started.

#include "common/launch/failure.h"

#include "common/base/error.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace sluice {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

// What the command line `program WORD` comes to.
absl::optional<int> CodeOf(const char* word) {
  CLI::App app("Does something", "program");
  int number = 0;
  app.add_option("--number", number);
  const char* const words[] = {"program", word};
  return ExitCodeOfLaunchedUsage(app, 2, words);
}

TEST(LaunchedUsageTest, AWrongCommandLineEndsWith2AndSaysWhy) {
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(CodeOf("--numbre=3"), 2);
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              HasSubstr("--numbre is not a flag; did you mean --number?"));
}

TEST(LaunchedUsageTest, HelpEndsWith0) {
  ::testing::internal::CaptureStdout();
  EXPECT_EQ(CodeOf("--help"), 0);
  EXPECT_THAT(::testing::internal::GetCapturedStdout(), HasSubstr("Does something"));
}

TEST(LaunchedUsageTest, ARightCommandLineIsNoEnd) {
  EXPECT_EQ(CodeOf("--number=3"), absl::nullopt);
}

TEST(ReportFailureTest, SaysWhyUnlessAnotherRankDoes) {
  const absl::Status why = absl::UnavailableError("the disk is full");
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(ReportFailure("program", why, 3), 3);
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "program: the disk is full\n");
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(ReportFailure("program", SaidByRank(2, why), 3), 0);
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), IsEmpty());
}

TEST(ReportFailureTest, ExplainsWhatMpirunWillSay) {
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(ReportFailure("program", SaidForAllRanks(absl::UnavailableError("no room")), 3), 3);
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("the job ends for this reason"));
}

TEST(ExitCodeTest, SaysWhyAWorkersProgramEnds) {
  EXPECT_EQ(ExitCodeOf(absl::OkStatus()), 0);
  EXPECT_EQ(ExitCodeOf(absl::InternalError("LibTorch: out of memory")), 1);
  EXPECT_EQ(ExitCodeOf(absl::InvalidArgumentError("--lease=bogus")), 2);
  EXPECT_EQ(ExitCodeOf(absl::UnavailableError("the server did not come back")), 3);
  EXPECT_EQ(ExitCodeOf(MakeError(Reason::kDraining, "the server is draining")), 3);
  EXPECT_EQ(ExitCodeOf(MakeError(Reason::kDiverged, "training diverges")), 7);
}

}  // namespace
}  // namespace sluice
