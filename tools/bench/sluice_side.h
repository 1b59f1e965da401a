// The side that is measured: Sluice's own server and client, without LibTorch.

#ifndef SLUICE_TOOLS_BENCH_SLUICE_SIDE_H_
#define SLUICE_TOOLS_BENCH_SLUICE_SIDE_H_

#include <cstdint>

#include "absl/status/status.h"
#include "tools/bench/endpoint.h"
#include "tools/bench/part.h"

namespace sluice::bench {

// Serves a sync job of part.workers workers until they have left; `threads` do the arithmetic.
absl::Status RunSluiceServer(const Part& part, SocketKind socket, uint32_t threads);

// A worker that pushes a synthetic gradient and pulls the parameters. At the end it checks that
// they are what SGD makes of as many gradients.
absl::Status RunSluiceWorker(const Part& part);

}  // namespace sluice::bench

#endif  // SLUICE_TOOLS_BENCH_SLUICE_SIDE_H_
