// All headers that a program with LibTorch includes. The package libsluice-torch-dev has them;
// there this one is <sluice/torch.h>.

#ifndef SLUICE_WORKER_TORCH_TORCH_H_
#define SLUICE_WORKER_TORCH_TORCH_H_

#include "worker/job.h"
#include "worker/torch/remote_error.h"
#include "worker/torch/remote_optimizer.h"
#include "worker/torch/run_worker.h"
#include "worker/torch/tables/remote_embedding.h"

#endif  // SLUICE_WORKER_TORCH_TORCH_H_
