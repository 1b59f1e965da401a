#include "server/metrics/server_metrics.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/durable/directory.h"
#include "tests/testing/shard/shard_world.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

ShardOptions Heard(ShardOptions options, SpanListener listener) {
  options.on_span = std::move(listener);
  return options;
}

TEST(ServerMetricsTest, HasTheNumbersOfTheShardAndTheTimesOfItsSteps) {
  ServerMetrics metrics;
  ShardWorld world(Heard(Async(1), metrics.BeginIncarnation()));
  metrics.Attach(world.shard(), nullptr);
  world.Start({"a"});
  EXPECT_THAT(world.Push("a", 0, {1, 2, 3}), IsOk());
  world.clock().Advance(absl::Seconds(4));
  EXPECT_THAT(world.Push("a", 1, {1, 2, 3}), IsOk());
  EXPECT_THAT(metrics.Text(),
              AllOf(HasSubstr("\nsluice_step 2\n"), HasSubstr("{disposition=\"accepted\"} 2\n"),
                    HasSubstr("sluice_step_seconds_count{server=\"0\"} 2\n"),
                    HasSubstr("sluice_step_seconds_sum{server=\"0\"} 4\n"),
                    HasSubstr("sluice_step_seconds_bucket{server=\"0\",le=\"2.5\"} 1\n"),
                    HasSubstr("\nsluice_in_flight_limit_bytes ")));
}

TEST(ServerMetricsTest, NamedModelsHaveALabelAndNoTypeIsSaidTwice) {
  ServerMetrics metrics;
  ShardWorld world(Heard(Async(1), metrics.BeginIncarnation()));
  ShardWorld critic(Async(1));
  metrics.AddNamed([&] { return std::vector<NamedShard>{{"critic", &critic.shard(), nullptr}}; });
  EXPECT_THAT(metrics.Text(), Not(HasSubstr("critic")));
  metrics.Attach(world.shard(), nullptr);
  critic.Start({"a"});
  EXPECT_THAT(critic.Push("a", 0, {1, 2, 3}), IsOk());
  const std::string text = metrics.Text();
  EXPECT_THAT(
      text,
      HasSubstr("# TYPE sluice_step gauge\nsluice_step 0\nsluice_step{model=\"critic\"} 1\n"));
  EXPECT_THAT(text,
              HasSubstr("\nsluice_pushes_total{disposition=\"accepted\",model=\"critic\"} 1\n"));
  const std::string type = "# TYPE sluice_step gauge\n";
  EXPECT_EQ(text.find(type), text.rfind(type));
}

TEST(ServerMetricsTest, HasOnlyTheProcessBetweenIncarnations) {
  ServerMetrics metrics;
  EXPECT_THAT(metrics.Text(),
              AllOf(HasSubstr("\nprocess_resident_memory_bytes "), Not(HasSubstr("sluice_step"))));
  {
    ShardWorld world(Heard(Sync(1), metrics.BeginIncarnation()));
    metrics.Attach(world.shard(), nullptr);
    EXPECT_THAT(metrics.Text(), HasSubstr("\nsluice_step 0\n"));
    metrics.Detach();
  }
  EXPECT_THAT(metrics.Text(), Not(HasSubstr("sluice_step")));
}

TEST(ServerMetricsTest, EachIncarnationBeginsWithEmptyHistograms) {
  ServerMetrics metrics;
  const SpanListener first = metrics.BeginIncarnation();
  ShardWorld world(Heard(Sync(1), metrics.BeginIncarnation()));
  metrics.Attach(world.shard(), nullptr);
  first(ServerSpan::kJournalSync, absl::Seconds(1));  // it is late
  EXPECT_THAT(metrics.Text(), HasSubstr("sluice_journal_sync_seconds_count{server=\"0\"} 0\n"));
}

TEST(ServerMetricsTest, HasTheAgeOfACheckpointOnlyIfSomeAreDueDuringTraining) {
  ServerMetrics metrics;
  ShardWorld world(Heard(Sync(1), metrics.BeginIncarnation()));
  for (const uint64_t every : {0, 5}) {
    DurableOptions options;
    options.directory = absl::StrCat(::testing::TempDir(), "/every-", every);
    options.checkpoint_every = every;
    const auto durable = DurableDirectory::Open(options);
    ASSERT_THAT(durable, IsOk());
    metrics.Attach(world.shard(), durable->get());
    const bool has_age =
        absl::StrContains(metrics.Text(), "\nsluice_checkpoint_age_seconds{server=\"0\"} ");
    EXPECT_EQ(has_age, every > 0) << every;
    metrics.Detach();
  }
}

}  // namespace
}  // namespace sluice
