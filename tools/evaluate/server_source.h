#ifndef SLUICE_TOOLS_EVALUATE_SERVER_SOURCE_H_
#define SLUICE_TOOLS_EVALUATE_SERVER_SOURCE_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "tools/evaluate/parameter_source.h"
#include "worker/job.h"

namespace sluice {

// The steps of a running server, as worker/client/parameter_follower.h gives them: the newest
// whenever it is asked, if that is at least `every` further, and the last in any case. `job` names
// a server, which is waited for, and outlives the source. `patience` is for the first worker to
// join it.
absl::StatusOr<std::unique_ptr<ParameterSource>> MakeServerSource(const Job& job, uint64_t every,
                                                                  absl::Duration patience,
                                                                  const Evaluator& model);

}  // namespace sluice

#endif  // SLUICE_TOOLS_EVALUATE_SERVER_SOURCE_H_
