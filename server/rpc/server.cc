#include "server/rpc/server.h"

#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/server_posix.h>

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/net/bind_check.h"
#include "common/wire/grpc_runtime.h"
#include "server/rpc/access/tls.h"
#include "server/rpc/access/unix_listener.h"
#include "server/rpc/operator/admin.h"
#include "server/rpc/operator/health.h"
#include "server/rpc/operator/inspector.h"
#include "server/rpc/operator/reflection.h"
#include "server/rpc/operator/watch_stream.h"
#include "server/rpc/parameter_service.h"
#include "sluice/v1/admin.grpc.pb.h"
#include "sluice/v1/inspector.grpc.pb.h"
#include "sluice/v1/parameter_server.grpc.pb.h"

namespace sluice {
namespace {

// What reflection lists.
std::vector<std::string> ServiceNames() {
  return {v1::ParameterServer::service_full_name(), v1::Admin::service_full_name(),
          v1::Inspector::service_full_name(),       "grpc.health.v1.Health",
          "grpc.reflection.v1.ServerReflection",    "grpc.reflection.v1alpha.ServerReflection"};
}

class GrpcServerOnAddress final : public GrpcServer {
 public:
  GrpcServerOnAddress(std::unique_ptr<OpenWatches> watches,
                      std::vector<std::unique_ptr<grpc::Service>> services)
      : watches_(std::move(watches)), services_(std::move(services)) {}

  absl::Status Start(const GrpcServerOptions& options) {
    KeepGrpcRunning();
    grpc::reflection::InitProtoReflectionServerBuilderPlugin();
    grpc::ServerBuilder builder;
    SetLimits(options.limits, builder);
    // Otherwise two servers could share a port, each with half of the workers.
    builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
    // A worker that is stopped, or whose node is gone, answers no ping. Then its streams end and
    // its lease begins.
    builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, 10000);
    builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 10000);
    builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 5000);
    for (const auto& service : services_) builder.RegisterService(service.get());
    address_ = options.address;
    return address_.is_unix() ? StartOnUnix(builder) : StartOnTcp(options.credentials, builder);
  }

  const Address& address() const override { return address_; }

  void Shutdown(absl::Duration grace) override {
    unix_listener_ = nullptr;
    watches_->EndAll();
    server_->Shutdown(absl::ToChronoTime(absl::Now() + grace));
    server_->Wait();
  }

 private:
  static void SetLimits(const RpcLimits& limits, grpc::ServerBuilder& builder) {
    builder.SetMaxReceiveMessageSize(RpcLimits::kMessageBytes);
    builder.AddChannelArgument(GRPC_ARG_MAX_METADATA_SIZE, RpcLimits::kMetadataBytes);
    builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, limits.streams);
    builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS,
                               static_cast<int>(absl::ToInt64Milliseconds(limits.handshake)));
    // gRPC unpacks a message before it looks at the message's size.
    builder.SetCompressionAlgorithmSupportStatus(GRPC_COMPRESS_GZIP, false);
    builder.SetCompressionAlgorithmSupportStatus(GRPC_COMPRESS_DEFLATE, false);
  }

  absl::Status CannotListen(absl::string_view why) const {
    return absl::UnavailableError(
        absl::StrCat("cannot listen on ", address_.ToString(), ": ", why));
  }

  absl::Status StartOnTcp(const CredentialsSource& source, grpc::ServerBuilder& builder) {
    if (source != nullptr) {
      const auto first = source();
      if (!first.ok()) return first.status();
      credentials_ = MakeTlsServerCredentials(source);
    } else {
      credentials_ = grpc::InsecureServerCredentials();
    }
    int port = 0;
    builder.AddListeningPort(address_.ToString(), credentials_, &port);
    server_ = builder.BuildAndStart();
    if (server_ == nullptr) return CannotListen(WhyNotBindable(address_));
    address_.port = static_cast<uint16_t>(port);
    return absl::OkStatus();
  }

  absl::Status StartOnUnix(grpc::ServerBuilder& builder) {
    server_ = builder.BuildAndStart();
    if (server_ == nullptr) return CannotListen("gRPC does not start");
    auto listener = UnixListener::Start(address_.unix_path, [this](FileDescriptor connection) {
      grpc::AddInsecureChannelFromFd(server_.get(), connection.Release());
    });
    if (!listener.ok()) return CannotListen(listener.status().message());
    unix_listener_ = *std::move(listener);
    return absl::OkStatus();
  }

  const std::unique_ptr<OpenWatches> watches_;
  const std::vector<std::unique_ptr<grpc::Service>> services_;
  std::shared_ptr<grpc::ServerCredentials> credentials_;  // null on a unix socket
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<UnixListener> unix_listener_;  // null on TCP
  Address address_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<GrpcServer>> StartGrpcServer(const GrpcServerOptions& options,
                                                            Shard& shard,
                                                            DurableDirectory* durable) {
  auto watches = std::make_unique<OpenWatches>();
  std::vector<std::unique_ptr<grpc::Service>> services;
  services.push_back(MakeGrpcParameterService(options.token, options.transforms, shard));
  services.push_back(MakeGrpcAdmin(options.token, shard, durable));
  services.push_back(MakeGrpcInspector(shard, *watches));
  services.push_back(MakeGrpcHealth(shard, *watches));
  services.push_back(MakeGrpcReflection(ServiceNames()));
  auto server = std::make_unique<GrpcServerOnAddress>(std::move(watches), std::move(services));
  const absl::Status started = server->Start(options);
  if (!started.ok()) return started;
  return std::unique_ptr<GrpcServer>(std::move(server));
}

}  // namespace sluice
