#include "server/metrics/shard_families.h"

#include <prometheus/text_serializer.h>

#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/metrics/full_moment.h"

namespace sluice {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// The lines of one metric as they are served.
std::vector<std::string> LinesOf(const JobMoment& moment, const std::string& metric) {
  std::vector<std::string> lines;
  const std::string text = prometheus::TextSerializer().Serialize(ShardFamilies(moment));
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    const bool is_value =
        absl::StartsWith(line, metric + "{") || absl::StartsWith(line, metric + " ");
    if (is_value) lines.emplace_back(line);
  }
  return lines;
}

TEST(ShardFamiliesTest, PushesAreCountedByDisposition) {
  EXPECT_THAT(LinesOf(FullMoment(), "sluice_pushes_total"),
              ElementsAre("sluice_pushes_total{disposition=\"accepted\"} 7",
                          "sluice_pushes_total{disposition=\"stale\"} 6",
                          "sluice_pushes_total{disposition=\"skipped\"} 5",
                          "sluice_pushes_total{disposition=\"duplicate\"} 4",
                          "sluice_pushes_total{disposition=\"rejected\"} 3",
                          "sluice_pushes_total{disposition=\"aborted\"} 2"));
  EXPECT_THAT(LinesOf(FullMoment(), "sluice_pushes_in_progress"),
              ElementsAre("sluice_pushes_in_progress 1"));
}

TEST(ShardFamiliesTest, OnlyWhatOneServerKnowsHasItsLabel) {
  const JobMoment moment = FullMoment();
  EXPECT_THAT(LinesOf(moment, "sluice_tensor_bytes_total"),
              ElementsAre("sluice_tensor_bytes_total{direction=\"received\"} 400",
                          "sluice_tensor_bytes_total{direction=\"sent\"} 0"));
  EXPECT_THAT(LinesOf(moment, "sluice_in_flight_bytes"), ElementsAre("sluice_in_flight_bytes 300"));
  EXPECT_THAT(LinesOf(moment, "sluice_wire_bytes_total"),
              ElementsAre("sluice_wire_bytes_total{server=\"0\",direction=\"received\"} 130",
                          "sluice_wire_bytes_total{server=\"0\",direction=\"sent\"} 0"));
}

TEST(ShardFamiliesTest, TellOfEachServerOfTheJob) {
  const JobMoment moment = FullMoment();
  EXPECT_THAT(LinesOf(moment, "sluice_server_connected"),
              ElementsAre("sluice_server_connected{server=\"0\"} 1",
                          "sluice_server_connected{server=\"1\"} 0"));
  EXPECT_THAT(LinesOf(moment, "sluice_server_away_seconds"),
              ElementsAre("sluice_server_away_seconds{server=\"0\"} 0",
                          "sluice_server_away_seconds{server=\"1\"} 8"));
  EXPECT_THAT(LinesOf(moment, "sluice_server_awaited_seconds"),
              ElementsAre("sluice_server_awaited_seconds{server=\"0\"} 3",
                          "sluice_server_awaited_seconds{server=\"1\"} 0"));
  EXPECT_THAT(LinesOf(moment, "sluice_server_stripe_bytes"),
              ElementsAre("sluice_server_stripe_bytes{server=\"0\"} 0",
                          "sluice_server_stripe_bytes{server=\"1\"} 100"));
  EXPECT_THAT(LinesOf(moment, "sluice_server_wire_bytes_total"),
              ElementsAre("sluice_server_wire_bytes_total{server=\"0\",direction=\"received\"} 0",
                          "sluice_server_wire_bytes_total{server=\"0\",direction=\"sent\"} 0",
                          "sluice_server_wire_bytes_total{server=\"1\",direction=\"received\"} 70",
                          "sluice_server_wire_bytes_total{server=\"1\",direction=\"sent\"} 60"));
}

TEST(ShardFamiliesTest, TheHistogramOfStalenessHasEachGradientOnce) {
  const JobMoment moment = FullMoment();
  const auto buckets = LinesOf(moment, "sluice_gradient_staleness_steps_bucket");
  ASSERT_THAT(buckets, SizeIs(33));
  EXPECT_EQ(buckets[0], "sluice_gradient_staleness_steps_bucket{le=\"0\"} 2");
  EXPECT_EQ(buckets[1], "sluice_gradient_staleness_steps_bucket{le=\"1\"} 2");
  EXPECT_EQ(buckets[2], "sluice_gradient_staleness_steps_bucket{le=\"2\"} 3");
  EXPECT_EQ(buckets[31], "sluice_gradient_staleness_steps_bucket{le=\"31\"} 3");
  EXPECT_EQ(buckets[32], "sluice_gradient_staleness_steps_bucket{le=\"+Inf\"} 4");
  EXPECT_THAT(LinesOf(moment, "sluice_gradient_staleness_steps_sum"),
              ElementsAre("sluice_gradient_staleness_steps_sum 102"));
}

TEST(ShardFamiliesTest, AWorkerHasOneState) {
  EXPECT_THAT(
      LinesOf(FullMoment(), "sluice_workers"),
      ElementsAre("sluice_workers{state=\"connected\"} 2", "sluice_workers{state=\"lost\"} 1",
                  "sluice_workers{state=\"evicted\"} 1"));
}

TEST(ShardFamiliesTest, AWorkerIsNamedOnceTheStepHasWaitedForASecond) {
  JobMoment moment = FullMoment();
  EXPECT_THAT(LinesOf(moment, "sluice_awaited_worker_silence_seconds"),
              ElementsAre("sluice_awaited_worker_silence_seconds{worker=\"worker-1\"} 5"));
  moment.state.mutable_current()->mutable_waiting()->set_seconds(0);
  moment.state.mutable_current()->mutable_waiting()->set_nanos(999'000'000);
  EXPECT_THAT(LinesOf(moment, "sluice_awaited_worker_silence_seconds"), IsEmpty());
  EXPECT_THAT(LinesOf(moment, "sluice_awaited_workers"), ElementsAre("sluice_awaited_workers 1"));
  moment.state.mutable_current()->clear_waiting();
  EXPECT_THAT(LinesOf(moment, "sluice_current_wait_seconds"),
              ElementsAre("sluice_current_wait_seconds 0"));
}

TEST(ShardFamiliesTest, ANameThatLooksLikeAMetricIsOnlyAName) {
  JobMoment moment = FullMoment();
  moment.state.mutable_current()->mutable_awaited(0)->set_worker("\"} 1\nsluice_step 9 \\");
  EXPECT_THAT(LinesOf(moment, "sluice_awaited_worker_silence_seconds"),
              ElementsAre("sluice_awaited_worker_silence_seconds{worker=\"\\\"} 1\\nsluice_step 9 "
                          "\\\\\"} 5"));
  EXPECT_THAT(LinesOf(moment, "sluice_step"), ElementsAre("sluice_step 17"));
}

TEST(ShardFamiliesTest, OnlyEncodingsInUseAreCounted) {
  const std::string labels = "{server=\"0\",direction=\"received\",encoding=\"int8\"}";
  EXPECT_THAT(LinesOf(FullMoment(), "sluice_encoding_wire_bytes_total"),
              ElementsAre("sluice_encoding_wire_bytes_total" + labels + " 120"));
  EXPECT_THAT(LinesOf(FullMoment(), "sluice_encoding_tensor_bytes_total"),
              ElementsAre("sluice_encoding_tensor_bytes_total" + labels + " 400"));
}

TEST(ShardFamiliesTest, TheVerdictIs1AndAllOthersAre0) {
  JobMoment moment = FullMoment();
  moment.state.mutable_verdict()->set_kind(v1::Verdict::WORKERS_LOST);
  const auto verdicts = LinesOf(moment, "sluice_verdict");
  EXPECT_EQ(verdicts.size(), 10);
  EXPECT_THAT(verdicts, ::testing::Contains("sluice_verdict{verdict=\"workers lost\"} 1"));
  EXPECT_THAT(verdicts, ::testing::Contains("sluice_verdict{verdict=\"fine\"} 0"));
}

TEST(ShardFamiliesTest, AWarningThatIsOverIs0) {
  JobMoment moment = FullMoment();
  moment.state.add_warnings()->set_kind(v1::LOSS_RISES);
  v1::TrainingWarning& over = *moment.state.add_warnings();
  over.set_kind(v1::WORKERS_LOST);
  over.set_over(5);
  const auto warnings = LinesOf(moment, "sluice_training_warning");
  EXPECT_THAT(warnings, SizeIs(9));
  EXPECT_THAT(warnings, ::testing::Contains("sluice_training_warning{kind=\"loss_rises\"} 1"));
  EXPECT_THAT(warnings, ::testing::Contains("sluice_training_warning{kind=\"workers_lost\"} 0"));
}

TEST(ShardFamiliesTest, WhatWasMeasuredHasItsStepAndNoNameOfAProgram) {
  JobMoment moment = FullMoment();
  EXPECT_THAT(LinesOf(moment, "sluice_measured_accuracy"),
              ElementsAre("sluice_measured_accuracy 0.75"));
  EXPECT_THAT(LinesOf(moment, "sluice_measured_loss"), ElementsAre("sluice_measured_loss 0.5"));
  EXPECT_THAT(LinesOf(moment, "sluice_measured_step"), ElementsAre("sluice_measured_step 12"));
  moment.state.clear_measurement();
  for (const char* name : {"accuracy", "loss", "step"}) {
    EXPECT_THAT(LinesOf(moment, absl::StrCat("sluice_measured_", name)), IsEmpty()) << name;
  }
}

TEST(ShardFamiliesTest, TheAgeOfTheLatestStepBeginsWithTheInitialParameters) {
  JobMoment moment = FullMoment();
  EXPECT_THAT(LinesOf(moment, "sluice_last_step_age_seconds"),
              ElementsAre("sluice_last_step_age_seconds 4"));
  moment.state.clear_since_last_step();
  EXPECT_THAT(LinesOf(moment, "sluice_last_step_age_seconds"),
              ElementsAre("sluice_last_step_age_seconds 9"));
  moment.state.clear_since_initialized();
  EXPECT_THAT(LinesOf(moment, "sluice_last_step_age_seconds"),
              ElementsAre("sluice_last_step_age_seconds 0"));
}

TEST(ShardFamiliesTest, AServerThatSavesNothingHasNoCheckpointOfAnyAge) {
  JobMoment moment = FullMoment();
  EXPECT_THAT(LinesOf(moment, "sluice_checkpoint_age_seconds"),
              ElementsAre("sluice_checkpoint_age_seconds{server=\"0\"} 180"));
  moment.state.clear_last_checkpoint();
  EXPECT_THAT(LinesOf(moment, "sluice_checkpoint_age_seconds"),
              ElementsAre("sluice_checkpoint_age_seconds{server=\"0\"} 200"));
  moment.state.set_checkpoint_every(0);
  EXPECT_THAT(LinesOf(moment, "sluice_checkpoint_age_seconds"), IsEmpty());
}

}  // namespace
}  // namespace sluice
