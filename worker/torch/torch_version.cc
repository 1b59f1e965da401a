#include "worker/torch/torch_version.h"

#include <torch/version.h>

namespace sluice {

BuiltWith TorchVersion() { return {"LibTorch", TORCH_VERSION}; }

}  // namespace sluice
