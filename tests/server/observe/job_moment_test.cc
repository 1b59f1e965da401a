// The moment that the page and the logs of events show.

#include "server/observe/job_moment.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/shard/shard_world.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

TEST(JobMomentTest, HasAllWorkersInPagesAndNoObserver) {
  ShardWorld world(Async(1));
  for (int i = 0; i < 130; ++i) ASSERT_THAT(world.Join("w" + std::to_string(i)), IsOk());
  ASSERT_THAT(world.Initialize({0, 0, 0}), IsOk());
  ASSERT_THAT(world.Observe("watcher"), IsOk());
  ASSERT_THAT(world.Leave("w7", {{"test accuracy", 0.5}}), IsOk());
  const JobMoment moment = MomentOf(world.shard().Describe(), world.shard(), nullptr);
  std::set<std::string> names;
  for (const v1::Worker& worker : moment.workers) names.insert(worker.worker());
  EXPECT_THAT(moment.workers, SizeIs(130));
  EXPECT_THAT(names, SizeIs(130));
  EXPECT_EQ(names.count("watcher"), 0);
  EXPECT_THAT(moment.results, UnorderedElementsAre(Pair("test accuracy", 0.5)));
  EXPECT_THAT(moment.servers, SizeIs(1));
}

TEST(JobMomentTest, HasWhatAllServersHaveOfATable) {
  ShardWorld world(Async(1));
  world.Start({"a"});
  ShardStatus status = world.shard().Describe();
  LayoutRange bias;
  bias.name = "bias";
  bias.length = 1;
  TableSpec items;
  items.name = "items";
  items.width = 8;
  status.layout = std::make_shared<const Layout>(*Layout::Create({bias}, {items}));
  status.each_server.resize(2);
  status.each_server[0].figures.tables = {{5, 0, 4, 300, 2, 1, 10, 8, 20, {{9, 64}}}};
  status.each_server[1].figures.tables = {{5, 1, 0, 100, 0, 0, 10, 7, 30, {{3, 128}}}};
  const JobMoment moment = MomentOfServers(status, world.shard(), nullptr);
  EXPECT_THAT(moment.workers, IsEmpty());
  ASSERT_THAT(moment.tables, SizeIs(1));
  const v1::TableState& table = moment.tables[0];
  EXPECT_EQ(table.table().name(), "items");
  EXPECT_EQ(table.optimizer(), "sgd");
  EXPECT_EQ(table.rows(), 10);
  EXPECT_EQ(table.rows_on_disk(), 1);
  EXPECT_EQ(table.bytes(), 400);
  EXPECT_EQ(table.reads(), 20);
  EXPECT_EQ(table.hits(), 15);
  EXPECT_EQ(table.mean_age(), 5);
  ASSERT_THAT(table.hottest(), SizeIs(2));
  EXPECT_EQ(table.hottest(0).id(), 3);
}

}  // namespace
}  // namespace sluice
