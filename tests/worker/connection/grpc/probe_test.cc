#include "worker/connection/grpc/probe.h"

#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>

#include "common/base/version.h"
#include "common/net/private_directory.h"
#include "common/wire/versions.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "sluice/v1/parameter_server.grpc.pb.h"
#include "tests/testing/server/server_world.h"
#include "tests/testing/server/tls_world.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

using ::testing::_;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::Gt;
using ::testing::HasSubstr;
using ::testing::SizeIs;

std::unique_ptr<GrpcProbe> ProbeOf(const GrpcEndpoint& options) {
  auto probe = GrpcProbe::Connect(options, RealClock());
  EXPECT_THAT(probe.status(), IsOk());
  return *std::move(probe);
}

// All that a probe does, with so many connections.
void ExpectMeasures(const GrpcEndpoint& options, int connections) {
  const auto probe = ProbeOf(options);
  const auto server = probe->Ask();
  ASSERT_THAT(server, IsOk());
  EXPECT_EQ(server->version, kVersion);
  EXPECT_EQ(server->revision, kServedRevisions.newest);
  const auto times = probe->RoundTrips(20, kPatience);
  ASSERT_THAT(times, IsOk());
  EXPECT_THAT(*times, AllOf(SizeIs(20), Each(Gt(absl::ZeroDuration()))));
  const auto push = probe->Push(connections, absl::ZeroDuration());
  ASSERT_THAT(push, IsOk());
  EXPECT_EQ(push->bytes, static_cast<uint64_t>(connections) << 20);  // one chunk each
  EXPECT_GT(push->rate(), 0);
  const auto pull = probe->Pull(connections, absl::ZeroDuration());
  ASSERT_THAT(pull, IsOk());
  EXPECT_EQ(pull->bytes, static_cast<uint64_t>(2 * connections) << 20);  // and the next one
  EXPECT_GT(pull->rate(), 0);
}

TEST(GrpcProbeClientTest, MeasuresATcpConnectionAndSeveral) {
  const ServerWorld world(Sync(1), ParametersOnly(3), "secret");
  ExpectMeasures({world.address().ToString(), "secret"}, 1);
  ExpectMeasures({world.address().ToString(), "secret"}, 4);
}

TEST(GrpcProbeClientTest, MeasuresAUnixSocketAndFindsThatMemoryIsShared) {
  const auto directory = PrivateDirectory::Create();
  ASSERT_THAT(directory, IsOk());
  FakeClock clock;
  ShardOptions shard_options = Sync(1);
  shard_options.snapshots = SnapshotMemory::kShared;
  Shard shard(shard_options, clock);
  GrpcServerOptions options;
  options.address.unix_path = (*directory)->path() + "/s";
  const auto server = StartGrpcServer(options, shard);
  ASSERT_THAT(server, IsOk());
  ExpectMeasures({(*server)->address().ToString()}, 1);
  EXPECT_TRUE(ProbeOf({(*server)->address().ToString()})->Ask()->shares_memory);
  (*server)->Shutdown(absl::ZeroDuration());
}

TEST(GrpcProbeClientTest, MeasuresThroughTls) {
  const TestAuthority authority;
  const TlsWorld world(SourceOf(authority.Server()));
  ExpectMeasures({world.address(), "", SourceOf(authority.Client({Role::kWorker}))}, 2);
  ExpectMeasures({world.address(), "", SourceOf(authority.Client({Role::kObserver}))}, 2);
  EXPECT_THAT(
      ProbeOf({world.address(), "", SourceOf(authority.Client({Role::kAdmin}))})->Ask(),
      HasCode(absl::StatusCode::kPermissionDenied, HasSubstr("needs the role worker or observer")));
}

TEST(GrpcProbeClientTest, TellsTheServersTimeWithoutAToken) {
  ServerWorld world(Sync(1), ParametersOnly(3), "secret");
  const auto probe = ProbeOf({world.address().ToString()});
  const auto first = probe->AskTime();
  ASSERT_THAT(first, IsOk());
  world.Pass(absl::Seconds(90));
  EXPECT_THAT(probe->AskTime(), IsOkAndHolds(*first + absl::Seconds(90)));
}

TEST(GrpcProbeClientTest, BringsTheServersReasons) {
  const ServerWorld world(Sync(1), ParametersOnly(3), "secret");
  const auto probe = ProbeOf({world.address().ToString(), "another"});
  EXPECT_THAT(probe->Ask(), IsError(Reason::kBadToken, _));
  EXPECT_THAT(probe->RoundTrips(1, kPatience), IsError(Reason::kBadToken, _));
  EXPECT_THAT(probe->Push(2, absl::ZeroDuration()), IsError(Reason::kBadToken, _));
  EXPECT_THAT(probe->Pull(2, absl::ZeroDuration()), IsError(Reason::kBadToken, _));
}

TEST(GrpcProbeClientTest, TellsThatThereIsNoServer) {
  GrpcEndpoint options = {"127.0.0.1:1"};
  options.connect_timeout = absl::Milliseconds(50);
  EXPECT_THAT(GrpcProbe::Connect(options, RealClock()).status(),
              HasCode(absl::StatusCode::kUnavailable, HasSubstr("no server at 127.0.0.1:1")));
}

// As every server was before there were probes.
TEST(GrpcProbeClientTest, TellsThatTheServerIsOlder) {
  v1::ParameterServer::Service service;
  int port = 0;
  grpc::ServerBuilder builder;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(&service);
  const auto server = builder.BuildAndStart();
  const auto probe = ProbeOf({"127.0.0.1:" + std::to_string(port)});
  EXPECT_THAT(probe->Ask(), HasCode(absl::StatusCode::kUnimplemented,
                                    AllOf(HasSubstr("is older than this program"),
                                          HasSubstr("upgrade the server"))));
  EXPECT_THAT(probe->Push(1, absl::ZeroDuration()), HasCode(absl::StatusCode::kUnimplemented, _));
}

}  // namespace
}  // namespace sluice
