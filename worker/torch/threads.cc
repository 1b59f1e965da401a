#include "worker/torch/threads.h"

#include <ATen/Parallel.h>
#include <dlfcn.h>

namespace sluice {

// OpenBLAS, if it is this LibTorch's BLAS, has threads that LibTorch's own setting does not reach:
// with several workers on few cores they spend most of their time waiting for each other.
void SetThreads(int threads) {
  at::set_num_threads(threads);
  using SetBlasThreads = void (*)(int);
  const auto set_blas_threads =
      reinterpret_cast<SetBlasThreads>(dlsym(RTLD_DEFAULT, "openblas_set_num_threads"));
  if (set_blas_threads != nullptr) set_blas_threads(threads);
}

}  // namespace sluice
