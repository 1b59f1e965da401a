// headers.h, and all of LibTorch: the compiler reads that for 16 seconds.

#ifndef SLUICE_TOOLS_BAZEL_PRECOMPILED_TORCH_HEADERS_H_
#define SLUICE_TOOLS_BAZEL_PRECOMPILED_TORCH_HEADERS_H_

#include <torch/torch.h>

#include "tools/bazel/precompiled/headers.h"

#endif  // SLUICE_TOOLS_BAZEL_PRECOMPILED_TORCH_HEADERS_H_
