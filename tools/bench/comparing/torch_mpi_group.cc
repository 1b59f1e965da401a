#include "tools/bench/comparing/torch_mpi_group.h"

// Leaves out MPI's old C++ bindings, which need a library of their own.
#define OMPI_SKIP_MPICXX 1
#include <mpi.h>

namespace sluice::bench {
namespace {

// MPI's default error handler ends the launch, so the calls' results need no look.
class MpiGroup final : public GradientGroup {
 public:
  explicit MpiGroup(MpiWorld world) : GradientGroup(world) {}
  ~MpiGroup() override { MPI_Finalize(); }

  void Sum(torch::Tensor& values) override {
    MPI_Allreduce(MPI_IN_PLACE, values.data_ptr<float>(), static_cast<int>(values.numel()),
                  MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  }

  void Barrier() override { MPI_Barrier(MPI_COMM_WORLD); }

 private:
  void Broadcast(torch::Tensor& values) override {
    MPI_Bcast(values.data_ptr<float>(), static_cast<int>(values.numel()), MPI_FLOAT, 0,
              MPI_COMM_WORLD);
  }
};

}  // namespace

std::unique_ptr<GradientGroup> JoinMpiGroup() {
  int provided = 0;
  MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided);
  MpiWorld world;
  MPI_Comm_rank(MPI_COMM_WORLD, &world.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &world.size);
  return std::make_unique<MpiGroup>(world);
}

}  // namespace sluice::bench
