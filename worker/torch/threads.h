#ifndef SLUICE_WORKER_TORCH_THREADS_H_
#define SLUICE_WORKER_TORCH_THREADS_H_

namespace sluice {

// Sets how many threads LibTorch and its BLAS library use for arithmetic in this process. Call it
// before training begins.
void SetThreads(int threads);

}  // namespace sluice

#endif  // SLUICE_WORKER_TORCH_THREADS_H_
