// The detector's verdicts on recorded training. testdata/README.md says what each file is, and how
// it was recorded.

#include <cstdint>
#include <fstream>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/policy/divergence.h"

namespace sluice {
namespace {

// The first verdict on a curve and the step at which it came; step 0 if there was none.
struct Outcome {
  uint64_t step = 0;
  absl::optional<DivergenceDetector::Verdict> verdict;
};

Outcome Play(const std::string& name, bool with_losses = true) {
  std::ifstream file("tests/server/policy/testdata/" + name + ".txt");
  EXPECT_TRUE(file) << name;
  DivergenceDetector detector;
  double norm_before = 0;
  file >> norm_before;
  double loss = 0;
  double norm = 0;
  for (uint64_t step = 1; file >> loss >> norm; ++step) {
    StepReport report;
    report.step = Step(step);
    if (with_losses) report.loss = loss;
    report.norm_before = norm_before;
    report.norm = norm_before = norm;
    detector.OnStep(report);
    if (detector.verdict().has_value()) return {step, detector.verdict()};
  }
  return {};
}

class HealthyCurveTest : public ::testing::TestWithParam<const char*> {};

TEST_P(HealthyCurveTest, RaisesNoAlarm) {
  for (const bool with_losses : {true, false}) {
    const Outcome outcome = Play(GetParam(), with_losses);
    EXPECT_EQ(outcome.step, 0) << outcome.verdict->seen;
  }
}

INSTANTIATE_TEST_SUITE_P(, HealthyCurveTest,
                         ::testing::Values("sync_3", "sync_16", "sync_3_slow", "ssp_16", "async_1",
                                           "async_16", "async_4_adam", "async_4_cosine",
                                           "local_steps_4", "async_6_unruled_lucky"));

class DivergedCurveTest : public ::testing::TestWithParam<const char*> {};

TEST_P(DivergedCurveTest, RaisesTheAlarm) { EXPECT_GT(Play(GetParam()).step, 0); }

INSTANTIATE_TEST_SUITE_P(, DivergedCurveTest,
                         ::testing::Values("async_4_unruled", "async_6_unruled", "async_16_unruled",
                                           "sync_3_rate_1"));

TEST(RecordedVerdictTest, SaysWhatWasSeenAndSinceWhen) {
  const Outcome guesses = Play("async_16_unruled");
  EXPECT_EQ(guesses.step, 1000);
  EXPECT_EQ(guesses.verdict->what, Divergence::kDoesNotLearn);
  EXPECT_EQ(guesses.verdict->since, Step(1));
  // It had begun to learn.
  const Outcome returns = Play("async_4_unruled");
  EXPECT_EQ(returns.verdict->what, Divergence::kDoesNotLearn);
  EXPECT_EQ(returns.verdict->since, Step(271));
  const Outcome explodes = Play("sync_3_rate_1");
  EXPECT_EQ(explodes.step, 33);
  EXPECT_EQ(explodes.verdict->what, Divergence::kParametersGrow);
  EXPECT_EQ(explodes.verdict->since, Step(17));
}

}  // namespace
}  // namespace sluice
