// Asks a server again and again, on a thread of its own, so that the terminal never waits for it.

#ifndef SLUICE_TOOLS_CTL_TOP_STATE_SAMPLER_H_
#define SLUICE_TOOLS_CTL_TOP_STATE_SAMPLER_H_

#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "common/base/serial_executor.h"
#include "common/base/stop_flag.h"
#include "tools/ctl/client/operator_client.h"
#include "tools/ctl/render/worker_rows.h"

namespace sluice {

// Any thread may call Take().
class StateSampler {
 public:
  // Begins. Between two samples it pauses for `interval`. When the connection breaks, it connects
  // again; an error that this cannot mend ends it.
  StateSampler(std::unique_ptr<OperatorClient> client, absl::Duration interval);
  // Breaks off a call that is under way.
  ~StateSampler();

  // The latest sample or error that was not taken yet; absent if there is none.
  absl::optional<absl::StatusOr<Sample>> Take() ABSL_LOCKS_EXCLUDED(mu_);

 private:
  void Run();
  absl::StatusOr<Sample> Ask();

  const std::unique_ptr<OperatorClient> client_;
  const absl::Duration interval_;
  StopFlag stop_;
  absl::Mutex mu_;
  absl::optional<absl::StatusOr<Sample>> latest_ ABSL_GUARDED_BY(mu_);
  SerialExecutor thread_{"sluicectl-top"};  // last: its task uses the others
};

}  // namespace sluice

#endif  // SLUICE_TOOLS_CTL_TOP_STATE_SAMPLER_H_
