// Where a benchmark says how far it is.

#include "tools/bench/harness/progress_flag.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace sluice::bench {
namespace {

bool SaysSomething(const ProgressOutput& output) {
  return output.terminal != nullptr || output.lines != nullptr;
}

TEST(QuietFlagTest, SilencesTheProgress) {
  for (const bool given : {false, true}) {
    CLI::App app;
    bool quiet = false;
    AddQuietFlag(app, quiet);
    app.parse(given ? "--quiet" : "");
    EXPECT_EQ(quiet, given);
    EXPECT_EQ(SaysSomething(ProgressUnless(quiet)), !given);
  }
}

TEST(TimedProgressTest, ShortWorkSaysNothing) {
  std::vector<std::string> lines;
  ProgressOutput output;
  output.lines = [&](const std::string& line) { lines.push_back(line); };
  TimedProgress progress("measuring", absl::ZeroDuration(), output);
  progress.Note();
  EXPECT_THAT(lines, ::testing::IsEmpty());
}

}  // namespace
}  // namespace sluice::bench
