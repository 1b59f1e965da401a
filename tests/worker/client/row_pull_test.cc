// Rows that a client pulls: what becomes of them if the session ends meanwhile, and what the client
// takes from a server.

#include <cmath>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "common/base/error.h"
#include "common/encoding/checksum.h"
#include "common/encoding/encoding_plan.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/server/connect.h"
#include "tests/testing/server/server_world.h"
#include "tests/testing/shard/shard_connection.h"
#include "tests/testing/shard/shard_world.h"
#include "tests/testing/status.h"
#include "tests/testing/vectors.h"
#include "tests/worker/connection/fake_server.h"
#include "worker/client/parameter_client.h"

namespace sluice {
namespace {

using ::testing::HasSubstr;

TableSpec Table(const std::string& name, uint32_t width) {
  TableSpec table;
  table.name = name;
  table.width = width;
  table.initializer = {RowInitializerKind::kUniform, 0.5F, 3};
  return table;
}

// Three parameters, and the tables "items" and "users".
Layout WithTables() {
  return *Layout::Create(ParametersOnly(3).ranges(), {Table("items", 2), Table("users", 1)});
}

JoinRequest RequestWithTables() {
  JoinRequest request = WorkerRequest("a");
  request.layout = WithTables();
  return request;
}

std::vector<RowId> Counting(RowId first, size_t count) {
  std::vector<RowId> ids(count);
  std::iota(ids.begin(), ids.end(), first);
  return ids;
}

// The first values of the rows.
Values FirstRows(const std::vector<RowIds>& rows) {
  const Layout layout = WithTables();
  Values values;
  for (const RowIds& of_table : rows) {
    const TableSpec& table = layout.tables()[of_table.table];
    const uint64_t key = InitializerKey(table.initializer, Checksum(table.name));
    for (const RowId id : of_table.ids) {
      Values row(table.width);
      InitializeRow(table.initializer, key, id, absl::MakeSpan(row));
      values.insert(values.end(), row.begin(), row.end());
    }
  }
  return values;
}

ShardOptions Returned(ShardOptions options) {
  options.session_base = SessionId(1000);
  options.incarnation = Incarnation(2);
  return options;
}

// A worker "a" in this process, and a server that takes the place of the first.
class RowPullTest : public ::testing::Test {
 protected:
  RowPullTest() {
    auto connection = std::make_unique<ShardConnection>(world_.shard());
    link_ = connection.get();
    client_ = std::make_unique<ParameterClient>(std::move(connection));
  }
  ~RowPullTest() override { client_ = nullptr; }

  void SetUp() override {
    ASSERT_THAT(client_->Join(RequestWithTables(), absl::MakeSpan(parameters_)), IsOk());
  }

  // Pushes a gradient of 1 for row 7, and of 0 for everything else.
  absl::StatusOr<RoundReport> Train() {
    client_->SetRows({{{1, {7}}, Share({1})}});
    return client_->PushPull(Share({0, 0, 0}), 1, absl::nullopt, absl::MakeSpan(parameters_));
  }

  // The other server knows "a" and its parameters, and no row that was trained.
  void Move() {
    ASSERT_THAT(returned_.JoinAs(RequestWithTables()), IsOk());
    ASSERT_THAT(returned_.Initialize({6, 6, 6}), IsOk());
    link_->MoveTo(returned_.shard());
  }

  const std::vector<RowIds> rows_ = {{1, {7}}};
  const float first_ = FirstRows(rows_)[0];
  ShardWorld world_{Sync(1), WithTables()};
  ShardWorld returned_{Returned(Sync(1)), WithTables()};
  ShardConnection* link_ = nullptr;
  std::unique_ptr<ParameterClient> client_;
  Values parameters_ = {10, 10, 10};
  Values row_ = {0};
};

TEST_F(RowPullTest, AreOfTheServerThatTheWorkerIsJoinedToNow) {
  ASSERT_THAT(Train(), IsOk());
  RowPull pull = client_->StartRows(rows_);
  Move();
  ASSERT_THAT(Train(), IsOk());  // joins again, and its gradient is of the first incarnation
  ASSERT_EQ(client_->welcome().incarnation, Incarnation(2));
  EXPECT_THAT(client_->FinishRows(std::move(pull), absl::MakeSpan(row_)), IsOk());
  EXPECT_EQ(row_[0], first_);
}

// The parameters are of step 2 of the first incarnation, which the second has not reached.
TEST_F(RowPullTest, DoNotWaitForAStepOfAnEarlierIncarnation) {
  ASSERT_THAT(Train(), IsOk());
  ASSERT_THAT(Train(), IsOk());
  Move();
  EXPECT_THAT(client_->PullRows(rows_, absl::MakeSpan(row_)), IsOk());
  EXPECT_EQ(row_[0], first_);
  EXPECT_EQ(client_->welcome().incarnation, Incarnation(2));
  EXPECT_EQ(link_->joins(), 2);
}

TEST_F(RowPullTest, AreNotPulledAfterTheWorkerHasLeft) {
  RowPull pull = client_->StartRows(rows_);
  ASSERT_THAT(client_->Leave({}), IsOk());
  const auto refused =
      HasCode(absl::StatusCode::kFailedPrecondition, HasSubstr("pull them before it leaves"));
  EXPECT_THAT(client_->FinishRows(std::move(pull), absl::MakeSpan(row_)), refused);
  EXPECT_THAT(client_->PullRows(rows_, absl::MakeSpan(row_)), refused);
  EXPECT_EQ(link_->joins(), 1);
}

TEST_F(RowPullTest, MayBeGivenUpAfterTheClientIsGone) {
  const RowPull pull = client_->StartRows(rows_);
  client_ = nullptr;
  EXPECT_EQ(pull.parts.size(), 1u);
}

TEST_F(RowPullTest, AreRefusedIfTheyDoNotFitIntoTheMemoryOrTheModel) {
  Values two(2);
  EXPECT_THAT(
      client_->PullRows(rows_, absl::MakeSpan(two)),
      IsError(Reason::kBadArgument, HasSubstr("have 1 elements, and there is memory for 2")));
  EXPECT_THAT(client_->PullRows({{2, {7}}}, absl::MakeSpan(row_)),
              IsError(Reason::kBadArgument, HasSubstr("table 2 are pulled, and the model has 2")));
}

// ---- A server that breaks the rules ----

class WrongServerTest : public ::testing::Test {
 protected:
  WrongServerTest() {
    server_.welcome.initialized = true;
    server_.welcome.incarnation = Incarnation(1);
    server_.header.step = Step(5);
    server_.header.incarnation = Incarnation(1);
    server_.parameters = {1, 2, 3};
  }

  void SetUp() override {
    Values parameters(3);
    ASSERT_THAT(client_.Join(RequestWithTables(), absl::MakeSpan(parameters)), IsOk());
    server_.parameters = {4};
  }

  absl::Status PullRow() { return client_.PullRows({{1, {7}}}, absl::MakeSpan(row_)); }

  FakeServer server_;
  ParameterClient client_{std::make_unique<FakeConnection>(server_)};
  Values row_ = {0};
};

TEST_F(WrongServerTest, IsToldThatItsRowsAreOfAnEarlierStepThanWasAskedFor) {
  server_.header.step = Step(4);
  EXPECT_THAT(PullRow(), HasCode(absl::StatusCode::kInternal,
                                 "the server sent rows of step 4 of incarnation 1, expected step 5 "
                                 "of incarnation 1 or later"));
}

TEST_F(WrongServerTest, IsGivenUpIfItsRowsAreOfAnotherIncarnationInEachSession) {
  server_.header.incarnation = Incarnation(3);
  EXPECT_THAT(PullRow(), HasCode(absl::StatusCode::kUnavailable, HasSubstr("of incarnation 3")));
}

// ---- Over gRPC ----

TEST(ManyRowsTest, ArePulledInPartsThatTheServerTakes) {
  ServerWorld world(Sync(1), WithTables());
  ParameterClient client(ConnectTo(world.address().ToString()));
  Values parameters(3);
  ASSERT_THAT(client.Join(RequestWithTables(), absl::MakeSpan(parameters)), IsOk());
  const std::vector<RowIds> rows = {{0, Counting(5, 250'000)}, {1, Counting(9, 600'000)}};
  const Values expected = FirstRows(rows);
  Values pulled(expected.size());
  ASSERT_THAT(client.PullRows(rows, absl::MakeSpan(pulled)), IsOk());
  EXPECT_TRUE(pulled == expected);
  EXPECT_THAT(client.Leave({}), IsOk());
}

// ---- Gradients of rows ----

// What a push of this gradient for each element of many rows leaves of it, at the server.
float Arrives(const std::string& encoding, float gradient) {
  ServerWorld world(Sync(1), WithTables());
  GradientEncoding push;
  push.choice = ParseEncodingChoice(encoding).value();
  ParameterClient client(ConnectTo(world.address().ToString()), push);
  Values parameters(3);
  EXPECT_THAT(client.Join(RequestWithTables(), absl::MakeSpan(parameters)), IsOk());
  const std::vector<RowIds> rows = {{0, Counting(5, 200'000)}, {1, Counting(9, 3)}};
  RowGradients gradients;
  gradients.push_back({rows[0], Share(Values(400'000, gradient))});
  gradients.push_back({rows[1], Share(Values(3, gradient))});
  client.SetRows(std::move(gradients));
  EXPECT_THAT(client.PushPull(Share({0, 0, 0}), 1, absl::nullopt, absl::MakeSpan(parameters)),
              IsOk());
  Values pulled(400'003);
  EXPECT_THAT(client.PullRows(rows, absl::MakeSpan(pulled)), IsOk());
  EXPECT_THAT(client.Leave({}), IsOk());
  const Values first = FirstRows(rows);
  const float arrived = std::round((first[0] - pulled[0]) * 0x1p12F) * 0x1p-12F;
  for (size_t i = 0; i < first.size(); ++i) EXPECT_NEAR(first[i] - pulled[i], arrived, 1e-6F);
  return arrived;
}

TEST(RowGradientEncodingTest, IsThatOfThePushIfItSendsEachValue) {
  constexpr float kGradient = 1 + 0x1p-9F;
  EXPECT_EQ(Arrives("none", kGradient), kGradient);
  EXPECT_EQ(Arrives("bfloat16", kGradient), 1);
  EXPECT_EQ(Arrives("float16/zstd", kGradient), kGradient);
  EXPECT_EQ(Arrives("bfloat16/planes", kGradient), 1);
  EXPECT_EQ(Arrives("int8", kGradient), kGradient);
  EXPECT_EQ(Arrives("top-k:0.01", kGradient), kGradient);
  EXPECT_EQ(Arrives("auto", kGradient), kGradient);
}

TEST(ManyRowsTest, NoRowsAreNoCall) {
  FakeServer server;
  server.welcome.initialized = true;
  server.parameters = {1, 2, 3};
  ParameterClient client(std::make_unique<FakeConnection>(server));
  Values parameters(3);
  ASSERT_THAT(client.Join(RequestWithTables(), absl::MakeSpan(parameters)), IsOk());
  EXPECT_THAT(client.PullRows({}, {}), IsOk());
  EXPECT_THAT(client.PullRows({{1, {}}}, {}), IsOk());
  EXPECT_EQ(server.pulls.size(), 1u);
}

}  // namespace
}  // namespace sluice
