// The detector's verdicts on recorded training. testdata/README.md says what each file is, and how
// it was recorded.

#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/policy/divergence.h"

namespace sluice {
namespace {

constexpr uint64_t kTail = 1000;  // steps

struct Curve {
  std::string file;
  uint32_t workers = 1;  // that give a step each; 1 if all of them give one together
};

void PrintTo(const Curve& curve, std::ostream* out) { *out << curve.file; }

struct RecordedStep {
  double loss = 0;
  double norm = 0;
};

// The first verdict on a curve and the step at which it came; step 0 if there was none.
struct Outcome {
  uint64_t step = 0;
  absl::optional<DivergenceDetector::Verdict> verdict;
};

class Recording {
 public:
  explicit Recording(const Curve& curve) : workers_(curve.workers) {
    std::ifstream file("tests/server/policy/testdata/" + curve.file + ".txt");
    EXPECT_TRUE(file) << curve.file;
    file >> first_norm_;
    for (RecordedStep step; file >> step.loss >> step.norm;) steps_.push_back(step);
  }

  // It goes on as its last steps were, up to `steps` in all.
  Recording& GoingOn(uint64_t steps) {
    for (uint64_t i = steps_.size() - kTail; steps_.size() < steps; ++i) {
      steps_.push_back(steps_[i]);
    }
    return *this;
  }
  // As if so many workers gave a step each in place of one: each comes so many times.
  Recording& Stretched(uint32_t workers) {
    std::vector<RecordedStep> steps;
    for (const RecordedStep& step : steps_) steps.insert(steps.end(), workers, step);
    steps_ = steps;
    workers_ *= workers;
    return *this;
  }

  Outcome Play(bool with_losses = true) const {
    DivergenceDetector detector;
    double norm_before = first_norm_;
    for (uint64_t i = 0; i < steps_.size(); ++i) {
      StepReport report;
      report.step = Step(i + 1);
      if (with_losses) report.loss = steps_[i].loss;
      report.norm_before = norm_before;
      report.norm = norm_before = steps_[i].norm;
      report.rounds = 1.0 / workers_;
      detector.OnStep(report);
      if (detector.verdict().has_value()) return {i + 1, detector.verdict()};
    }
    return {};
  }

 private:
  uint32_t workers_;
  double first_norm_ = 0;
  std::vector<RecordedStep> steps_;
};

class HealthyCurveTest : public ::testing::TestWithParam<Curve> {};

TEST_P(HealthyCurveTest, RaisesNoAlarm) {
  const Recording recording(GetParam());
  for (const bool with_losses : {true, false}) {
    const Outcome outcome = recording.Play(with_losses);
    EXPECT_EQ(outcome.step, 0) << outcome.verdict->seen;
  }
}

INSTANTIATE_TEST_SUITE_P(, HealthyCurveTest,
                         ::testing::Values(Curve{"sync_3"}, Curve{"sync_16"}, Curve{"sync_3_slow"},
                                           Curve{"ssp_16", 16}, Curve{"async_1"},
                                           Curve{"async_16", 16}, Curve{"async_4_adam", 4},
                                           Curve{"async_4_cosine", 4}, Curve{"local_steps_4"},
                                           Curve{"async_6_unruled_lucky", 6}));

// Of these, each step is a round.
class StretchedCurveTest : public ::testing::TestWithParam<Curve> {};

TEST_P(StretchedCurveTest, RaisesNoAlarmWhereMoreWorkersNeedMoreSteps) {
  const Outcome outcome = Recording(GetParam()).Stretched(5).Play();
  EXPECT_EQ(outcome.step, 0) << outcome.verdict->seen;
}

INSTANTIATE_TEST_SUITE_P(, StretchedCurveTest,
                         ::testing::Values(Curve{"sync_3"}, Curve{"sync_16"}, Curve{"sync_3_slow"},
                                           Curve{"async_1"}, Curve{"local_steps_4"}));

struct Diverged {
  Curve curve;
  uint64_t steps;  // to play
  Divergence what;
  uint64_t since;
  uint64_t seen_at;
};

class DivergedCurveTest : public ::testing::TestWithParam<Diverged> {};

TEST_P(DivergedCurveTest, RaisesTheAlarm) {
  const Diverged& expected = GetParam();
  const Outcome outcome = Recording(expected.curve).GoingOn(expected.steps).Play();
  ASSERT_TRUE(outcome.verdict.has_value());
  EXPECT_EQ(outcome.verdict->what, expected.what);
  EXPECT_EQ(outcome.verdict->since, Step(expected.since));
  EXPECT_EQ(outcome.step, expected.seen_at);
}

// The first guesses to the end, and so does the second, whose parameters explode as well; the third
// guesses from step 271 on; the last explodes.
INSTANTIATE_TEST_SUITE_P(
    , DivergedCurveTest,
    ::testing::Values(
        Diverged{{"async_16_unruled", 16}, 20'000, Divergence::kDoesNotLearn, 1, 16'000},
        Diverged{{"async_6_unruled", 6}, 1100, Divergence::kParametersGrow, 107, 253},
        Diverged{{"async_4_unruled", 4}, 20'000, Divergence::kDoesNotLearn, 271, 4270},
        Diverged{{"sync_3_rate_1"}, 60, Divergence::kParametersGrow, 17, 33}));

}  // namespace
}  // namespace sluice
