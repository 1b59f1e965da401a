// A worker of a crowd that pushes and pulls: a real client of a real server.

#ifndef SLUICE_TOOLS_BENCH_CROWDS_SLUICE_WORKER_H_
#define SLUICE_TOOLS_BENCH_CROWDS_SLUICE_WORKER_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/protocol/protocol_types.h"
#include "common/tensor/shared_floats.h"
#include "tools/bench/crowds/crowd_worker.h"
#include "worker/client/parameter_client.h"

namespace sluice::bench {

class SluiceWorker final : public CrowdWorker {
 public:
  // Connects the worker of that index. `gradient` is pushed in each round.
  static absl::StatusOr<std::unique_ptr<CrowdWorker>> Connect(const CrowdOptions& options,
                                                              uint32_t index,
                                                              const SharedFloats& gradient);

  absl::Status Join() override;

 private:
  SluiceWorker(const CrowdOptions& options, SharedFloats gradient, JoinRequest request,
               std::unique_ptr<ServerConnection> connection);

  absl::StatusOr<Disposition> DoRound() override;
  absl::Status Leave() override { return client_.Leave({}); }

  SharedFloats gradient_;
  const JoinRequest request_;
  std::vector<float> parameters_;
  ParameterClient client_;
};

}  // namespace sluice::bench

#endif  // SLUICE_TOOLS_BENCH_CROWDS_SLUICE_WORKER_H_
