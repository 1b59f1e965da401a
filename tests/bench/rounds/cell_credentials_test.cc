#include "tools/bench/rounds/cell_credentials.h"

#include "absl/time/clock.h"
#include "common/security/certificates.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status.h"

namespace sluice::bench {
namespace {

TEST(CellCredentialsTest, AWorkerReadsCredentialsOfTheServersAuthority) {
  const auto made = MakeCellCredentials();
  ASSERT_THAT(made, IsOk());
  const auto server = made->server();
  const auto worker = WorkerCredentials(made->directory->path())();
  ASSERT_THAT(server, IsOk());
  ASSERT_THAT(worker, IsOk());
  EXPECT_THAT(CheckCredentials(*worker, absl::Now()), IsOk());
  EXPECT_EQ(worker->authority, server->authority);
  EXPECT_NE(worker->certificate, server->certificate);
}

TEST(CellCredentialsTest, WithoutADirectoryThereIsNoTls) {
  EXPECT_EQ(WorkerCredentials(""), nullptr);
}

TEST(CellAddressTest, IsSplitAsItWasJoined) {
  const CellAddress tls = SplitAddress(JoinAddress({"127.0.0.1:4711", "/tmp/sluice-1"}));
  EXPECT_EQ(tls.address, "127.0.0.1:4711");
  EXPECT_EQ(tls.directory, "/tmp/sluice-1");
  const CellAddress plain = SplitAddress(JoinAddress({"unix:/tmp/server.sock", ""}));
  EXPECT_EQ(plain.address, "unix:/tmp/server.sock");
  EXPECT_EQ(plain.directory, "");
}

}  // namespace
}  // namespace sluice::bench
