// The place that the evaluated parameters come from: a server, a directory or a file.

#ifndef SLUICE_TOOLS_EVALUATE_PARAMETER_SOURCE_H_
#define SLUICE_TOOLS_EVALUATE_PARAMETER_SOURCE_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "common/base/ids.h"
#include "worker/torch/training/evaluator.h"
#include "worker/training/evaluation.h"

namespace sluice {

// Says which parameters were evaluated.
struct ParametersId {
  std::string source;  // an address, or a file's path
  absl::optional<Incarnation> incarnation;
  absl::optional<Step> step;  // absent if the source does not say it
};

// There are three sources: directory_source.h, server_source.h, and MakeFileSource() below. The
// program calls one source from one thread.
class ParameterSource {
 public:
  virtual ~ParameterSource() = default;

  // Waits for the next parameters and loads them into `model`, which is the same in every call.
  // Returns an absent value when none will follow, and DEADLINE_EXCEEDED when the server is gone
  // before it finished.
  virtual absl::StatusOr<absl::optional<ParametersId>> Next(Evaluator& model) = 0;

  // Takes what was measured of the parameters that Next() loaded last.
  virtual void Report(const TestResult& /*result*/) {}
};

// Returns a source of one file, which LoadStateDict() reads (worker/torch/state_dict.h). The step
// is known if the file has the name of a checkpoint.
std::unique_ptr<ParameterSource> MakeFileSource(const std::string& path);

}  // namespace sluice

#endif  // SLUICE_TOOLS_EVALUATE_PARAMETER_SOURCE_H_
