#ifndef SLUICE_WORKER_TORCH_THREADS_H_
#define SLUICE_WORKER_TORCH_THREADS_H_

namespace sluice {

// The threads of LibTorch's arithmetic in this process, those of its BLAS too.
void SetThreads(int threads);

}  // namespace sluice

#endif  // SLUICE_WORKER_TORCH_THREADS_H_
