// Keeps the threads of the gRPC library alive until the process ends.

#ifndef SLUICE_COMMON_WIRE_GRPC_RUNTIME_H_
#define SLUICE_COMMON_WIRE_GRPC_RUNTIME_H_

namespace sluice {

// Call this before the process makes a channel or a server; any thread may call it, any number of
// times. Without it, gRPC shuts down when the last channel or server goes away, and then waits for
// a thread that may still poll for 10 s after large writes (seen with 1.51.1). The process would
// exit that much later.
void KeepGrpcRunning();

// The most bytes that gRPC allocates at once to read from a connection of a server. A gradient that
// is held keeps such blocks, and each connection keeps the rest of the last one.
constexpr int kReadBlockBytes = 64 << 10;

// Lets gRPC allocate one block before it reads from a connection. Otherwise (1.51.1) it allocates
// twice as many bytes as the peer has sent at once, some MB for each connection, and keeps what is
// not filled for the next message. Mains of servers call this before they start threads: it changes
// the environment variable GRPC_EXPERIMENTS. It has no effect if that names "tcp_read_chunks".
void BoundReadBuffers();

}  // namespace sluice

#endif  // SLUICE_COMMON_WIRE_GRPC_RUNTIME_H_
