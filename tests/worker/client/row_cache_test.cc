// Rows that a worker uses again: how old they may be, and what is pulled in their place.

#include "worker/client/row_cache.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/base/error.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/shard/shard_connection.h"
#include "tests/testing/shard/shard_world.h"
#include "tests/testing/status.h"
#include "tests/testing/vectors.h"
#include "worker/client/parameter_client.h"

namespace sluice {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Each row begins as zeroes.
TableSpec Table(const std::string& name, uint32_t width) {
  TableSpec table;
  table.name = name;
  table.width = width;
  table.initializer = {RowInitializerKind::kZero, 0, 0};
  return table;
}

// ---- The cache by itself ----

// Of one table with rows of one element, and memory for two of them.
class RowCacheTest : public ::testing::Test {
 protected:
  void Put(RowId id, float value, uint64_t step) { cache_.Put(0, {id}, {value}, Step(step)); }
  // -1: the row is not there.
  float Find(RowId id, uint64_t now) {
    const float* const row = cache_.Find(0, id, Step(now));
    return row == nullptr ? -1 : *row;
  }

  RowCache cache_{{Table("items", 1)}, {/*max_age=*/3, /*max_bytes=*/60}};
};

TEST_F(RowCacheTest, FindsARowUntilItIsTooOld) {
  Put(7, 0.5F, 10);
  EXPECT_EQ(Find(7, 10), 0.5F);
  EXPECT_EQ(Find(7, 13), 0.5F);
  EXPECT_EQ(Find(7, 14), -1);
  Put(7, 0.75F, 14);
  EXPECT_EQ(Find(7, 14), 0.75F);
}

TEST_F(RowCacheTest, FindsARowThatIsOfALaterStepThanTheWorker) {
  Put(7, 0.5F, 10);
  EXPECT_EQ(Find(7, 2), 0.5F);
}

TEST_F(RowCacheTest, ReplacesTheRowThatWasNotFoundForTheLongestTime) {
  Put(1, 0.25F, 0);
  Put(2, 0.5F, 0);
  EXPECT_EQ(Find(1, 0), 0.25F);
  Put(3, 0.75F, 0);
  EXPECT_EQ(Find(2, 0), -1);
  EXPECT_EQ(Find(1, 0), 0.25F);
  EXPECT_EQ(Find(3, 0), 0.75F);
  Put(4, 1, 0);
  EXPECT_EQ(Find(4, 0), 1);
}

TEST_F(RowCacheTest, ForgetsTheRowsOfAnotherIncarnation) {
  cache_.Use(Incarnation(1));
  Put(1, 0.25F, 0);
  cache_.Use(Incarnation(1));
  EXPECT_EQ(Find(1, 0), 0.25F);
  cache_.Use(Incarnation(2));
  EXPECT_EQ(Find(1, 0), -1);
  Put(2, 0.5F, 0);
  EXPECT_EQ(Find(2, 0), 0.5F);
}

TEST(SmallRowCacheTest, KeepsNothingIfNoRowFits) {
  RowCache cache({Table("items", 100)}, {1, 100});
  cache.Put(0, {1}, Values(100), Step());
  EXPECT_EQ(cache.Find(0, 1, Step()), nullptr);
}

// ---- In a client ----

ShardOptions Returned(ShardOptions options) {
  options.session_base = SessionId(1000);
  options.incarnation = Incarnation(2);
  return options;
}

JoinRequest RequestWithTables() {
  JoinRequest request = WorkerRequest("a");
  request.layout =
      *Layout::Create(ParametersOnly(3).ranges(), {Table("items", 2), Table("users", 1)});
  return request;
}

class CachedRowsTest : public ::testing::Test {
 protected:
  CachedRowsTest() { Connect(world_.shard(), {/*max_age=*/1}); }

  void Connect(Shard& shard, const RowCacheOptions& options) {
    auto connection = std::make_unique<ShardConnection>(shard);
    link_ = connection.get();
    client_ = std::make_unique<ParameterClient>(std::move(connection));
    client_->CacheRows(options);
  }
  absl::Status Join() { return client_->Join(RequestWithTables(), absl::MakeSpan(parameters_)); }

  // A step subtracts 1 from the row 7 of users.
  void Train() {
    client_->SetRows({{{1, {7}}, Share({1})}});
    ASSERT_THAT(client_->PushPull(Share({0, 0, 0}), 1, absl::nullopt, absl::MakeSpan(parameters_)),
                IsOk());
  }

  Values Finish(RowPull pull, size_t elements) {
    Values rows(elements, -100);
    EXPECT_THAT(client_->FinishRows(std::move(pull), absl::MakeSpan(rows)), IsOk());
    return rows;
  }
  float Row7() { return Finish(client_->StartRows({{1, {7}}}), 1)[0]; }

  ShardWorld world_{Async(1), RequestWithTables().layout};
  ShardWorld returned_{Returned(Async(1)), RequestWithTables().layout};
  ShardConnection* link_ = nullptr;
  std::unique_ptr<ParameterClient> client_;
  Values parameters_ = {10, 10, 10};
};

TEST_F(CachedRowsTest, AreUsedAgainForSoManySteps) {
  ASSERT_THAT(Join(), IsOk());
  EXPECT_EQ(Row7(), 0);
  Train();
  EXPECT_EQ(Row7(), 0);
  Train();
  EXPECT_EQ(Row7(), -2);
  EXPECT_EQ(client_->row_counts().given, 3u);
  EXPECT_EQ(client_->row_counts().sent, 2u);
}

TEST_F(CachedRowsTest, ComeInTheirPlacesAmongRowsThatArePulled) {
  ASSERT_THAT(Join(), IsOk());
  Train();
  EXPECT_EQ(Row7(), -1);
  Train();
  const Values rows = Finish(client_->StartRows({{0, {1, 7}}, {1, {5, 7, 9}}}), 7);
  EXPECT_THAT(rows, ElementsAre(0, 0, 0, 0, 0, -1, 0));
  EXPECT_EQ(client_->row_counts().given, 6u);
  EXPECT_EQ(client_->row_counts().sent, 5u);
}

TEST_F(CachedRowsTest, ArePulledAfterAllIfTheyHaveBecomeTooOldSinceThePullBegan) {
  ASSERT_THAT(Join(), IsOk());
  EXPECT_EQ(Row7(), 0);
  RowPull pull = client_->StartRows({{1, {5, 7, 9}}});
  Train();
  Train();
  EXPECT_THAT(Finish(std::move(pull), 3), ElementsAre(0, -2, 0));
}

TEST_F(CachedRowsTest, MayBeAsOldIfTheyWereAskedForBeforeAStep) {
  ASSERT_THAT(Join(), IsOk());
  RowPull one = client_->StartRows({{1, {7}}});
  Train();
  EXPECT_EQ(Finish(std::move(one), 1)[0], 0);
  RowPull two = client_->StartRows({{1, {7, 8}}});  // 8 is not there yet
  Train();
  Train();
  EXPECT_THAT(Finish(std::move(two), 2), ElementsAre(-3, 0));
  EXPECT_EQ(client_->row_counts().sent, 3u);
}

TEST_F(CachedRowsTest, AreForgottenWhenTheServerHasComeBack) {
  ASSERT_THAT(Join(), IsOk());
  EXPECT_EQ(Row7(), 0);
  Train();
  Train();
  EXPECT_EQ(Row7(), -2);
  ASSERT_THAT(returned_.JoinAs(RequestWithTables()), IsOk());
  ASSERT_THAT(returned_.Initialize({6, 6, 6}), IsOk());
  link_->MoveTo(returned_.shard());
  Train();  // joins again; the gradient is of the first incarnation
  ASSERT_EQ(client_->welcome().incarnation, Incarnation(2));
  const float row = Row7();
  EXPECT_EQ(row, returned_.shard().Describe().step == Step(1) ? -1 : 0);
  client_ = nullptr;  // before the server
}

TEST_F(CachedRowsTest, AreRightThoughThereIsMemoryForOneOnly) {
  Connect(world_.shard(), {/*max_age=*/1, /*max_bytes=*/60});
  ASSERT_THAT(Join(), IsOk());
  Train();
  const std::vector<RowIds> rows = {{0, {1, 2, 3}}, {1, {5, 7, 9}}};
  for (int i = 0; i < 3; ++i) {
    EXPECT_THAT(Finish(client_->StartRows(rows), 9), ElementsAre(0, 0, 0, 0, 0, 0, 0, -1, 0));
  }
}

TEST_F(CachedRowsTest, AreRefusedWhereAllRowsAreOfTheWorkersStep) {
  for (const ShardOptions& options : {Sync(1), Backup(1, 1)}) {
    ShardWorld exact(options, RequestWithTables().layout);
    Connect(exact.shard(), {/*max_age=*/4});
    EXPECT_THAT(Join(),
                IsError(Reason::kBadArgument, AllOf(HasSubstr("--row-cache=4 with --mode="),
                                                    HasSubstr("choose async, ssp or bounded"))));
    EXPECT_EQ(exact.shard().Describe().workers, 0u);
    client_ = nullptr;  // before the server
  }
}

TEST_F(CachedRowsTest, AreNoMatterToAModelWithoutTables) {
  ShardWorld exact(Sync(1));
  Connect(exact.shard(), {/*max_age=*/4});
  EXPECT_THAT(client_->Join(WorkerRequest("a"), absl::MakeSpan(parameters_)), IsOk());
  client_ = nullptr;  // before the server
}

}  // namespace
}  // namespace sluice
