// Peers that mean harm, beside an honest worker that trains: nothing changes for it.

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/synchronization/blocking_counter.h"
#include "common/base/file_descriptor.h"
#include "common/encoding/checksum.h"
#include "common/encoding/codec.h"
#include "common/encoding/transforms/builtin_transforms.h"
#include "common/wire/encoding.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/bomb.h"
#include "tests/testing/outcome.h"
#include "tests/testing/server/certificates.h"
#include "tests/testing/server/generic_call.h"
#include "tests/testing/server/server_world.h"
#include "tests/testing/server/tls_world.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

using ::testing::_;
using ::testing::HasSubstr;

constexpr size_t kElements = 1000;
constexpr int kStreams = 16;  // of one connection

RpcLimits TightLimits() {
  RpcLimits limits;
  limits.streams = kStreams;
  limits.handshake = absl::Seconds(3);
  return limits;
}

// A worker "honest" trains 1000 parameters, which are 10 at first, with gradients of 1; after each
// test it makes ten steps more.
class HostilePeersTest : public ::testing::Test {
 protected:
  HostilePeersTest() {
    EXPECT_THAT(world_.Join("honest"), IsOk());
    EXPECT_THAT(world_.Initialize("honest", Values(kElements, 10)), IsOk());
  }

  void TearDown() override {
    const uint64_t end = step_ + 10;
    while (step_ < end) MakeStep(1);
    const auto pulled = world_.Pull("honest", end);
    ASSERT_THAT(pulled, IsOk());
    EXPECT_EQ(pulled->values, Values(kElements, 0));
  }

  void MakeStep(float gradient) {
    EXPECT_THAT(world_.Push("honest", step_, Values(kElements, gradient)), Applied(step_ + 1));
    ++step_;
  }

  // For a peer whose connection is not the honest worker's.
  std::unique_ptr<v1::ParameterServer::Stub> OnItsOwnConnection() const {
    grpc::ChannelArguments own;
    own.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    return v1::ParameterServer::NewStub(grpc::CreateCustomChannel(
        world_.address().ToString(), grpc::InsecureChannelCredentials(), own));
  }

  uint64_t step_ = 0;
  ServerWorld world_{Async(1), ParametersOnly(kElements), "", TightLimits()};
};

// ---- Connections ----

FileDescriptor ConnectTcp(uint16_t port) {
  FileDescriptor connection(socket(AF_INET, SOCK_STREAM, 0));
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(connect(connection.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  return connection;
}

// Reads until the other side closes; blocks until then.
void AwaitClose(const FileDescriptor& connection) {
  char bytes[4096];
  while (read(connection.get(), bytes, sizeof(bytes)) > 0) {
  }
}

TEST_F(HostilePeersTest, ConnectionsThatSayNothingAreClosed) {
  std::vector<FileDescriptor> silent;
  for (int i = 0; i < 200; ++i) silent.push_back(ConnectTcp(world_.address().port));
  EXPECT_THAT(world_.Heartbeat("honest"), IsOk());
  for (const FileDescriptor& connection : silent) AwaitClose(connection);
}

TEST_F(HostilePeersTest, AConnectionThatDribblesIsClosed) {
  const FileDescriptor slow = ConnectTcp(world_.address().port);
  ASSERT_EQ(write(slow.get(), "PRI * HTTP", 10), 10);
  AwaitClose(slow);
}

TEST(HostileTlsPeersTest, AHandshakeThatStallsIsGivenUp) {
  const TestAuthority authority;
  const TlsWorld world(SourceOf(authority.Server()), TightLimits());
  const FileDescriptor silent = ConnectTcp(world.port());
  const FileDescriptor slow = ConnectTcp(world.port());
  ASSERT_EQ(write(slow.get(), "\x16\x03\x01\x02\x00\x01", 6), 6);  // a ClientHello's beginning
  grpc::GenericStub stub(TlsChannel(world.address(), authority.Client({Role::kWorker})));
  GenericCall honest(stub, "/sluice.v1.Inspector/GetServerState");
  honest.Write("");
  EXPECT_TRUE(honest.Read().has_value());
  AwaitClose(silent);
  AwaitClose(slow);
}

// ---- Streams ----

// A push of which nothing is ever sent.
class IdlePush final : public grpc::ClientWriteReactor<v1::PushGradientsRequest> {
 public:
  IdlePush(v1::ParameterServer::Stub& stub, absl::BlockingCounter& ended) : ended_(ended) {
    stub.async()->PushGradients(&context_, &response_, this);
    StartCall();
  }
  void Cancel() { context_.TryCancel(); }
  void OnDone(const grpc::Status&) override { ended_.DecrementCount(); }

 private:
  absl::BlockingCounter& ended_;
  grpc::ClientContext context_;
  v1::PushGradientsResponse response_;
};

TEST_F(HostilePeersTest, AThousandIdleStreamsWaitForEachOther) {
  constexpr int kIdle = 1000;
  const auto stub = OnItsOwnConnection();
  absl::BlockingCounter ended(kIdle);
  std::vector<std::unique_ptr<IdlePush>> idle;
  for (int i = 0; i < kIdle; ++i) idle.push_back(std::make_unique<IdlePush>(*stub, ended));
  // Its connection is full, and no other is.
  v1::HeartbeatResponse response;
  const grpc::Status status =
      stub->Heartbeat(world_.Context(absl::Milliseconds(300)).get(), {}, &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  MakeStep(0);
  for (const auto& push : idle) push->Cancel();
  ended.Wait();
}

TEST_F(HostilePeersTest, APushThatStallsAfterItsHeaderHoldsNobodyUp) {
  ASSERT_THAT(world_.Join("slow"), IsOk());
  const auto stalled = world_.OpenPush();
  stalled->Write(HeaderOf(world_.NextHeader("slow", 0)));
  stalled->Write(GradientOf(0, Values(10, 1)));
  MakeStep(0);
  stalled->Cancel();
}

// ---- Messages ----

TEST_F(HostilePeersTest, ABombIsRefused) {
  const Values zeros(kElements, 0);
  const EncodedChunk honest =
      EncodeValues(0, zeros, *ParseEncoding("float32/zstd"), {}, BuiltinTransforms());
  v1::PushGradientsRequest bomb;
  *bomb.mutable_chunk()->mutable_encoding() = ToProto(honest.how);
  const std::string payload = Bomb();
  bomb.mutable_chunk()->set_payload(payload);
  bomb.mutable_chunk()->set_checksum(Checksum(payload));  // it is meant
  ASSERT_THAT(world_.Join("evil"), IsOk());
  EXPECT_THAT(world_.SendPush({HeaderOf(world_.NextHeader("evil", 0)), bomb}),
              HasCode(absl::StatusCode::kInvalidArgument, HasSubstr("268435456 bytes")));
}

TEST_F(HostilePeersTest, ALayoutThatLiesIsRefused) {
  v1::JoinRequest request = world_.RequestOf("evil");
  request.mutable_layout()->mutable_ranges(0)->set_length(uint64_t{1} << 40);
  EXPECT_THAT(world_.JoinAs(request), HasCode(absl::StatusCode::kInvalidArgument, _));
  request = world_.RequestOf("evil");
  request.mutable_layout()->mutable_ranges(0)->add_shape(uint32_t{1} << 31);
  EXPECT_THAT(world_.JoinAs(request), HasCode(absl::StatusCode::kInvalidArgument, _));
}

TEST_F(HostilePeersTest, MetadataWithoutEndAreRefused) {
  const auto stub = OnItsOwnConnection();
  const auto context = world_.Context();
  context->AddMetadata("x", std::string(12 << 10, 'x'));
  v1::HeartbeatResponse response;
  const grpc::Status status = stub->Heartbeat(context.get(), {}, &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
}

}  // namespace
}  // namespace sluice
