// The flags that choose the model and the data.

#ifndef SLUICE_WORKER_PROGRAM_MODEL_FLAGS_H_
#define SLUICE_WORKER_PROGRAM_MODEL_FLAGS_H_

#include <string>

#include "absl/status/status.h"
#include "worker/data/load_dataset.h"

namespace CLI {
class App;
}

namespace sluice {

struct ModelFlags {
  std::string model = "lenet";
  DatasetSource data;
  int threads = 1;  // of LibTorch
};

// The kinds of models that a program takes.
enum class ModelKinds { kClassifiers, kAll };

// Declares the flags in `app`. `flags` must outlive the parsing.
void AddModelFlags(CLI::App& app, ModelFlags& flags, ModelKinds kinds = ModelKinds::kClassifiers);

// After the parsing: INVALID_ARGUMENT if a model with tables was chosen together with a flag that
// is of no use for those.
absl::Status CheckTableModel(const CLI::App& app, const ModelFlags& flags);

}  // namespace sluice

#endif  // SLUICE_WORKER_PROGRAM_MODEL_FLAGS_H_
