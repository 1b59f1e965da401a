// The flags that choose the model and the data.

#ifndef SLUICE_WORKER_PROGRAM_MODEL_FLAGS_H_
#define SLUICE_WORKER_PROGRAM_MODEL_FLAGS_H_

#include <string>

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

// Declares the flags in `app`. `flags` must outlive the parsing.
void AddModelFlags(CLI::App& app, ModelFlags& flags);

}  // namespace sluice

#endif  // SLUICE_WORKER_PROGRAM_MODEL_FLAGS_H_
