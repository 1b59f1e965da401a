// The tensors that somebody looks at: gathers the parts of all servers of a job, for the leader.

#ifndef SLUICE_SERVER_SHARD_TENSOR_SUMMARIES_H_
#define SLUICE_SERVER_SHARD_TENSOR_SUMMARIES_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/ids.h"
#include "server/replica/replica_commands.h"
#include "server/snapshots/striped_tensor.h"
#include "server/state/completions.h"

namespace sluice {

struct TensorSummary {
  Step step;
  TensorStatistics statistics;
  std::vector<float> values;  // that were asked for
};

// `parts` has the part of each server.
TensorSummary SummaryOf(const StripedTensor& tensor, Step step,
                        const std::vector<TensorPart>& parts);

using SummaryCallback = std::function<void(const absl::StatusOr<TensorSummary>&)>;

// Externally synchronized. Here, as in GatheredReports, the leader's own server is replica 0.
class TensorSummaries {
 public:
  static constexpr size_t kMost = 16;  // calls that wait

  // Begins to wait for so many replicas. Returns the number by which they name the tensor. `done`
  // is called once. RESOURCE_EXHAUSTED if kMost calls wait: then `done` is not called.
  absl::StatusOr<uint64_t> Begin(const StripedTensor& tensor, uint32_t replicas, Step step,
                                 SummaryCallback done);

  // The part has the sizes that the tensor has on that server. Nothing happens if nobody waits for
  // it. The completion computes what is computed over all parts.
  void Take(uint32_t replica, const SummaryReport& report, Completions* completions);

  // Ends all calls with `why`, an error.
  void Stop(const absl::Status& why, Completions* completions);

 private:
  struct Waiting {
    StripedTensor tensor;
    Step step;
    SummaryCallback done;
    std::vector<TensorPart> parts;
    std::set<uint32_t> missing;  // replicas
  };

  uint64_t latest_ = 0;
  std::map<uint64_t, Waiting> waiting_;
};

}  // namespace sluice

#endif  // SLUICE_SERVER_SHARD_TENSOR_SUMMARIES_H_
