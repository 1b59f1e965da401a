#include "worker/connection/grpc/probe.h"

#include <memory>
#include <string>

#include "common/base/error.h"
#include "common/base/version.h"
#include "common/wire/versions.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/server/server_world.h"
#include "tests/testing/server/tls_world.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

using ::testing::_;
using ::testing::HasSubstr;

std::unique_ptr<GrpcProbe> ProbeOf(const GrpcEndpoint& options) {
  auto probe = GrpcProbe::Connect(options);
  EXPECT_THAT(probe.status(), IsOk());
  return *std::move(probe);
}

TEST(GrpcProbeTest, TellsVersionRevisionAndTimeWithoutAToken) {
  ServerWorld world(Sync(1), ParametersOnly(3), "secret");
  const auto probe = ProbeOf({world.address().ToString()});
  const auto first = probe->Ask();
  ASSERT_THAT(first, IsOk());
  EXPECT_EQ(first->version, kVersion);
  EXPECT_EQ(first->revision, kServedRevisions.newest);
  world.Pass(absl::Seconds(90));
  EXPECT_EQ(probe->Ask()->time, first->time + absl::Seconds(90));
}

TEST(GrpcProbeTest, TriesTheTokenAndChangesNothing) {
  ServerWorld world(Sync(1), ParametersOnly(3), "secret");
  const std::string address = world.address().ToString();
  EXPECT_THAT(ProbeOf({address, "secret"})->TryAccess(), IsOk());
  EXPECT_THAT(ProbeOf({address, "another"})->TryAccess(), IsError(Reason::kBadToken, _));
  EXPECT_THAT(ProbeOf({address})->TryAccess(), IsError(Reason::kBadToken, _));
  EXPECT_EQ(world.shard().Describe().workers, 0u);
}

TEST(GrpcProbeTest, TriesTheRoleOfACertificate) {
  const TestAuthority authority;
  const TlsWorld world(SourceOf(authority.Server()));
  for (const Role role : {Role::kWorker, Role::kObserver}) {
    EXPECT_THAT(ProbeOf({world.address(), "", SourceOf(authority.Client({role}))})->TryAccess(),
                IsOk());
  }
  const auto admin = ProbeOf({world.address(), "", SourceOf(authority.Client({Role::kAdmin}))});
  EXPECT_THAT(admin->Ask(), IsOk());
  EXPECT_THAT(admin->TryAccess(),
              IsError(Reason::kWrongRole, HasSubstr("needs the role worker or observer")));
}

TEST(GrpcProbeTest, TellsThatThereIsNoServer) {
  GrpcEndpoint options = {"127.0.0.1:1"};
  options.connect_timeout = absl::Milliseconds(50);
  EXPECT_THAT(GrpcProbe::Connect(options).status(), HasCode(absl::StatusCode::kUnavailable, _));
}

}  // namespace
}  // namespace sluice
