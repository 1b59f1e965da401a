#include "server/rpc/access/rpc_limits.h"

#include "gtest/gtest.h"

namespace sluice {
namespace {

TEST(RpcLimitsTest, HalfOfTheDescriptorsThatAreLeftCarryConnections) {
  EXPECT_EQ(ConnectionsThatFit(RpcLimits(), 1256), 500);
  EXPECT_EQ(ConnectionsThatFit(RpcLimits(), 1 << 20), 16384);
  EXPECT_EQ(ConnectionsThatFit(RpcLimits(), 100), 16);
}

TEST(RpcLimitsTest, ThePageAndTheMetricsTakeDescriptorsToo) {
  RpcLimits limits;
  limits.http_connections = 128;
  EXPECT_EQ(ConnectionsThatFit(limits, 1256), 436);
  EXPECT_EQ(ConnectionsThatFit(limits, 300), 16);
}

}  // namespace
}  // namespace sluice
