#include "server/rpc/access/checked_service.h"

#include <glog/logging.h>
#include <grpc/byte_buffer.h>
#include <grpc/grpc.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/impl/rpc_service_method.h>
#include <grpcpp/support/server_callback.h>

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/error.h"
#include "common/wire/refused_stream.h"
#include "server/rpc/access/method_roles.h"

namespace sluice {
namespace {

using google::protobuf::MethodDescriptor;
using google::protobuf::ServiceDescriptor;
using grpc::internal::MethodHandler;

// Ends a call of any kind, whose request was not received or is dropped.
void Refuse(const MethodHandler::HandlerParameter& call, const absl::Status& why) {
  using Bytes = grpc::ByteBuffer;
  using Reactor = grpc::ServerBidiReactor<Bytes, Bytes>;
  grpc::internal::CallbackBidiHandler<Bytes, Bytes> refusal(
      [&why](grpc::CallbackServerContext*) -> Reactor* { return new RefusedStream<Reactor>(why); });
  refusal.RunHandler(call);
}

// Receives the one request of a call, then hands both to the call's handler. Deletes itself.
class RequestArrival final : public grpc_completion_queue_functor {
 public:
  RequestArrival(const MethodHandler::HandlerParameter& call, MethodHandler& handler)
      : call_(call), handler_(handler) {
    functor_run = &Run;
    inlineable = true;  // as gRPC's own step from a new call to its handler
  }

  void Start() {
    grpc_op receive = {};
    receive.op = GRPC_OP_RECV_MESSAGE;
    receive.data.recv_message.recv_message = &request_;
    CHECK_EQ(grpc_call_start_batch(call_.call->call(), &receive, 1, this, nullptr), GRPC_CALL_OK);
  }

 private:
  static void Run(grpc_completion_queue_functor* self, int /*ok*/) {
    const std::unique_ptr<RequestArrival> arrival(static_cast<RequestArrival*>(self));
    arrival->GoOn();
  }

  void GoOn() {
    if (request_ == nullptr) {
      Refuse(call_, MakeError(Reason::kBadArgument, "the call ended without a request; send one"));
      return;
    }
    grpc::Status status;
    void* data = nullptr;
    void* const request = handler_.Deserialize(call_.call->call(), request_, &status, &data);
    handler_.RunHandler(MethodHandler::HandlerParameter(call_.call, call_.server_context, request,
                                                        status, data, call_.call_requester));
  }

  const MethodHandler::HandlerParameter call_;
  MethodHandler& handler_;
  grpc_byte_buffer* request_ = nullptr;  // Deserialize() takes it
};

class CheckedHandler final : public MethodHandler {
 public:
  CheckedHandler(std::string path, const MethodDescriptor& method, RoleCheck roles,
                 absl::Status refusal, MethodHandler& handler)
      : path_(std::move(path)),
        may_call_(RolesThatMayCall(path_)),
        roles_(roles),
        refusal_(std::move(refusal)),
        takes_one_request_(!method.client_streaming()),
        handler_(handler) {}

  const char* path() const { return path_.c_str(); }

  void RunHandler(const HandlerParameter& call) override {
    absl::Status allowed = CheckCall(*call.server_context, path_, may_call_, roles_);
    if (allowed.ok()) allowed = refusal_;
    if (!allowed.ok()) {
      Refuse(call, allowed);
    } else if (takes_one_request_) {
      (new RequestArrival(call, handler_))->Start();
    } else {
      handler_.RunHandler(call);
    }
  }

 private:
  const std::string path_;
  const Roles may_call_;
  const RoleCheck roles_;
  const absl::Status refusal_;
  const bool takes_one_request_;
  MethodHandler& handler_;  // of the service that is checked
};

// To gRPC all methods are streams in both directions, since it hands over a call of another kind
// only when its request has arrived.
class CheckedService final : public grpc::Service {
 public:
  CheckedService(grpc::Service& inner, const ServiceDescriptor& described, RoleCheck roles,
                 const absl::Status& refusal, absl::string_view served) {
    for (int i = 0; i < described.method_count(); ++i) {
      const MethodDescriptor& method = *described.method(i);
      auto handler = std::make_unique<CheckedHandler>(
          absl::StrCat("/", described.full_name(), "/", method.name()), method, roles,
          method.name() == served ? absl::OkStatus() : refusal, HandlerOf(inner, i));
      AddMethod(new grpc::internal::RpcServiceMethod(
          handler->path(), grpc::internal::RpcMethod::BIDI_STREAMING, nullptr));
      MarkMethodCallback(i, handler.release());
    }
  }

 private:
  static MethodHandler& HandlerOf(grpc::Service& service, int method) {
    MethodHandler* const handler = (service.*&CheckedService::GetHandler)(method);
    CHECK(handler != nullptr);
    return *handler;
  }
};

class UnknownMethods final : public grpc::CallbackGenericService {
 public:
  explicit UnknownMethods(RoleCheck roles) : roles_(roles) {}

  grpc::ServerGenericBidiReactor* CreateReactor(
      grpc::GenericCallbackServerContext* context) override {
    const std::string& method = context->method();
    absl::Status why = CheckCall(*context, method, RolesThatMayCall(method), roles_);
    if (why.ok()) why = NoSuchMethod(method);
    return new RefusedStream<grpc::ServerGenericBidiReactor>(why);
  }

 private:
  const RoleCheck roles_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeCheckedService(grpc::Service& inner,
                                                  const ServiceDescriptor& described,
                                                  RoleCheck roles, const absl::Status& refusal,
                                                  absl::string_view served) {
  return std::make_unique<CheckedService>(inner, described, roles, refusal, served);
}

std::unique_ptr<grpc::CallbackGenericService> MakeUnknownMethods(RoleCheck roles) {
  return std::make_unique<UnknownMethods>(roles);
}

}  // namespace sluice
