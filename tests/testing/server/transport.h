// The two ways in which a client reaches a shard, for tests that run on both.
//
//   INSTANTIATE_TEST_SUITE_P(, MyTest, ::testing::Values(&InProcess, &OverGrpc), TransportName);

#ifndef SLUICE_TESTS_TESTING_SERVER_TRANSPORT_H_
#define SLUICE_TESTS_TESTING_SERVER_TRANSPORT_H_

#include <memory>
#include <string>

#include "gtest/gtest.h"
#include "tests/testing/server/connect.h"
#include "tests/testing/server/server_world.h"
#include "tests/testing/shard/shard_connection.h"

namespace sluice {

using Transport = std::unique_ptr<ServerConnection> (*)(ServerWorld& world);

inline std::unique_ptr<ServerConnection> InProcess(ServerWorld& world) {
  return std::make_unique<ShardConnection>(world.shard());
}

inline std::unique_ptr<ServerConnection> OverGrpc(ServerWorld& world) {
  return ConnectTo(world.address().ToString());
}

inline std::string TransportName(const ::testing::TestParamInfo<Transport>& info) {
  return info.param == &InProcess ? "InProcess" : "OverGrpc";
}

}  // namespace sluice

#endif  // SLUICE_TESTS_TESTING_SERVER_TRANSPORT_H_
