// The tensors that somebody looks at, at the leader: gathers the parts of all replicas.

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

// `parts` has the part of each replica.
TensorSummary SummaryOf(const StripedTensor& tensor, Step step,
                        const std::vector<TensorPart>& parts);

using SummaryCallback = std::function<void(const absl::StatusOr<TensorSummary>&)>;

// Externally synchronized. Replicas are numbered from 0. It counts replicas, and not reports.
class TensorSummaries {
 public:
  static constexpr size_t kMost = 16;  // calls that wait

  // Begins to wait for so many replicas. Returns the number by which they name the tensor. `done`
  // is called once. RESOURCE_EXHAUSTED if kMost calls wait: then it is not called.
  absl::StatusOr<uint64_t> Begin(const StripedTensor& tensor, uint32_t replicas, Step step,
                                 SummaryCallback done);

  // A replica's part has the sizes that the tensor has there. Nothing happens if nobody waits for
  // it. What is computed over all parts is computed by the completion.
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
