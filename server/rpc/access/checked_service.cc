#include "server/rpc/access/checked_service.h"

#include <glog/logging.h>
#include <grpc/byte_buffer.h>
#include <grpc/grpc.h>
#include <grpcpp/alarm.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/impl/rpc_service_method.h>
#include <grpcpp/support/server_callback.h>

#include <memory>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/base/error.h"
#include "common/wire/deadline.h"
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

// Receives the one request of a call, then hands both to the call's handler. A call whose request
// does not come in time ends: what gRPC holds of it is then free.
class RequestArrival final : public grpc_completion_queue_functor {
 public:
  RequestArrival(const MethodHandler::HandlerParameter& call, MethodHandler& handler)
      : call_(call), handler_(handler) {
    functor_run = &Run;
    inlineable = true;  // as gRPC's own step from a new call to its handler
  }

  static void Start(const MethodHandler::HandlerParameter& call, MethodHandler& handler,
                    absl::Duration most) {
    const auto arrival = std::make_shared<RequestArrival>(call, handler);
    arrival->self_ = arrival;
    grpc_op receive = {};
    receive.op = GRPC_OP_RECV_MESSAGE;
    receive.data.recv_message.recv_message = &arrival->request_;
    CHECK_EQ(grpc_call_start_batch(call.call->call(), &receive, 1, arrival.get(), nullptr),
             GRPC_CALL_OK);
    arrival->EndAfter(most, arrival);
  }

 private:
  static void Run(grpc_completion_queue_functor* functor, int /*ok*/) {
    auto* const arrival = static_cast<RequestArrival*>(functor);
    const std::shared_ptr<RequestArrival> self = std::move(arrival->self_);
    {
      absl::MutexLock lock(&self->mu_);
      self->ended_ = true;
      self->alarm_ = nullptr;
      if (self->late_) return grpc_byte_buffer_destroy(self->request_);
    }
    self->GoOn();
  }

  // Mostly the request has come with the call.
  void EndAfter(absl::Duration most, const std::shared_ptr<RequestArrival>& self) {
    absl::MutexLock lock(&mu_);
    if (ended_) return;
    alarm_ = std::make_unique<grpc::Alarm>();
    alarm_->Set(DeadlineAfter(most), [weak = std::weak_ptr<RequestArrival>(self), most](bool due) {
      const auto arrival = weak.lock();
      if (due && arrival != nullptr) arrival->EndLate(most);
    });
  }

  void EndLate(absl::Duration most) {
    {
      absl::MutexLock lock(&mu_);
      if (ended_) return;
      late_ = true;
    }
    Refuse(call_, absl::DeadlineExceededError(
                      absl::StrCat("the call's request has not come within ",
                                   absl::FormatDuration(most), "; send it with the call")));
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
  grpc_byte_buffer* request_ = nullptr;   // Deserialize() takes it
  std::shared_ptr<RequestArrival> self_;  // until gRPC has called Run()
  absl::Mutex mu_;
  bool ended_ ABSL_GUARDED_BY(mu_) = false;  // the wait for the request
  bool late_ ABSL_GUARDED_BY(mu_) = false;   // the call was refused before
  std::unique_ptr<grpc::Alarm> alarm_ ABSL_GUARDED_BY(mu_);
};

// gRPC lets only services look at the handlers of their methods.
class Handlers final : public grpc::Service {
 public:
  static MethodHandler& Of(grpc::Service& service, int method) {
    MethodHandler* const handler = (service.*&Handlers::GetHandler)(method);
    CHECK(handler != nullptr);
    return *handler;
  }
};

class CheckedHandler final : public MethodHandler {
 public:
  CheckedHandler(const MethodDescriptor& method, const ServiceRules& rules, grpc::Service& service)
      : path_(absl::StrCat("/", method.service()->full_name(), "/", method.name())),
        may_call_(RolesThatMayCall(path_)),
        check_(rules.check),
        request_(rules.request),
        refusal_(method.name() == rules.served ? absl::OkStatus() : rules.refusal),
        takes_one_request_(!method.client_streaming()),
        joins_(method.name() == "Join" || method.name() == "JoinInParts"),
        number_(method.index()),
        find_(rules.find),
        handler_(Handlers::Of(service, number_)) {}

  const char* path() const { return path_.c_str(); }

  void RunHandler(const HandlerParameter& call) override {
    absl::Status allowed = CheckCall(*call.server_context, path_, may_call_, check_);
    if (allowed.ok()) allowed = refusal_;
    if (!allowed.ok()) return Refuse(call, allowed);
    const absl::StatusOr<MethodHandler*> handler = HandlerOf(call);
    if (!handler.ok()) {
      Refuse(call, handler.status());
    } else if (takes_one_request_) {
      RequestArrival::Start(call, **handler, request_);
    } else {
      (*handler)->RunHandler(call);
    }
  }

 private:
  absl::StatusOr<MethodHandler*> HandlerOf(const HandlerParameter& call) const {
    if (find_ == nullptr) return &handler_;
    const absl::StatusOr<grpc::Service*> service = find_(*call.server_context, joins_);
    if (!service.ok()) return service.status();
    return *service == nullptr ? &handler_ : &Handlers::Of(**service, number_);
  }

  const std::string path_;
  const Roles may_call_;
  const CallerCheck check_;
  const absl::Duration request_;  // in which the one request must come
  const absl::Status refusal_;
  const bool takes_one_request_;
  const bool joins_;
  const int number_;  // of the method in its service
  const ServiceFinder find_;
  MethodHandler& handler_;  // of the service that is checked
};

// To gRPC all methods are streams in both directions, since it hands over a call of another kind
// only when its request has arrived.
class CheckedService final : public grpc::Service {
 public:
  CheckedService(grpc::Service& inner, const ServiceDescriptor& described,
                 const ServiceRules& rules) {
    for (int i = 0; i < described.method_count(); ++i) {
      auto handler = std::make_unique<CheckedHandler>(*described.method(i), rules, inner);
      AddMethod(new grpc::internal::RpcServiceMethod(
          handler->path(), grpc::internal::RpcMethod::BIDI_STREAMING, nullptr));
      MarkMethodCallback(i, handler.release());
    }
  }
};

class UnknownMethods final : public grpc::CallbackGenericService {
 public:
  explicit UnknownMethods(RoleCheck roles) : roles_(roles) {}

  grpc::ServerGenericBidiReactor* CreateReactor(
      grpc::GenericCallbackServerContext* context) override {
    const std::string& method = context->method();
    absl::Status why = CheckCall(*context, method, RolesThatMayCall(method), {roles_, ""});
    if (why.ok()) why = NoSuchMethod(method);
    return new RefusedStream<grpc::ServerGenericBidiReactor>(why);
  }

 private:
  const RoleCheck roles_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeCheckedService(grpc::Service& inner,
                                                  const ServiceDescriptor& described,
                                                  const ServiceRules& rules) {
  return std::make_unique<CheckedService>(inner, described, rules);
}

std::unique_ptr<grpc::CallbackGenericService> MakeUnknownMethods(RoleCheck roles) {
  return std::make_unique<UnknownMethods>(roles);
}

}  // namespace sluice
