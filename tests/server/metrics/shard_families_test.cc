#include "server/metrics/shard_families.h"

#include <prometheus/text_serializer.h>

#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/metrics/full_figures.h"

namespace sluice {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// The lines of one metric as they are served.
std::vector<std::string> LinesOf(const ServerFigures& figures, const std::string& metric) {
  std::vector<std::string> lines;
  const std::string text = prometheus::TextSerializer().Serialize(ShardFamilies(figures));
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    const bool is_value =
        absl::StartsWith(line, metric + "{") || absl::StartsWith(line, metric + " ");
    if (is_value) lines.emplace_back(line);
  }
  return lines;
}

TEST(ShardFamiliesTest, PushesAreCountedByDisposition) {
  EXPECT_THAT(LinesOf(FullFigures(), "sluice_pushes_total"),
              ElementsAre("sluice_pushes_total{disposition=\"accepted\"} 7",
                          "sluice_pushes_total{disposition=\"stale\"} 6",
                          "sluice_pushes_total{disposition=\"skipped\"} 5",
                          "sluice_pushes_total{disposition=\"duplicate\"} 4",
                          "sluice_pushes_total{disposition=\"rejected\"} 3",
                          "sluice_pushes_total{disposition=\"aborted\"} 2"));
  EXPECT_THAT(LinesOf(FullFigures(), "sluice_pushes_in_progress"),
              ElementsAre("sluice_pushes_in_progress 1"));
}

TEST(ShardFamiliesTest, OnlyWhatOneServerKnowsHasItsLabel) {
  const ServerFigures figures = FullFigures();
  EXPECT_THAT(LinesOf(figures, "sluice_tensor_bytes_total"),
              ElementsAre("sluice_tensor_bytes_total{direction=\"received\"} 400",
                          "sluice_tensor_bytes_total{direction=\"sent\"} 0"));
  EXPECT_THAT(LinesOf(figures, "sluice_in_flight_bytes"),
              ElementsAre("sluice_in_flight_bytes 300"));
  EXPECT_THAT(LinesOf(figures, "sluice_wire_bytes_total"),
              ElementsAre("sluice_wire_bytes_total{server=\"0\",direction=\"received\"} 130",
                          "sluice_wire_bytes_total{server=\"0\",direction=\"sent\"} 0"));
}

TEST(ShardFamiliesTest, TellOfEachServerOfTheJob) {
  const ServerFigures figures = FullFigures();
  EXPECT_THAT(LinesOf(figures, "sluice_server_connected"),
              ElementsAre("sluice_server_connected{server=\"0\"} 1",
                          "sluice_server_connected{server=\"1\"} 0"));
  EXPECT_THAT(LinesOf(figures, "sluice_server_away_seconds"),
              ElementsAre("sluice_server_away_seconds{server=\"0\"} 0",
                          "sluice_server_away_seconds{server=\"1\"} 8"));
  EXPECT_THAT(LinesOf(figures, "sluice_server_awaited_seconds"),
              ElementsAre("sluice_server_awaited_seconds{server=\"0\"} 3",
                          "sluice_server_awaited_seconds{server=\"1\"} 0"));
  EXPECT_THAT(LinesOf(figures, "sluice_server_stripe_bytes"),
              ElementsAre("sluice_server_stripe_bytes{server=\"0\"} 0",
                          "sluice_server_stripe_bytes{server=\"1\"} 100"));
  EXPECT_THAT(LinesOf(figures, "sluice_server_wire_bytes_total"),
              ElementsAre("sluice_server_wire_bytes_total{server=\"0\",direction=\"received\"} 0",
                          "sluice_server_wire_bytes_total{server=\"0\",direction=\"sent\"} 0",
                          "sluice_server_wire_bytes_total{server=\"1\",direction=\"received\"} 70",
                          "sluice_server_wire_bytes_total{server=\"1\",direction=\"sent\"} 60"));
}

TEST(ShardFamiliesTest, TheHistogramOfStalenessHasEachGradientOnce) {
  const ServerFigures figures = FullFigures();
  const auto buckets = LinesOf(figures, "sluice_gradient_staleness_steps_bucket");
  ASSERT_THAT(buckets, SizeIs(33));
  EXPECT_EQ(buckets[0], "sluice_gradient_staleness_steps_bucket{le=\"0\"} 2");
  EXPECT_EQ(buckets[1], "sluice_gradient_staleness_steps_bucket{le=\"1\"} 2");
  EXPECT_EQ(buckets[2], "sluice_gradient_staleness_steps_bucket{le=\"2\"} 3");
  EXPECT_EQ(buckets[31], "sluice_gradient_staleness_steps_bucket{le=\"31\"} 3");
  EXPECT_EQ(buckets[32], "sluice_gradient_staleness_steps_bucket{le=\"+Inf\"} 4");
  EXPECT_THAT(LinesOf(figures, "sluice_gradient_staleness_steps_sum"),
              ElementsAre("sluice_gradient_staleness_steps_sum 102"));
}

TEST(ShardFamiliesTest, AWorkerHasOneState) {
  EXPECT_THAT(
      LinesOf(FullFigures(), "sluice_workers"),
      ElementsAre("sluice_workers{state=\"connected\"} 2", "sluice_workers{state=\"lost\"} 1",
                  "sluice_workers{state=\"evicted\"} 1"));
}

TEST(ShardFamiliesTest, AWorkerIsNamedOnceTheStepHasWaitedForASecond) {
  ServerFigures figures = FullFigures();
  EXPECT_THAT(LinesOf(figures, "sluice_awaited_worker_silence_seconds"),
              ElementsAre("sluice_awaited_worker_silence_seconds{worker=\"worker-1\"} 5"));
  figures.status.current.since = figures.status.now - absl::Milliseconds(999);
  EXPECT_THAT(LinesOf(figures, "sluice_awaited_worker_silence_seconds"), IsEmpty());
  EXPECT_THAT(LinesOf(figures, "sluice_awaited_workers"), ElementsAre("sluice_awaited_workers 1"));
  figures.status.current.since.reset();
  EXPECT_THAT(LinesOf(figures, "sluice_current_wait_seconds"),
              ElementsAre("sluice_current_wait_seconds 0"));
}

TEST(ShardFamiliesTest, ANameThatLooksLikeAMetricIsOnlyAName) {
  ServerFigures figures = FullFigures();
  figures.status.current.awaited[0].worker = "\"} 1\nsluice_step 9 \\";
  EXPECT_THAT(LinesOf(figures, "sluice_awaited_worker_silence_seconds"),
              ElementsAre("sluice_awaited_worker_silence_seconds{worker=\"\\\"} 1\\nsluice_step 9 "
                          "\\\\\"} 5"));
  EXPECT_THAT(LinesOf(figures, "sluice_step"), ElementsAre("sluice_step 17"));
}

TEST(ShardFamiliesTest, OnlyEncodingsInUseAreCounted) {
  const std::string labels = "{server=\"0\",direction=\"received\",encoding=\"int8\"}";
  EXPECT_THAT(LinesOf(FullFigures(), "sluice_encoding_wire_bytes_total"),
              ElementsAre("sluice_encoding_wire_bytes_total" + labels + " 120"));
  EXPECT_THAT(LinesOf(FullFigures(), "sluice_encoding_tensor_bytes_total"),
              ElementsAre("sluice_encoding_tensor_bytes_total" + labels + " 400"));
}

TEST(ShardFamiliesTest, AWarningThatIsOverIs0) {
  ServerFigures figures = FullFigures();
  figures.status.warnings = {{WarningKind::kLossRises, Step(3), absl::nullopt, "rises"},
                             {WarningKind::kWorkersLost, Step(4), Step(5), "lost"}};
  const auto warnings = LinesOf(figures, "sluice_training_warning");
  EXPECT_THAT(warnings, SizeIs(9));
  EXPECT_THAT(warnings, ::testing::Contains("sluice_training_warning{kind=\"loss_rises\"} 1"));
  EXPECT_THAT(warnings, ::testing::Contains("sluice_training_warning{kind=\"workers_lost\"} 0"));
}

TEST(ShardFamiliesTest, WhatWasMeasuredHasItsStepAndNoNameOfAProgram) {
  ServerFigures figures = FullFigures();
  EXPECT_THAT(LinesOf(figures, "sluice_measured_accuracy"),
              ElementsAre("sluice_measured_accuracy 0.75"));
  EXPECT_THAT(LinesOf(figures, "sluice_measured_loss"), ElementsAre("sluice_measured_loss 0.5"));
  EXPECT_THAT(LinesOf(figures, "sluice_measured_step"), ElementsAre("sluice_measured_step 12"));
  figures.status.measured = {};
  for (const char* name : {"accuracy", "loss", "step"}) {
    EXPECT_THAT(LinesOf(figures, absl::StrCat("sluice_measured_", name)), IsEmpty()) << name;
  }
}

TEST(ShardFamiliesTest, TheAgeOfTheLatestStepBeginsWithTheInitialParameters) {
  ServerFigures figures = FullFigures();
  EXPECT_THAT(LinesOf(figures, "sluice_last_step_age_seconds"),
              ElementsAre("sluice_last_step_age_seconds 4"));
  figures.status.times.last_step.reset();
  EXPECT_THAT(LinesOf(figures, "sluice_last_step_age_seconds"),
              ElementsAre("sluice_last_step_age_seconds 0"));
  figures.status.times.initialized = figures.status.now - absl::Seconds(9);
  EXPECT_THAT(LinesOf(figures, "sluice_last_step_age_seconds"),
              ElementsAre("sluice_last_step_age_seconds 9"));
}

TEST(ShardFamiliesTest, AServerThatSavesNothingHasNoCheckpointOfAnyAge) {
  ServerFigures figures = FullFigures();
  EXPECT_THAT(LinesOf(figures, "sluice_checkpoint_age_seconds"),
              ElementsAre("sluice_checkpoint_age_seconds{server=\"0\"} 180"));
  figures.checkpoint_age.reset();
  EXPECT_THAT(LinesOf(figures, "sluice_checkpoint_age_seconds"), IsEmpty());
}

}  // namespace
}  // namespace sluice
