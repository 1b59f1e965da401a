// The rows of workers: rates, order, cells.

#include "tools/ctl/render/worker_rows.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status.h"
#include "tests/tools/ctl/messages.h"

namespace sluice {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const absl::Time kNow = absl::FromUnixSeconds(1000);

Sample Now() { return {kNow, TrainingState(), FourWorkers()}; }

std::vector<std::string> NamesBy(SortKey key, std::vector<WorkerRow> rows) {
  SortRows(key, rows);
  std::vector<std::string> names;
  for (const WorkerRow& row : rows) names.push_back(row.worker.worker().substr(0, 8));
  return names;
}

TEST(WorkerRowsTest, HaveTheRateBetweenTwoSamples) {
  Sample earlier = Now();
  earlier.at = kNow - absl::Seconds(2);
  earlier.workers.mutable_workers(0)->set_accepted(105);
  earlier.workers.mutable_workers(1)->set_accepted(200);  // of an earlier process of that name
  earlier.workers.mutable_workers()->RemoveLast();
  const auto rows = RowsOf(Now(), &earlier);
  EXPECT_EQ(rows[0].rate, 2.5);
  EXPECT_EQ(rows[1].rate, absl::nullopt);
  EXPECT_EQ(rows[2].rate, 0.0);
  EXPECT_EQ(rows[3].rate, absl::nullopt);
  EXPECT_EQ(RowsOf(Now())[0].rate, absl::nullopt);
}

TEST(WorkerRowsTest, AreSortedByEachKey) {
  const auto rows = RowsOf(Now());
  EXPECT_THAT(NamesBy(SortKey::kName, rows),
              ElementsAre("worker-0", "worker-1", "worker-2", "x\033[31m"));
  EXPECT_THAT(NamesBy(SortKey::kLag, rows),
              ElementsAre("worker-1", "worker-0", "worker-2", "x\033[31m"));
  EXPECT_THAT(NamesBy(SortKey::kStep, rows),
              ElementsAre("worker-2", "worker-0", "worker-1", "x\033[31m"));
  EXPECT_THAT(NamesBy(SortKey::kLoss, rows),
              ElementsAre("worker-1", "worker-2", "worker-0", "x\033[31m"));
  EXPECT_THAT(NamesBy(SortKey::kStale, rows),
              ElementsAre("worker-1", "worker-0", "worker-2", "x\033[31m"));
  EXPECT_THAT(NamesBy(SortKey::kSeen, rows),
              ElementsAre("worker-1", "worker-0", "worker-2", "x\033[31m"));
  EXPECT_THAT(NamesBy(SortKey::kWaits, rows),
              ElementsAre("worker-0", "worker-1", "worker-2", "x\033[31m"));
}

TEST(WorkerRowsTest, EveryNameOfAnOrderIsOne) {
  for (size_t i = 0; i < SortNames().size(); ++i) {
    EXPECT_THAT(ParseSortKey(SortNames()[i]), IsOkAndHolds(static_cast<SortKey>(i)));
  }
  EXPECT_THAT(ParseSortKey("speed"),
              HasCode(absl::StatusCode::kInvalidArgument,
                      HasSubstr("found the order speed, expected one of name, step,")));
}

TEST(WorkerRowsTest, EscapeWhatWorkersSayOfThemselves) {
  EXPECT_THAT(
      WorkerCells(RowsOf(Now())[3], false),
      ElementsAre("x\\033[31m", "left", "0", "0", "-", "0", "0", "-", "-", "-", "n\\012:0"));
}

TEST(WorkerRowsTest, SayWhoIsAwaitedAndWhoIsDone) {
  const auto rows = RowsOf(Now());
  EXPECT_THAT(WorkerCells(rows[0], true),
              ElementsAre("worker-0", "present", "109", "1", "-", "2.25", "110", "0", "29.2 ms",
                          "29.4 ms", "awaited", "node1:7"));
  EXPECT_EQ(WorkerCells(rows[1], false)[9], "awaited, 2.0 kB came");
  EXPECT_EQ(WorkerCells(rows[1], false)[4], "nan");
  EXPECT_EQ(WorkerCells(rows[2], false)[9], "done");
  EXPECT_EQ(WorkerColumns(true).size(), WorkerCells(rows[0], true).size());
  EXPECT_EQ(WorkerColumns(false).size(), WorkerCells(rows[0], false).size());
}

TEST(WorkerRowsTest, TellWhoTakesPart) {
  const auto rows = RowsOf(Now());
  EXPECT_TRUE(TakesPart(rows[0].worker));
  EXPECT_TRUE(TakesPart(rows[1].worker));
  EXPECT_FALSE(TakesPart(rows[3].worker));
}

}  // namespace
}  // namespace sluice
