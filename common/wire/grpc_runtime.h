// gRPC's own threads, which live as long as the process.

#ifndef SLUICE_COMMON_WIRE_GRPC_RUNTIME_H_
#define SLUICE_COMMON_WIRE_GRPC_RUNTIME_H_

namespace sluice {

// Keeps gRPC from ending with its last channel or server: that end joins a thread which large
// writes may have left polling for 10 s (seen with 1.51.1), by which a process would exit late. To
// be called before either is made, any number of times, from any thread.
void KeepGrpcRunning();

}  // namespace sluice

#endif  // SLUICE_COMMON_WIRE_GRPC_RUNTIME_H_
