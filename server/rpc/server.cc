#include "server/rpc/server.h"

#include <glog/logging.h>
#include <google/protobuf/descriptor.h>
#include <grpcpp/grpcpp.h>

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/error.h"
#include "common/net/listening_sockets.h"
#include "common/wire/deadline.h"
#include "common/wire/grpc_runtime.h"
#include "server/rpc/access/checked_service.h"
#include "server/rpc/access/tls.h"
#include "server/rpc/listening/acceptor.h"
#include "server/rpc/listening/call_counter.h"
#include "server/rpc/listening/open_files.h"
#include "server/rpc/model_services.h"
#include "server/rpc/operator/get_row.h"
#include "server/rpc/operator/health.h"
#include "server/rpc/operator/open_watches.h"
#include "server/rpc/operator/public_descriptors.h"
#include "server/rpc/operator/reflection.h"
#include "server/rpc/parameter_service.h"
#include "sluice/v1/admin.grpc.pb.h"
#include "sluice/v1/inspector.grpc.pb.h"
#include "sluice/v1/parameter_server.grpc.pb.h"
#include "sluice/v1/sequencer.grpc.pb.h"

namespace sluice {
namespace {

constexpr char kHealth[] = "grpc.health.v1.Health";

// The services of a gRPC server.
class Services {
 public:
  // For callers that present the token, unless it is empty.
  template <typename Generated>
  void Add(std::unique_ptr<grpc::Service> service, std::string token) {
    Add(Generated::service_full_name(), std::move(service)).check.token = std::move(token);
  }
  // For all.
  ServiceRules& Add(std::string name, std::unique_ptr<grpc::Service> service) {
    services_.push_back({std::move(name), std::move(service), {}});
    return services_.back().rules;
  }
  // For all. Of this service only the method `served` is served; calls of all others end with
  // `refusal`.
  template <typename Generated>
  void AddPart(std::unique_ptr<grpc::Service> service, const absl::Status& refusal,
               const std::string& served) {
    ServiceRules& rules = Add(Generated::service_full_name(), std::move(service));
    rules.refusal = refusal;
    rules.served = served;
  }
  // Those of the model without a name, which lead to those of the others. The token is for
  // ParameterServer and Admin.
  void AddModels(const ModelServiceOptions& options, const ModelParts& unnamed,
                 const std::string& token) {
    const auto named = std::make_shared<NamedServices>(options);
    for (auto& [name, service] : MakeModelServices(options, unnamed)) {
      ServiceRules& rules = Add(name, std::move(service));
      if (name != v1::Inspector::service_full_name()) rules.check.token = token;
      rules.find = [named, name = name](const grpc::ServerContextBase& context, bool joins) {
        return named->Find(context, name, joins);
      };
    }
  }

  // The last to be added. Describes all.
  void AddReflection() {
    constexpr char kV1[] = "grpc.reflection.v1.ServerReflection";
    constexpr char kV1Alpha[] = "grpc.reflection.v1alpha.ServerReflection";
    std::vector<std::string> names = {kV1, kV1Alpha};
    for (const Named& one : services_) names.push_back(one.name);
    auto versions = MakeGrpcReflection(names);
    Add(kV1, std::move(versions[0]));
    Add(kV1Alpha, std::move(versions[1]));
  }

  void Register(RoleCheck roles, absl::Duration request, grpc::ServerBuilder& builder) {
    PublicDescriptors descriptors;
    const google::protobuf::DescriptorPool pool(&descriptors);
    for (Named& one : services_) {
      const auto* const described = pool.FindServiceByName(one.name);
      CHECK(described != nullptr) << one.name;
      one.rules.check.roles = roles;
      one.rules.request = request;
      checked_.push_back(MakeCheckedService(*one.service, *described, one.rules));
      builder.RegisterService(checked_.back().get());
    }
    unknown_ = MakeUnknownMethods(roles);
    builder.RegisterCallbackGenericService(unknown_.get());
  }

 private:
  struct Named {
    std::string name;
    std::unique_ptr<grpc::Service> service;
    ServiceRules rules;
  };

  std::vector<Named> services_;
  std::vector<std::unique_ptr<grpc::Service>> checked_;
  std::unique_ptr<grpc::CallbackGenericService> unknown_;
};

// The time in which a peer has to answer: with an acknowledgement in TCP, or to a ping of gRPC.
constexpr absl::Duration kPeerTimeout = absl::Seconds(10);

int Milliseconds(absl::Duration duration) {
  return static_cast<int>(absl::ToInt64Milliseconds(duration));
}

class GrpcServerOnAddress final : public GrpcServer {
 public:
  GrpcServerOnAddress(std::unique_ptr<OpenWatches> watches, Services services)
      : watches_(std::move(watches)), services_(std::move(services)) {}

  absl::Status Start(const GrpcServerOptions& options) {
    KeepGrpcRunning();
    if (UsesTls(options)) {
      const auto first = options.credentials();
      if (!first.ok()) return first.status();
    }
    auto listening = ListeningSockets::Open(options.address, kPeerTimeout);
    if (!listening.ok()) return CannotListen(options.address, listening.status().message());
    grpc::ServerBuilder builder;
    SetLimits(options.limits, builder);
    BoundReadAhead(options.workers, builder);
    // A worker that is stopped, or whose node is gone, answers no ping. Then its streams end and
    // its lease begins.
    builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, Milliseconds(kPeerTimeout));
    builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, Milliseconds(kPeerTimeout));
    builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 5000);
    builder.SetContextAllocator(std::make_unique<CountedContexts>(calls_));
    services_.Register(UsesTls(options) ? RoleCheck::kOn : RoleCheck::kOff, options.limits.request,
                       builder);
    return Serve(*std::move(listening), options, builder);
  }

  const Address& address() const override { return address_; }

  void Shutdown(absl::Duration grace) override {
    acceptor_ = nullptr;
    watches_->EndAll();
    server_->Shutdown(DeadlineAfter(grace));
    server_->Wait();
  }

 private:
  static void SetLimits(const RpcLimits& limits, grpc::ServerBuilder& builder) {
    builder.SetMaxReceiveMessageSize(RpcLimits::kMessageBytes);
    builder.AddChannelArgument(GRPC_ARG_MAX_METADATA_SIZE, RpcLimits::kMetadataBytes);
    builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, limits.streams);
    builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS,
                               Milliseconds(limits.handshake));
    builder.AddChannelArgument(GRPC_ARG_ENABLE_CHANNELZ, 1);  // the acceptor reads its numbers
    // gRPC unpacks a message before it looks at the message's size.
    builder.SetCompressionAlgorithmSupportStatus(GRPC_COMPRESS_GZIP, false);
    builder.SetCompressionAlgorithmSupportStatus(GRPC_COMPRESS_DEFLATE, false);
  }

  // The peer may send what the window allows before the server reads. gRPC opens it to 4 MiB as
  // long as it probes how much the connection carries.
  static void BoundReadAhead(uint32_t workers, grpc::ServerBuilder& builder) {
    builder.AddChannelArgument(GRPC_ARG_TCP_MAX_READ_CHUNK_SIZE, kReadBlockBytes);
    const absl::optional<int> bytes = ReadAheadBytes(workers);
    if (!bytes.has_value()) return;
    builder.AddChannelArgument(GRPC_ARG_HTTP2_BDP_PROBE, 0);
    builder.AddChannelArgument(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, *bytes);
  }

  static bool UsesTls(const GrpcServerOptions& options) {
    return options.credentials != nullptr && !options.address.is_unix();
  }

  static absl::Status CannotListen(const Address& address, absl::string_view why) {
    return absl::UnavailableError(absl::StrCat("cannot listen on ", address.ToString(), ": ", why));
  }

  absl::Status Serve(ListeningSockets listening, const GrpcServerOptions& options,
                     grpc::ServerBuilder& builder) {
    address_ = listening.address();
    credentials_ = UsesTls(options) ? MakeTlsServerCredentials(options.credentials)
                                    : grpc::InsecureServerCredentials();
    connected_ = builder.experimental().AddExternalConnectionAcceptor(
        grpc::ServerBuilder::experimental_type::ExternalConnectionType::FROM_FD, credentials_);
    server_ = builder.BuildAndStart();
    if (server_ == nullptr) return CannotListen(address_, "gRPC does not start");
    AcceptorOptions acceptor;
    acceptor.limits = LimitsOn(options.limits);
    acceptor.serve = [this](FileDescriptor accepted) { HandOver(std::move(accepted)); };
    acceptor.grpc_server = LatestGrpcServer();
    auto started = Acceptor::Start(std::move(listening), std::move(acceptor), calls_);
    if (!started.ok()) return CannotListen(address_, started.status().message());
    acceptor_ = *std::move(started);
    return absl::OkStatus();
  }

  static ConnectionLimits LimitsOn(const RpcLimits& limits) {
    ConnectionLimits connections;
    const int in_all = ConnectionsThatFit(limits, OpenFilesLimit().now);
    const int of_one = limits.connections_of_one_address;
    connections.in_all = static_cast<size_t>(in_all);
    connections.of_one_address = static_cast<size_t>(of_one > 0 ? of_one : in_all / 2);
    connections.calls.open = 4 * int64_t{limits.streams};
    connections.calls.first_call = 2 * limits.handshake;
    return connections;
  }

  void HandOver(FileDescriptor accepted) {
    grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters connection;
    connection.fd = accepted.Release();
    connected_->HandleNewConnection(&connection);
  }

  const std::unique_ptr<OpenWatches> watches_;
  Services services_;
  CallCounter calls_;
  std::shared_ptr<grpc::ServerCredentials> credentials_;
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> connected_;  // takes descriptors
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<Acceptor> acceptor_;
  Address address_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<GrpcServer>> StartGrpcServer(const GrpcServerOptions& options,
                                                            const ModelParts& model,
                                                            ReplicaLinks* replicas) {
  Shard& shard = *model.shard;
  auto watches = std::make_unique<OpenWatches>();
  ModelServiceOptions of_models = {options.transforms, options.limits.request, watches.get(),
                                   options.named};
  of_models.log = options.log;
  Services services;
  if (replicas != nullptr) {
    of_models.servers = [replicas] { return replicas->Addresses(); };
    services.Add<v1::Sequencer>(MakeGrpcSequencer(*replicas), options.token);
  }
  services.AddModels(of_models, model, options.token);
  const auto drains = [&shard] { return shard.Describe().phase == Phase::kDraining; };
  services.Add(kHealth, MakeGrpcHealth(drains, *watches));
  services.AddReflection();
  auto server = std::make_unique<GrpcServerOnAddress>(std::move(watches), std::move(services));
  const absl::Status started = server->Start(options);
  if (!started.ok()) return started;
  if (replicas != nullptr) {
    replicas->SetAddress(AdvertisedAs(server->address(), options.advertised_host).ToString());
  }
  return std::unique_ptr<GrpcServer>(std::move(server));
}

absl::StatusOr<std::unique_ptr<GrpcServer>> StartStripeServer(const GrpcServerOptions& options,
                                                              const std::string& first_server,
                                                              Replica& replica) {
  auto watches = std::make_unique<OpenWatches>();
  Services services;
  services.Add<v1::ParameterServer>(
      MakeGrpcStripeService(options.transforms, first_server, replica), options.token);
  const absl::Status elsewhere = MakeError(
      Reason::kNotFirstServer,
      absl::StrCat(
          "this server is not the first one of its job, which has its state; call that, at ",
          first_server));
  services.AddPart<v1::Inspector>(
      MakeGrpcRowInspector([&replica] { return replica.stripe().rows(); }), elsewhere, "GetRow");
  services.AddPart<v1::Admin>(std::make_unique<v1::Admin::CallbackService>(), elsewhere, "");
  services.Add(kHealth, MakeGrpcHealth([] { return false; }, *watches));
  services.AddReflection();
  auto server = std::make_unique<GrpcServerOnAddress>(std::move(watches), std::move(services));
  const absl::Status started = server->Start(options);
  if (!started.ok()) return started;
  return std::unique_ptr<GrpcServer>(std::move(server));
}

}  // namespace sluice
