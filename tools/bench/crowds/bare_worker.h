// A worker of a crowd whose rounds are calls of gRPC without Sluice.

#ifndef SLUICE_TOOLS_BENCH_CROWDS_BARE_WORKER_H_
#define SLUICE_TOOLS_BENCH_CROWDS_BARE_WORKER_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "tools/bench/bare/bare_client.h"
#include "tools/bench/crowds/crowd_worker.h"

namespace sluice::bench {

class BareWorker final : public CrowdWorker {
 public:
  // Each call sends as many bytes as `gradient` has.
  BareWorker(const CrowdOptions& options, absl::Span<const float> gradient)
      : CrowdWorker(options.compute), client_(options.address, gradient) {}

  absl::Status Join() override { return client_.Echo(); }

 private:
  absl::StatusOr<Disposition> DoRound() override {
    const absl::Status answered = client_.Echo();
    if (!answered.ok()) return answered;
    return Disposition::kAccepted;
  }

  absl::Status Leave() override { return client_.Leave(); }

  BareClient client_;
};

}  // namespace sluice::bench

#endif  // SLUICE_TOOLS_BENCH_CROWDS_BARE_WORKER_H_
