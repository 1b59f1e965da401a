#include "worker/compression/momentum_correction.h"

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "common/base/error.h"

namespace sluice {
namespace {

absl::Status Refuse(absl::string_view found) {
  return MakeError(
      Reason::kBadOptimizer,
      absl::StrCat("an encoding with :momentum needs SGD with momentum, and without Nesterov, "
                   "dampening and weight decay; found ",
                   found, ": change that, or leave :momentum out"));
}

absl::StatusOr<float> TakeFrom(OptimizerOptions* options) {
  auto* const sgd = std::get_if<SgdOptions>(options);
  if (sgd == nullptr) return Refuse(OptimizerName(*options));
  if (sgd->momentum == 0) return Refuse("a momentum of 0");
  if (sgd->nesterov) return Refuse("Nesterov");
  if (sgd->dampening != 0) return Refuse(absl::StrCat("a dampening of ", sgd->dampening));
  if (sgd->weight_decay != 0) return Refuse(absl::StrCat("a weight decay of ", sgd->weight_decay));
  const auto momentum = static_cast<float>(sgd->momentum);
  sgd->momentum = 0;
  return momentum;
}

// Gives `options` to the tables that have none.
void GiveTables(const OptimizerOptions& options, const Layout& layout,
                std::vector<TableOptimizer>* tables) {
  absl::flat_hash_set<std::string> own;
  for (const TableOptimizer& table : *tables) own.insert(table.table);
  for (const TableSpec& table : layout.tables()) {
    if (!own.contains(table.name)) tables->push_back({table.name, options});
  }
}

}  // namespace

absl::StatusOr<float> TakeMomentum(const Layout& layout, OptimizerConfig* optimizer) {
  const OptimizerOptions of_model = optimizer->options;
  const auto momentum = TakeFrom(&optimizer->options);
  if (!momentum.ok()) return momentum;
  for (OptimizerGroup& group : optimizer->groups) {
    const auto of_group = TakeFrom(&group.options);
    if (!of_group.ok()) return of_group;
    if (*of_group != *momentum) {
      return Refuse(absl::StrCat("groups with a momentum of ", *momentum, " and ", *of_group));
    }
  }
  GiveTables(of_model, layout, &optimizer->tables);
  return momentum;
}

absl::Status TakeMomentum(float momentum, OptimizerOptions* options) {
  const auto taken = TakeFrom(options);
  if (!taken.ok()) return taken.status();
  if (*taken == momentum) return absl::OkStatus();
  return Refuse(absl::StrCat("a momentum that has changed from ", momentum, " to ", *taken));
}

std::string AdviceOnMomentum(EncodingChoice choice, OptimizerConfig optimizer) {
  const bool on_server = choice.encoding.takes_momentum() && !choice.momentum();
  if (!on_server || !TakeMomentum(Layout(), &optimizer).ok()) return "";
  const std::string chosen = EncodingChoiceName(choice);
  choice.encoding.momentum = true;
  return absl::StrCat("with --push-encoding=", chosen,
                      " training loses less accuracy if workers have the momentum: use "
                      "--push-encoding=",
                      EncodingChoiceName(choice));
}

absl::Span<const float> MomentumCorrection::Advance(uint64_t begin,
                                                    absl::Span<const float> gradient) {
  for (size_t i = 0; i < gradient.size(); ++i) {
    next_[begin + i] = momentum_ * current_[begin + i] + gradient[i];
  }
  return absl::MakeConstSpan(next_).subspan(begin, gradient.size());
}

void MomentumCorrection::Mask(uint64_t begin, absl::Span<const float> before,
                              absl::Span<const float> after) {
  for (size_t i = 0; i < after.size(); ++i) {
    float& velocity = next_[begin + i];
    if (velocity + before[i] != after[i]) velocity = 0;
  }
}

}  // namespace sluice
