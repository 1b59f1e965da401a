// Mutual TLS of the server: which callers pass the handshake, and how certificates are renewed.

#include "server/rpc/access/tls.h"

#include <atomic>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/server/connect.h"
#include "tests/testing/server/generic_call.h"
#include "tests/testing/server/tls_world.h"
#include "tests/testing/status.h"
#include "worker/connection/grpc/connection.h"

namespace sluice {
namespace {

using ::testing::_;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr char kState[] = "/sluice.v1.Inspector/GetServerState";

auto IsUnavailable() { return HasCode(absl::StatusCode::kUnavailable, _); }

class GrpcTlsTest : public ::testing::Test {
 protected:
  std::shared_ptr<grpc::Channel> ChannelOf(const Credentials& credentials) const {
    return TlsChannel(world_.address(), credentials);
  }

  const TestAuthority authority_;
  TlsWorld world_{SourceOf(authority_.Server())};
};

// ---- The handshake ----

TEST_F(GrpcTlsTest, LetsAWorkerIn) {
  const auto connection = world_.Connect(authority_.Client({Role::kWorker}));
  ASSERT_THAT(connection, IsOk());
  EXPECT_THAT((*connection)->Join(WorkerRequest("a")), IsOk());
}

TEST_F(GrpcTlsTest, EndsAtTheHandshakeForWhoHasNoGoodCertificate) {
  Credentials none = authority_.Client({});
  none.certificate.clear();
  none.key.clear();
  Credentials foreign = TestAuthority().Client({Role::kAdmin});
  foreign.authority = none.authority;  // it would trust the server
  EXPECT_THAT(CallOnce(ChannelOf(none), kState), IsUnavailable());
  EXPECT_THAT(CallOnce(ChannelOf(foreign), kState), IsUnavailable());
  EXPECT_THAT(CallOnce(ChannelOf(authority_.ExpiredClient({Role::kAdmin})), kState),
              IsUnavailable());
}

TEST_F(GrpcTlsTest, EndsAtTheHandshakeForWhoShowsAServersCertificate) {
  EXPECT_THAT(CallOnce(ChannelOf(authority_.Server()), kState), IsUnavailable());
}

TEST_F(GrpcTlsTest, EndsAtTheHandshakeForPlaintext) {
  EXPECT_THAT(
      CallOnce(grpc::CreateChannel(world_.address(), grpc::InsecureChannelCredentials()), kState),
      IsUnavailable());
}

TEST_F(GrpcTlsTest, AWorkerEndsItAtAServerOfAnotherAuthority) {
  Credentials credentials = authority_.Client({Role::kWorker});
  credentials.authority = TestAuthority().Server().authority;
  EXPECT_THAT(CallOnce(ChannelOf(credentials), kState), IsUnavailable());
}

// A worker's certificate is no server's: a worker cannot lure the others to itself.
TEST_F(GrpcTlsTest, AWorkerEndsItAtAServerWithAClientsCertificate) {
  const TlsWorld impostor(SourceOf(authority_.Client({Role::kWorker})));
  EXPECT_THAT(CallOnce(TlsChannel(impostor.address(), authority_.Client({Role::kWorker})), kState),
              IsUnavailable());
}

TEST_F(GrpcTlsTest, TheServersNamesAreThoseOfItsCertificate) {
  const std::string port = world_.address().substr(world_.address().rfind(':'));
  const Credentials worker = authority_.Client({Role::kWorker});
  EXPECT_THAT(CallOnce(TlsChannel("localhost" + port, worker), kState), IsOk());
  EXPECT_THAT(CallOnce(TlsChannel("127.0.0.2" + port, worker), kState), IsUnavailable());
}

TEST_F(GrpcTlsTest, TellsAWorkerThatIsNotLetInWhatToLookAt) {
  GrpcConnectionOptions options;
  options.address = world_.address();
  options.credentials = SourceOf(TestAuthority().Client({Role::kWorker}));
  options.connect_timeout = absl::Milliseconds(100);
  EXPECT_THAT(ConnectOverGrpc(options).status(),
              HasCode(absl::StatusCode::kUnavailable,
                      AllOf(StartsWith("no server at 127.0.0.1:"),
                            HasSubstr("do both sides trust each other's certificates?"))));
}

// ---- Renewal ----

class RenewalTest : public ::testing::Test {
 protected:
  ~RenewalTest() override { std::filesystem::remove_all(folder_); }

  absl::Status CallWith(const Credentials& credentials) const {
    return CallOnce(TlsChannel(world_.address(), credentials), kState);
  }

  const std::string folder_ = ::testing::TempDir() + "/renewal";
  const TestAuthority authority_;
  const TlsFiles files_ = WriteCredentials(authority_.Server(), folder_);
  TlsWorld world_{SourceOf(files_)};
};

TEST_F(RenewalTest, ANewAuthorityIsTrustedFromTheNextConnectionOn) {
  const TestAuthority next;
  const auto open = TlsChannel(world_.address(), authority_.Client({Role::kWorker}));
  EXPECT_THAT(CallOnce(open, kState), IsOk());
  WriteCredentials(next.Server(), folder_);
  EXPECT_THAT(CallWith(next.Client({Role::kWorker})), IsOk());
  EXPECT_THAT(CallWith(authority_.Client({Role::kWorker})), IsUnavailable());
  EXPECT_THAT(CallOnce(open, kState), IsOk());  // it lasts as long as its connection
}

TEST_F(RenewalTest, FilesThatAreNotReadyChangeNothing) {
  const Credentials worker = authority_.Client({Role::kWorker});
  std::filesystem::remove(files_.key);
  EXPECT_THAT(CallWith(worker), IsOk());
  Credentials half = authority_.Server();
  half.key = authority_.Server().key;
  WriteCredentials(half, folder_);
  EXPECT_THAT(CallWith(worker), IsOk());
}

TEST_F(RenewalTest, AWorkerComesBackWithItsNewCertificate) {
  const std::string worker_folder = folder_ + "/worker";
  GrpcConnectionOptions options;
  options.credentials =
      SourceOf(WriteCredentials(authority_.Client({Role::kWorker}), worker_folder));
  auto server = std::make_unique<TlsWorld>(SourceOf(files_));
  const uint16_t port = server->port();
  options.address = server->address();
  const auto worker = ConnectOverGrpc(options);
  ASSERT_THAT(worker, IsOk());
  ASSERT_THAT((*worker)->Join(WorkerRequest("a")), IsOk());
  server = nullptr;
  const TestAuthority next;
  WriteCredentials(next.Server(), folder_);
  WriteCredentials(next.Client({Role::kWorker}), worker_folder);
  server = std::make_unique<TlsWorld>(SourceOf(files_), RpcLimits(), port);
  EXPECT_THAT((*worker)->Reconnect(), IsOk());
  EXPECT_THAT((*worker)->Join(WorkerRequest("a")), IsOk());
}

TEST_F(RenewalTest, CertificatesAreReplacedUnderLoadWithoutAFailedCall) {
  const Credentials worker = authority_.Client({Role::kWorker});
  std::atomic<bool> done{false};
  std::atomic<int> failed{0}, calls{0}, connections{0};
  const auto count = [&](const absl::Status& status, std::atomic<int>& kind) {
    if (!status.ok()) ++failed;
    ++kind;
  };
  std::thread on_one_connection([&] {
    const auto channel = TlsChannel(world_.address(), worker);
    while (!done) count(CallOnce(channel, kState), calls);
  });
  std::thread on_new_connections([&] {
    while (!done) count(CallWith(worker), connections);
  });
  for (int i = 0; i < 50; ++i) {
    const int before = connections;
    WriteCredentials(authority_.Server(), folder_);
    while (connections < before + 2) std::this_thread::yield();
  }
  done = true;
  on_one_connection.join();
  on_new_connections.join();
  EXPECT_EQ(failed, 0) << "of " << calls << " calls and " << connections << " connections";
  EXPECT_GE(connections, 100);
}

}  // namespace
}  // namespace sluice
