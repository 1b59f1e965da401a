// The side to compare with: the same bytes there and back through plain blocking sockets, one
// connection for each worker, in pieces of at most 1 MiB. No protocol, and unless asked for no
// arithmetic: nothing that moves the bytes through the same kind of socket does less.

#ifndef SLUICE_TOOLS_BENCH_ROUNDS_SOCKET_SIDE_H_
#define SLUICE_TOOLS_BENCH_ROUNDS_SOCKET_SIDE_H_

#include <string>

#include "absl/status/status.h"
#include "tools/bench/harness/endpoint.h"
#include "tools/bench/harness/participant.h"

namespace sluice::bench {

struct SocketOptions {
  SocketKind socket = SocketKind::kUnix;
  std::string congestion;  // of TCP: "cubic"; empty: the kernel's default
  bool sgd = false;        // the server takes a step of SGD and sends the parameters back
};

// Receives each worker's whole vector with a thread for each worker. Then it sends it back, or,
// with SGD, waits for the other workers' too and sends the parameters.
absl::Status RunSocketServer(const Participant& participant, const SocketOptions& options);

// Sends a vector and receives as many bytes. At the end it checks that they are the same, or those
// that SGD makes.
absl::Status RunSocketWorker(const Participant& participant, const SocketOptions& options);

// Whether this user may choose that congestion control.
absl::Status ProbeCongestion(const std::string& algorithm);

}  // namespace sluice::bench

#endif  // SLUICE_TOOLS_BENCH_ROUNDS_SOCKET_SIDE_H_
