#include "worker/program/model_flags.h"

#include <CLI/CLI.hpp>

#include "worker/data/dataset.h"

namespace sluice {

void AddModelFlags(CLI::App& app, ModelFlags& flags) {
  app.add_option("--model", flags.model, "lenet, mlp or resnet18")
      ->check(CLI::IsMember({"lenet", "mlp", "resnet18"}))
      ->capture_default_str();
  app.add_option("--dataset", flags.dataset, "fashion-mnist or mnist")
      ->check(CLI::IsMember({"fashion-mnist", "mnist"}))
      ->capture_default_str();
  app.add_option(
      "--data-dir", flags.data_dir,
      "folder of the data set's IDX files, plain or .gz (default: where Debian puts it)");
  app.add_option("--threads", flags.threads, "threads that LibTorch uses in this process")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
}

absl::StatusOr<std::string> DataDirOf(const ModelFlags& flags) {
  if (!flags.data_dir.empty()) return flags.data_dir;
  return DefaultDataDir(flags.dataset);
}

}  // namespace sluice
