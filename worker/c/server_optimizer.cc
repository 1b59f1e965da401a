#include "worker/c/server_optimizer.h"

#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"

namespace sluice {
namespace {

// What a function of the program has written to say why it failed.
absl::Status ErrorOf(const std::string& text) {
  const size_t end = text.find('\0');
  return absl::UnknownError(absl::string_view(text).substr(0, end));
}

class OptimizerOfC final : public ProgramOptimizer {
 public:
  OptimizerOfC(const sluice_server_optimizer& functions, const Layout& layout,
               const OptimizerConfig& config)
      : functions_(functions) {
    std::string error(SLUICE_OPTIMIZER_ERROR, '\0');
    optimizer_ = Open(layout, config, &error);
    if (optimizer_ == nullptr) why_ = ErrorOf(error);
  }
  ~OptimizerOfC() override {
    if (optimizer_ != nullptr) functions_.close(optimizer_);
  }
  OptimizerOfC(const OptimizerOfC&) = delete;
  OptimizerOfC& operator=(const OptimizerOfC&) = delete;

  uint64_t state_size() const override { return state_size_; }

  absl::Status Step(const ProgramStep& step) override {
    if (optimizer_ == nullptr) return why_;
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
  void* Open(const Layout& layout, const OptimizerConfig& config, std::string* error) {
    absl::flat_hash_map<absl::string_view, uint32_t> groups;
    for (size_t i = 0; i < config.groups.size(); ++i) {
      for (const std::string& name : config.groups[i].parameters) {
        groups[name] = static_cast<uint32_t>(i + 1);
      }
    }
    std::vector<sluice_server_tensor> tensors;
    for (const LayoutRange& range : layout.ranges()) {
      const int32_t kind =
          range.kind == RangeKind::kParameter ? SLUICE_PARAMETER : SLUICE_STATISTIC;
      const auto found = groups.find(range.name);
      const uint32_t group = found == groups.end() ? 0 : found->second;
      const auto& own = std::get<ProgramOptions>(OptionsOf(config, nullptr, group));
      tensors.push_back(
          {{range.name.c_str(), range.shape.data(), range.shape.size(), kind, SLUICE_FLOAT32},
           range.offset,
           group,
           own.kind_crc32});
    }
    return functions_.open(functions_.context, tensors.data(), tensors.size(), &state_size_,
                           error->data());
  }

  const sluice_server_optimizer functions_;
  void* optimizer_ = nullptr;  // null if it could not be made
  uint64_t state_size_ = 0;
  absl::Status why_;
};

}  // namespace

ProgramOptimizerFactory FactoryOf(const sluice_server_optimizer& functions) {
  return [functions](const Layout& layout, const OptimizerConfig& config) {
    return std::make_unique<OptimizerOfC>(functions, layout, config);
  };
}

}  // namespace sluice
