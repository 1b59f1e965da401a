// Jobs of a hundred thousand tensors, whose layout is larger than a message, over real gRPC.

#include <memory>
#include <string>
#include <utility>

#include "common/wire/join.h"
#include "common/wire/messages.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/outcome.h"
#include "tests/testing/server/connect.h"
#include "tests/testing/server/server_world.h"
#include "tests/testing/status.h"
#include "tests/testing/vectors.h"
#include "worker/client/parameter_client.h"

namespace sluice {
namespace {

using ::testing::HasSubstr;

constexpr size_t kTensors = 100000;
constexpr size_t kElements = 150000;

JoinRequest LargeRequest(const std::string& name) {
  JoinRequest request = WorkerRequest(name);
  request.layout = ManyTensors(kTensors);
  return request;
}

// 0, 1, 2, … 999, 0, 1, …
Values Ramp() {
  Values values(kElements);
  for (size_t i = 0; i < kElements; ++i) values[i] = static_cast<float>(i % 1000);
  return values;
}

struct LargeWorker {
  explicit LargeWorker(const ServerWorld& world)
      : client(ConnectTo(world.address().ToString())), parameters(Ramp()) {}

  absl::Status Join(const JoinRequest& request) {
    return client.Join(request, absl::MakeSpan(parameters));
  }
  absl::StatusOr<RoundReport> PushPull(const Values& gradient) {
    return client.PushPull(Share(gradient), 1, absl::nullopt, absl::MakeSpan(parameters));
  }

  ParameterClient client;
  Values parameters;
};

TEST(LargeLayoutTest, ALayoutLargerThanAMessageTrains) {
  ServerWorld world(Sync(1));
  const JoinRequest request = LargeRequest("a");
  EXPECT_GT(ToProto(request).ByteSizeLong(), 2 * static_cast<size_t>(kMaxMessage));
  LargeWorker worker(world);
  ASSERT_THAT(worker.Join(request), IsOk());
  Values gradient(kElements), expected = Ramp();
  for (size_t i = 0; i < kElements; ++i) {
    gradient[i] = static_cast<float>(i % 7);
    expected[i] -= gradient[i];
  }
  ASSERT_THAT(worker.PushPull(gradient), IsOk());
  EXPECT_EQ(worker.client.step(), Step(1));
  EXPECT_TRUE(worker.parameters == expected);
  EXPECT_EQ(world.shard().Describe().tensors, kTensors);
}

// All names but the last are in one group, which is larger than a message, too.
TEST(LargeLayoutTest, AGroupOfParametersLargerThanAMessageTrains) {
  ServerWorld world(Sync(1));
  JoinRequest request = LargeRequest("a");
  SgdOptions slow = PlainSgd();
  slow.learning_rate = 0.5;
  request.optimizer.groups = {{{}, slow}};
  for (size_t i = 0; i + 1 < kTensors; ++i) {
    request.optimizer.groups[0].parameters.push_back(request.layout.ranges()[i].name);
  }
  EXPECT_GT(ToProto(request).optimizer().ByteSizeLong(), static_cast<size_t>(kMaxMessage));
  LargeWorker worker(world);
  ASSERT_THAT(worker.Join(request), IsOk());
  ASSERT_THAT(worker.PushPull(Values(kElements, 2)), IsOk());
  Values expected = Ramp();
  for (size_t i = 0; i < kElements; ++i) expected[i] -= i + 2 < kElements ? 1.0f : 2.0f;
  EXPECT_TRUE(worker.parameters == expected);
}

TEST(LargeLayoutTest, TwoWorkersTakePartAndOneJoinsAgain) {
  ServerWorld world(Sync(2));
  LargeWorker a(world), b(world);
  ASSERT_THAT(a.Join(LargeRequest("a")), IsOk());
  ASSERT_THAT(b.Join(LargeRequest("b")), IsOk());
  const auto again = ConnectTo(world.address().ToString());
  const auto welcome = again->Join(LargeRequest("b"));
  ASSERT_THAT(welcome, IsOk());
  EXPECT_TRUE(welcome->resumed);
  EXPECT_EQ(welcome->index, 1u);
}

TEST(LargeLayoutTest, AnotherModelIsNamed) {
  ServerWorld world(Sync(2));
  LargeWorker a(world), b(world);
  ASSERT_THAT(a.Join(LargeRequest("a")), IsOk());
  JoinRequest request = LargeRequest("b");
  request.layout = ManyTensors(kTensors - 1);
  EXPECT_THAT(b.Join(request),
              IsError(Reason::kLayoutMismatch, HasSubstr("it has 99999 tensors, the job's has "
                                                         "100000")));
}

TEST(LargeLayoutTest, TheInspectorShowsItInPages) {
  ServerWorld world(Sync(1));
  LargeWorker worker(world);
  ASSERT_THAT(worker.Join(LargeRequest("a")), IsOk());
  const Layout layout = ManyTensors(kTensors);
  size_t seen = 0;
  v1::ListParametersRequest request;
  do {
    v1::ListParametersResponse page;
    ASSERT_TRUE(world.inspector().ListParameters(world.Context().get(), request, &page).ok());
    ASSERT_EQ(page.total(), kTensors);
    for (const v1::LayoutRange& range : page.parameters()) {
      ASSERT_EQ(range.name(), layout.ranges()[seen++].name);
    }
    request.set_page_token(page.next_page_token());
  } while (!request.page_token().empty());
  EXPECT_EQ(seen, kTensors);
  v1::GetParameterRequest last;
  last.set_name(layout.ranges().back().name);
  v1::GetParameterResponse parameter;
  ASSERT_TRUE(world.inspector().GetParameter(world.Context().get(), last, &parameter).ok());
  EXPECT_EQ(parameter.values(1), 999);
}

TEST(LargeLayoutTest, TheServersStateShowsTheFirstOfVeryManyGroups) {
  ServerWorld world(Sync(1));
  JoinRequest request = LargeRequest("a");
  for (const LayoutRange& range : request.layout.ranges()) {
    request.optimizer.groups.push_back({{range.name}, PlainSgd()});
  }
  LargeWorker worker(world);
  ASSERT_THAT(worker.Join(request), IsOk());
  ASSERT_THAT(worker.PushPull(Values(kElements, 1)), IsOk());
  EXPECT_EQ(worker.parameters[999], 998);
  v1::ServerState state;
  ASSERT_TRUE(world.inspector()
                  .GetServerState(world.Context().get(), v1::GetServerStateRequest(), &state)
                  .ok());
  EXPECT_EQ(state.optimizer().group_count(), kTensors);
  EXPECT_EQ(state.optimizer().groups_size(), 16);
  EXPECT_EQ(state.optimizer().groups(15).size(), 1u);
  EXPECT_LT(state.ByteSizeLong(), size_t{64} << 10);
}

}  // namespace
}  // namespace sluice
