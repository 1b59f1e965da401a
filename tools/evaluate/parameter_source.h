// Where the parameters that are evaluated come from.

#ifndef SLUICE_TOOLS_EVALUATE_PARAMETER_SOURCE_H_
#define SLUICE_TOOLS_EVALUATE_PARAMETER_SOURCE_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "common/base/ids.h"
#include "worker/torch/training/evaluator.h"

namespace sluice {

// Which parameters they are.
struct ParametersId {
  std::string source;  // an address, or a file's path
  absl::optional<Incarnation> incarnation;
  absl::optional<Step> step;  // absent if the source does not tell
};

// Three: directory_source.h, server_source.h, and MakeFileSource(). For one thread.
class ParameterSource {
 public:
  virtual ~ParameterSource() = default;

  // Waits for the next parameters and puts them into `model`, the same one each time. Absent: none
  // will follow. DEADLINE_EXCEEDED if they should, but their server is gone.
  virtual absl::StatusOr<absl::optional<ParametersId>> Next(Evaluator& model) = 0;
};

// Those of one file, as LoadStateDict() reads it (worker/torch/state_dict.h). Its step is known if
// it has a checkpoint's name.
std::unique_ptr<ParameterSource> MakeFileSource(const std::string& path);

}  // namespace sluice

#endif  // SLUICE_TOOLS_EVALUATE_PARAMETER_SOURCE_H_
