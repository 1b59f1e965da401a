// A group of ranks that uses MPI_Allreduce.

#ifndef SLUICE_TOOLS_BENCH_COMPARING_TORCH_MPI_GROUP_H_
#define SLUICE_TOOLS_BENCH_COMPARING_TORCH_MPI_GROUP_H_

#include <memory>

#include "worker/torch/training/gradient_group.h"

namespace sluice::bench {

// Every rank of a launch by mpirun calls this once, from its main thread. The destructor ends MPI.
// An error of MPI ends the launch.
std::unique_ptr<GradientGroup> JoinMpiGroup();

}  // namespace sluice::bench

#endif  // SLUICE_TOOLS_BENCH_COMPARING_TORCH_MPI_GROUP_H_
