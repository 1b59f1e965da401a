// Evaluates the steps of a running server.

#ifndef SLUICE_TOOLS_EVALUATE_SERVER_SOURCE_H_
#define SLUICE_TOOLS_EVALUATE_SERVER_SOURCE_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "tools/evaluate/parameter_source.h"
#include "worker/job.h"

namespace sluice {

// Connects to the server that `job` names, waiting for it to start, and returns a source of its
// steps (worker/client/parameter_follower.h). Each call of Next() gives the newest step, once it is
// at least `every` steps further than the one before; the last step always counts. `patience` is
// the time in which the first worker must join the server. `job` must outlive the source.
absl::StatusOr<std::unique_ptr<ParameterSource>> MakeServerSource(const Job& job, uint64_t every,
                                                                  absl::Duration patience,
                                                                  const Evaluator& model);

}  // namespace sluice

#endif  // SLUICE_TOOLS_EVALUATE_SERVER_SOURCE_H_
