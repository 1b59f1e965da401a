// Sets the options of the TCP sockets that gRPC opens to a server on this machine.

#ifndef SLUICE_WORKER_CONNECTION_GRPC_LOCAL_SOCKETS_H_
#define SLUICE_WORKER_CONNECTION_GRPC_LOCAL_SOCKETS_H_

#include <grpcpp/support/channel_arguments.h>

namespace sluice {

// The sockets of a channel with these arguments send without pacing (common/net/local_tcp.h). Call
// it only for channels to loopback addresses.
void SendWithoutPacing(grpc::ChannelArguments& arguments);

}  // namespace sluice

#endif  // SLUICE_WORKER_CONNECTION_GRPC_LOCAL_SOCKETS_H_
