// The version of LibTorch, for --version.

#ifndef SLUICE_WORKER_TORCH_TORCH_VERSION_H_
#define SLUICE_WORKER_TORCH_TORCH_VERSION_H_

#include "common/base/version.h"

namespace sluice {

BuiltWith TorchVersion();

}  // namespace sluice

#endif  // SLUICE_WORKER_TORCH_TORCH_VERSION_H_
