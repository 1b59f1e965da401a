// The ParameterServer service with raw messages, which the first server and those that hold a
// stripe implement: all calls get their messages as bytes, and decode them once the caller's token
// was checked.

#ifndef SLUICE_SERVER_RPC_RAW_CALLS_H_
#define SLUICE_SERVER_RPC_RAW_CALLS_H_

#include <grpcpp/grpcpp.h>

#include <string>
#include <type_traits>

#include "absl/status/status.h"
#include "common/wire/caller.h"
#include "common/wire/refused_stream.h"
#include "sluice/v1/parameter_server.grpc.pb.h"

namespace sluice {

template <typename Base>
using RawTensorCalls = v1::ParameterServer::WithRawCallbackMethod_InitializeParams<
    v1::ParameterServer::WithRawCallbackMethod_PushGradients<
        v1::ParameterServer::WithRawCallbackMethod_PullParams<
            v1::ParameterServer::WithRawCallbackMethod_PushPull<
                v1::ParameterServer::WithRawCallbackMethod_PullRows<
                    v1::ParameterServer::WithRawCallbackMethod_PushLane<
                        v1::ParameterServer::WithRawCallbackMethod_PullLane<Base>>>>>>>;
using RawParameterServer = RawTensorCalls<v1::ParameterServer::WithRawCallbackMethod_Join<
    v1::ParameterServer::WithRawCallbackMethod_JoinInParts<
        v1::ParameterServer::WithRawCallbackMethod_OfferConstants<
            v1::ParameterServer::WithRawCallbackMethod_PullConstants<
                v1::ParameterServer::WithRawCallbackMethod_Heartbeat<
                    v1::ParameterServer::WithRawCallbackMethod_Leave<
                        v1::ParameterServer::Service>>>>>>>;

// Returns the reactor that `serve` makes, or one that refuses a caller without `token`.
template <typename Serve>
auto ServeIfAllowed(const grpc::CallbackServerContext& context, const std::string& token,
                    Serve serve) -> decltype(serve()) {
  const absl::Status allowed = CheckToken(context, token);
  if (allowed.ok()) return serve();
  return new RefusedStream<std::remove_pointer_t<decltype(serve())>>(allowed);
}

}  // namespace sluice

#endif  // SLUICE_SERVER_RPC_RAW_CALLS_H_
