// The side to compare with: the same bytes there and back through plain blocking sockets, one
// connection for each worker, in pieces of at most 1 MiB. No protocol, no arithmetic: nothing that
// moves the bytes through the same kind of socket does less.

#ifndef SLUICE_TOOLS_BENCH_SOCKET_SIDE_H_
#define SLUICE_TOOLS_BENCH_SOCKET_SIDE_H_

#include "absl/status/status.h"
#include "tools/bench/part.h"

namespace sluice::bench {

// Receives each worker's whole vector and sends it back, again and again, with a thread for each
// worker.
absl::Status RunSocketServer(const Part& part);

// Sends a vector and receives as many bytes. At the end it checks that they are the same.
absl::Status RunSocketWorker(const Part& part);

}  // namespace sluice::bench

#endif  // SLUICE_TOOLS_BENCH_SOCKET_SIDE_H_
