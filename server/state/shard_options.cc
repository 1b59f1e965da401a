#include "server/state/shard_options.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "common/base/error.h"

namespace sluice {
namespace {

absl::Status CheckNorm(absl::string_view name, const absl::optional<double>& norm) {
  if (!norm.has_value() || (std::isfinite(*norm) && *norm > 0)) return absl::OkStatus();
  return MakeError(Reason::kBadArgument,
                   absl::StrCat(name, " is ", *norm, ", expected a finite number above 0"));
}

}  // namespace

absl::Status Guards::Validate() const {
  const absl::Status clip = CheckNorm("clip_norm", clip_norm);
  return clip.ok() ? CheckNorm("max_push_norm", max_push_norm) : clip;
}

absl::StatusOr<std::unique_ptr<ProgramOptimizer>> MakeProgramOptimizer(
    const ShardOptions& options, const Layout& layout, const OptimizerConfig& optimizer) {
  if (!IsOfProgram(optimizer.options)) return std::unique_ptr<ProgramOptimizer>();
  if (options.program_optimizer != nullptr) return options.program_optimizer(layout, optimizer);
  return MakeError(Reason::kBadOptimizer,
                   "the optimizer is one of a program, and the program of this server has none; in "
                   "Python, call sluice.start(server_optimizer=…) in all processes, with one "
                   "server, or let the workers step in sync mode (where=\"worker\")");
}

}  // namespace sluice
