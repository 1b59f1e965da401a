// The ParameterServer service with raw messages, which the leader and the replicas implement: all
// calls get their messages as bytes.

#ifndef SLUICE_SERVER_RPC_RAW_CALLS_H_
#define SLUICE_SERVER_RPC_RAW_CALLS_H_

#include <grpcpp/grpcpp.h>

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

}  // namespace sluice

#endif  // SLUICE_SERVER_RPC_RAW_CALLS_H_
