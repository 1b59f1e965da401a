#include "worker/program/model_flags.h"

#include <CLI/CLI.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "worker/torch/models/model_names.h"

namespace sluice {
namespace {

// An empty text says that the name is known.
std::string CheckModel(const std::string& name) {
  const std::vector<std::string> names = ModelNames();
  if (IsScriptFile(name) || std::find(names.begin(), names.end(), name) != names.end()) return "";
  return absl::StrCat("found ", name, ", expected one of ", absl::StrJoin(names, ", "),
                      ", or a file of TorchScript, FILE.pt");
}

}  // namespace

void AddModelFlags(CLI::App& app, ModelFlags& flags) {
  app.add_option("--model", flags.model,
                 absl::StrCat(absl::StrJoin(ModelNames(), ", "),
                              "; or FILE.pt, which torch.jit.save() wrote"))
      ->check(CheckModel)
      ->capture_default_str();
  app.add_option("--dataset", flags.data.name, absl::StrJoin(DatasetNames(), ", "))
      ->check(CLI::IsMember(DatasetNames()))
      ->capture_default_str();
  app.add_option(
      "--data-dir", flags.data.folder,
      "folder of the data set's files, plain or .gz (default for fashion-mnist and mnist: "
      "/usr/share/datasets/NAME)");
  app.add_option("--threads", flags.threads, "threads that LibTorch uses in this process")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
}

}  // namespace sluice
