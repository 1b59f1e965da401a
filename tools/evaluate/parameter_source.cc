#include "tools/evaluate/parameter_source.h"

#include <filesystem>

#include "common/checkpoint/file_names.h"

namespace sluice {
namespace {

class FileSource final : public ParameterSource {
 public:
  explicit FileSource(const std::string& path) : path_(path) {}

  absl::StatusOr<absl::optional<ParametersId>> Next(Evaluator& model) override {
    if (given_) return absl::optional<ParametersId>();
    given_ = true;
    const absl::Status loaded = model.Load(path_);
    if (!loaded.ok()) return loaded;
    absl::optional<ParametersId> id = ParametersId{path_, absl::nullopt, absl::nullopt};
    const auto name = CheckpointName::Parse(std::filesystem::path(path_).filename().string());
    if (name.has_value()) {
      id->incarnation = name->incarnation;
      id->step = name->step;
    }
    return id;
  }

 private:
  const std::string path_;
  bool given_ = false;
};

}  // namespace

std::unique_ptr<ParameterSource> MakeFileSource(const std::string& path) {
  return std::make_unique<FileSource>(path);
}

}  // namespace sluice
