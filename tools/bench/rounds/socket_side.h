// The participants of the plain rows: they send the same bytes both ways through blocking sockets,
// with one connection per worker, in pieces of at most 1 MiB. There is no protocol and, without
// `sgd`, no arithmetic. So nothing moves the bytes through that kind of socket with less work.

#ifndef SLUICE_TOOLS_BENCH_ROUNDS_SOCKET_SIDE_H_
#define SLUICE_TOOLS_BENCH_ROUNDS_SOCKET_SIDE_H_

#include <string>

#include "absl/status/status.h"
#include "tools/bench/harness/endpoint.h"
#include "tools/bench/harness/participant.h"

namespace sluice::bench {

struct SocketOptions {
  SocketKind socket = SocketKind::kUnix;
  std::string congestion;  // for TCP, for example "cubic"; empty: the kernel's default
  bool sgd = false;        // the server applies a step of SGD and sends the parameters back
};

// Receives each worker's vector with one thread per worker. Without `sgd` the thread sends it back.
// With `sgd` it waits for the vectors of all workers and sends the parameters.
absl::Status RunSocketServer(const Participant& participant, const SocketOptions& options);

// Sends a vector and receives as many bytes in each round. At the end it returns an error unless
// the bytes are the same or, with `sgd`, those that SGD makes.
absl::Status RunSocketWorker(const Participant& participant, const SocketOptions& options);

// Returns an error if this user may not choose that congestion control.
absl::Status ProbeCongestion(const std::string& algorithm);

}  // namespace sluice::bench

#endif  // SLUICE_TOOLS_BENCH_ROUNDS_SOCKET_SIDE_H_
