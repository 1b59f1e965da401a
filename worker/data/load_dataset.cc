#include "worker/data/load_dataset.h"

#include <functional>
#include <new>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "worker/data/cifar_dataset.h"
#include "worker/data/idx_dataset.h"
#include "worker/data/libsvm_dataset.h"

namespace sluice {
namespace {

struct KnownDataset {
  std::string name;
  std::string folder;  // of Debian's package, or where one would put it; empty: nowhere
  std::function<absl::StatusOr<Dataset>(const std::string& folder, DatasetSplit split)> load;
  std::function<absl::StatusOr<uint64_t>(const std::string& folder, DatasetSplit split)> count;
};

KnownDataset Idx(const std::string& name, Normalization normalization) {
  const auto load = [normalization](const std::string& folder, DatasetSplit split) {
    absl::StatusOr<Dataset> data = LoadIdxDataset(folder, split);
    if (data.ok()) data->normalization = {normalization};
    return data;
  };
  return {name, "/usr/share/datasets/" + name, load, CountIdxSamples};
}

KnownDataset Cifar(const std::string& name, const CifarForm& form) {
  const auto load = [form](const std::string& folder, DatasetSplit split) {
    return LoadCifarDataset(form, folder, split);
  };
  const auto count = [form](const std::string& folder, DatasetSplit split) {
    return CountCifarSamples(form, folder, split);
  };
  return {name, "", load, count};
}

const std::vector<KnownDataset>& AllDatasets() {
  static const auto* const all = new std::vector<KnownDataset>{
      Idx("fashion-mnist", {}),    Idx("mnist", {0.1307F, 0.3081F}),
      Cifar("cifar10", Cifar10()), Cifar("cifar100", Cifar100()),
      Cifar("svhn", Svhn()),       {"libsvm", "", LoadLibsvmDataset, CountLibsvmSamples},
  };
  return *all;
}

// The data set, and the folder in which it is.
struct Found {
  const KnownDataset* known;
  std::string folder;
};

absl::StatusOr<Found> Find(const DatasetSource& source) {
  for (const KnownDataset& known : AllDatasets()) {
    if (known.name != source.name) continue;
    const std::string& folder = source.folder.empty() ? known.folder : source.folder;
    if (!folder.empty()) return Found{&known, folder};
    return absl::InvalidArgumentError(
        absl::StrCat("--dataset=", source.name, " needs --data-dir, the folder of its files"));
  }
  return absl::InvalidArgumentError(absl::StrCat("dataset \"", source.name,
                                                 "\" is unknown; expected one of ",
                                                 absl::StrJoin(DatasetNames(), ", ")));
}

}  // namespace

std::vector<std::string> DatasetNames() {
  std::vector<std::string> names;
  for (const KnownDataset& known : AllDatasets()) names.push_back(known.name);
  return names;
}

absl::StatusOr<Dataset> LoadDataset(const DatasetSource& source, DatasetSplit split) {
  const auto found = Find(source);
  if (!found.ok()) return found.status();
  try {
    return found->known->load(found->folder, split);
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError(
        absl::StrCat("the data in ", found->folder, " need more memory than there is"));
  }
}

absl::StatusOr<uint64_t> CountSamples(const DatasetSource& source, DatasetSplit split) {
  const auto found = Find(source);
  if (!found.ok()) return found.status();
  return found->known->count(found->folder, split);
}

}  // namespace sluice
