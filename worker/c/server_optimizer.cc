#include "worker/c/server_optimizer.h"

#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "common/base/error.h"

namespace sluice {
namespace {

// What a function of the program has written to say why it failed.
absl::Status ErrorOf(const std::string& text) {
  const size_t end = text.find('\0');
  return MakeError(Reason::kBadOptimizer, absl::string_view(text).substr(0, end));
}

class OptimizerOfC final : public ProgramOptimizer {
 public:
  // `optimizer` is what functions.open() has made.
  OptimizerOfC(const sluice_server_optimizer& functions, void* optimizer, uint64_t state_size)
      : functions_(functions), optimizer_(optimizer), state_size_(state_size) {}
  ~OptimizerOfC() override { functions_.close(optimizer_); }
  OptimizerOfC(const OptimizerOfC&) = delete;
  OptimizerOfC& operator=(const OptimizerOfC&) = delete;

  uint64_t state_size() const override { return state_size_; }

  absl::Status Step(const ProgramStep& step) override {
    const sluice_server_step of_c = {step.number,
                                     step.learning_rates.data(),
                                     step.learning_rates.size(),
                                     step.parameters.data(),
                                     step.gradient.data(),
                                     step.parameters.size(),
                                     step.state.data(),
                                     step.state.size()};
    std::string error(SLUICE_OPTIMIZER_ERROR, '\0');
    return functions_.step(optimizer_, &of_c, error.data()) == 0 ? absl::OkStatus()
                                                                 : ErrorOf(error);
  }

 private:
  const sluice_server_optimizer functions_;
  void* const optimizer_;
  const uint64_t state_size_;
};

absl::StatusOr<std::unique_ptr<ProgramOptimizer>> Open(const sluice_server_optimizer& functions,
                                                       const Layout& layout,
                                                       const OptimizerConfig& config) {
  absl::flat_hash_map<absl::string_view, uint32_t> groups;
  for (size_t i = 0; i < config.groups.size(); ++i) {
    for (const std::string& name : config.groups[i].parameters) {
      groups[name] = static_cast<uint32_t>(i + 1);
    }
  }
  std::vector<sluice_server_tensor> tensors;
  for (const LayoutRange& range : layout.ranges()) {
    const int32_t kind = range.kind == RangeKind::kParameter ? SLUICE_PARAMETER : SLUICE_STATISTIC;
    const auto found = groups.find(range.name);
    const uint32_t group = found == groups.end() ? 0 : found->second;
    const auto& own = std::get<ProgramOptions>(OptionsOf(config, nullptr, group));
    tensors.push_back(
        {{range.name.c_str(), range.shape.data(), range.shape.size(), kind, SLUICE_FLOAT32},
         range.offset,
         group,
         own.kind_crc32});
  }
  uint64_t state_size = 0;
  std::string error(SLUICE_OPTIMIZER_ERROR, '\0');
  void* const made =
      functions.open(functions.context, tensors.data(), tensors.size(), &state_size, error.data());
  if (made == nullptr) return ErrorOf(error);
  return std::make_unique<OptimizerOfC>(functions, made, state_size);
}

}  // namespace

ProgramOptimizerFactory FactoryOf(const sluice_server_optimizer& functions) {
  return [functions](const Layout& layout, const OptimizerConfig& config) {
    return Open(functions, layout, config);
  };
}

}  // namespace sluice
