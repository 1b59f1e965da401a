// A worker whose model has tables and no vector, in the same process and over gRPC.

#include <string>
#include <vector>

#include "common/encoding/encoding_plan.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/server/server_world.h"
#include "tests/testing/server/transport.h"
#include "tests/testing/status.h"
#include "tests/testing/vectors.h"
#include "worker/client/parameter_client.h"

namespace sluice {
namespace {

using ::testing::ElementsAre;

JoinRequest RequestWithTablesOnly() {
  TableSpec items;
  items.name = "items";
  items.width = 2;
  JoinRequest request = WorkerRequest("a");
  request.layout = *Layout::Create({}, {items});
  return request;
}

class TablesOnlyTest : public ::testing::TestWithParam<Transport> {};

INSTANTIATE_TEST_SUITE_P(, TablesOnlyTest, ::testing::Values(&InProcess, &OverGrpc), TransportName);

TEST_P(TablesOnlyTest, TrainsRowsWithoutAChunkOfTheVector) {
  for (const char* choice : {"float32", "float16", "sign", "top-k:0.1", "auto"}) {
    const JoinRequest request = RequestWithTablesOnly();
    ServerWorld world(Sync(1), request.layout);
    GradientEncoding encoding;
    encoding.choice = *ParseEncodingChoice(choice);
    ParameterClient client(GetParam()(world), encoding);
    ASSERT_THAT(client.Join(request, {}), IsOk()) << choice;
    const std::vector<RowGradients> gradients = {
        {{{0, {7}}, Share({1, 2})}}, {}, {{{0, {3, 7}}, Share({4, 0, 1, 2})}}};
    for (const RowGradients& gradient : gradients) {
      client.SetRows(gradient);
      ASSERT_THAT(client.PushPull(Share({}), 1, 0.5F, {}), IsOk()) << choice;
    }
    EXPECT_EQ(client.step(), Step(3));
    Values rows(6);
    ASSERT_THAT(client.PullRows({{0, {3, 5, 7}}}, absl::MakeSpan(rows)), IsOk()) << choice;
    EXPECT_THAT(rows, ElementsAre(-4, 0, 0, 0, -2, -4)) << choice;
    EXPECT_THAT(client.Leave({}), IsOk());
    EXPECT_EQ(world.Counters(), "3 received: 3 accepted");
  }
}

}  // namespace
}  // namespace sluice
