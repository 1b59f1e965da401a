#include "worker/program/model_flags.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/nearest.h"
#include "worker/data/tables/load_table_data.h"
#include "worker/torch/models/model_names.h"

namespace sluice {
namespace {

// A flag of some program, and what to do in its place.
constexpr std::pair<const char*, const char*> kForeignToTables[] = {
    {"--dataset", "they have data of their own; leave the flag out"},
    {"--augment", "it changes images; leave the flag out"},
    {"--init-from", "no file has their rows; give the server --checkpoint-dir to go on with both"},
    {"--local-steps",
     "it averages parameters, and no worker has those of a table; train without local steps"},
    {"--checkpoint",
     "such a file has no rows; evaluate a running server by --server, or the checkpoints in its "
     "directory by --checkpoint-dir"},
};

std::vector<std::string> NamesOf(ModelKinds kinds) {
  std::vector<std::string> names = ModelNames();
  if (kinds == ModelKinds::kClassifiers) return names;
  for (const std::string& name : TableModelNames()) names.push_back(name);
  return names;
}

// An empty text says that the name is known.
std::string CheckModel(const std::string& name, ModelKinds kinds) {
  const std::vector<std::string> names = NamesOf(kinds);
  if (IsScriptFile(name) || std::find(names.begin(), names.end(), name) != names.end()) return "";
  return absl::StrCat("found ", name, ", expected one of ", absl::StrJoin(names, ", "),
                      ", or a file of TorchScript, FILE.pt", DidYouMean(name, names));
}

}  // namespace

void AddModelFlags(CLI::App& app, ModelFlags& flags, ModelKinds kinds) {
  const auto check = [kinds](const std::string& name) { return CheckModel(name, kinds); };
  app.add_option("--model", flags.model,
                 absl::StrCat(absl::StrJoin(NamesOf(kinds), ", "),
                              "; or FILE.pt, which torch.jit.save() wrote"))
      ->check(check)
      ->capture_default_str();
  app.add_option("--dataset", flags.data.name, absl::StrJoin(DatasetNames(), ", "))
      ->check(CLI::IsMember(DatasetNames()))
      ->capture_default_str();
  app.add_option(
      "--data-dir", flags.data.folder,
      absl::StrCat("folder of the data set's files, plain or .gz (default for fashion-mnist and "
                   "mnist: /usr/share/datasets/NAME",
                   kinds == ModelKinds::kAll ? "; for --model=wordnet: /usr/share/wordnet" : "",
                   ")"));
  app.add_option("--threads", flags.threads, "threads that LibTorch uses in this process")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
}

absl::Status CheckTableModel(const CLI::App& app, const ModelFlags& flags) {
  if (!IsTableModel(flags.model)) return absl::OkStatus();
  for (const auto& [name, instead] : kForeignToTables) {
    const CLI::Option* const option = app.get_option_no_throw(name);
    if (option == nullptr || option->count() == 0) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        name, " is not for models with tables, such as --model=", flags.model, ": ", instead));
  }
  return absl::OkStatus();
}

}  // namespace sluice
