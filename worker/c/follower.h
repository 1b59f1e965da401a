// The follower behind sluice.h: a ParameterFollower whose calls run on a thread of their own.

#ifndef SLUICE_WORKER_C_FOLLOWER_H_
#define SLUICE_WORKER_C_FOLLOWER_H_

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "common/tensor/layout.h"
#include "common/tensor/table_spec.h"
#include "worker/c/call_thread.h"
#include "worker/c/job.h"
#include "worker/c/sluice.h"
#include "worker/client/parameter_follower.h"

// One thread begins calls and waits for them.
struct sluice_follower {
 public:
  // `job` outlives this. `parameters` has the layout's size.
  sluice_follower(const sluice::Job& job, sluice::Layout layout, const sluice_buffer& parameters);

  // The functions of sluice.h.
  absl::Status SetTables(absl::Span<const sluice_table> tables);
  absl::Status SetConstants(absl::Span<const sluice_constant> constants);
  absl::Status SetRows(uint32_t table, absl::Span<const sluice::RowId> ids, float* rows);
  absl::Status BeginNext(uint64_t every);
  absl::optional<absl::Status> Wait(absl::Duration longest, sluice_followed* followed);

 private:
  struct FollowedRows {
    std::vector<sluice::RowId> ids;
    absl::Span<float> to;  // the caller's
  };

  absl::Status Connect();
  absl::Status Next(uint64_t every);

  const sluice::Job& job_;
  sluice::Layout layout_;
  const sluice_buffer parameters_;
  sluice::ConstantMemory constants_;                     // of the layout's constants
  std::map<uint32_t, FollowedRows> rows_;                // by table
  std::unique_ptr<sluice::ParameterFollower> follower_;  // null before the first call has connected
  sluice_followed followed_ = {};                        // written by the call that works
  sluice::CallThread calls_;                             // destroyed first, after its calls
};

#endif  // SLUICE_WORKER_C_FOLLOWER_H_
