// The participants of Sluice's rows: its own server and client, without LibTorch.

#ifndef SLUICE_TOOLS_BENCH_ROUNDS_SLUICE_SIDE_H_
#define SLUICE_TOOLS_BENCH_ROUNDS_SLUICE_SIDE_H_

#include <cstdint>

#include "absl/status/status.h"
#include "tools/bench/harness/endpoint.h"
#include "tools/bench/harness/participant.h"

namespace sluice::bench {

struct SluiceOptions {
  uint32_t threads = 1;        // for the server's arithmetic
  bool shared_memory = false;  // for gradients and parameters; the calls go through the socket
  bool tls = false;            // over TCP, with certificates of the cell
};

// Serves a sync job of `participant.workers` workers until they have left.
absl::Status RunSluiceServer(const Participant& participant, SocketKind socket,
                             const SluiceOptions& options);

// Pushes a synthetic gradient and pulls the parameters in each round. At the end it returns an
// error unless the parameters are what SGD makes of these gradients.
absl::Status RunSluiceWorker(const Participant& participant, const SluiceOptions& options);

}  // namespace sluice::bench

#endif  // SLUICE_TOOLS_BENCH_ROUNDS_SLUICE_SIDE_H_
