// The flags that choose the model and the data.

#ifndef SLUICE_WORKER_PROGRAM_MODEL_FLAGS_H_
#define SLUICE_WORKER_PROGRAM_MODEL_FLAGS_H_

#include <string>

#include "absl/status/statusor.h"

namespace CLI {
class App;
}

namespace sluice {

struct ModelFlags {
  std::string model = "lenet";
  std::string dataset = "fashion-mnist";
  std::string data_dir;  // empty: the data set's own
  int threads = 1;       // of LibTorch
};

// Declares the flags in `app`. `flags` must outlive the parsing.
void AddModelFlags(CLI::App& app, ModelFlags& flags);

// Returns the folder of the data set: --data-dir, or the default folder of the data set.
absl::StatusOr<std::string> DataDirOf(const ModelFlags& flags);

}  // namespace sluice

#endif  // SLUICE_WORKER_PROGRAM_MODEL_FLAGS_H_
