// The ways in which a client reaches a shard, for tests that run on several of them.
//
//   INSTANTIATE_TEST_SUITE_P(, MyTest, ::testing::Values(&InProcess, &OverGrpc), TransportName);

#ifndef SLUICE_TESTS_TESTING_SERVER_TRANSPORT_H_
#define SLUICE_TESTS_TESTING_SERVER_TRANSPORT_H_

#include <memory>
#include <string>
#include <utility>

#include "gtest/gtest.h"
#include "tests/testing/server/connect.h"
#include "tests/testing/server/server_world.h"
#include "tests/testing/shard/shard_connection.h"
#include "worker/connection/grpc/connection.h"

namespace sluice {

using Transport = std::unique_ptr<ServerConnection> (*)(ServerWorld& world);

inline std::unique_ptr<ServerConnection> InProcess(ServerWorld& world) {
  return std::make_unique<ShardConnection>(world.shard());
}

inline std::unique_ptr<ServerConnection> OverGrpc(ServerWorld& world) {
  return ConnectTo(world.address().ToString());
}

// Over gRPC, where also small vectors are pushed and pulled by a call each.
inline std::unique_ptr<ServerConnection> InTwoCalls(ServerWorld& world) {
  GrpcConnectionOptions options;
  options.address = world.address().ToString();
  options.one_call = false;
  auto connection = ConnectOverGrpc(options);
  EXPECT_TRUE(connection.ok()) << connection.status();
  return connection.ok() ? *std::move(connection) : nullptr;
}

inline std::string TransportName(const ::testing::TestParamInfo<Transport>& info) {
  if (info.param == &InProcess) return "InProcess";
  return info.param == &OverGrpc ? "OverGrpc" : "InTwoCalls";
}

}  // namespace sluice

#endif  // SLUICE_TESTS_TESTING_SERVER_TRANSPORT_H_
