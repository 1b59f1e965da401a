// Keeps the threads of the gRPC library alive until the process ends.

#ifndef SLUICE_COMMON_WIRE_GRPC_RUNTIME_H_
#define SLUICE_COMMON_WIRE_GRPC_RUNTIME_H_

namespace sluice {

// Call this before the process makes a channel or a server; any thread may call it, any number of
// times. Without it, gRPC shuts down when the last channel or server goes away, and then waits for
// a thread that may still poll for 10 s after large writes (seen with 1.51.1). The process would
// exit that much later.
void KeepGrpcRunning();

}  // namespace sluice

#endif  // SLUICE_COMMON_WIRE_GRPC_RUNTIME_H_
