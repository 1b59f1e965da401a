#include "common/launch/mpi_bootstrap.h"

// Leaves out MPI's old C++ bindings, which need a library of their own.
#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>
#include <stdlib.h>

#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/launch/failure.h"

namespace sluice {
namespace {

// The first MPI error of a sequence of calls; later calls are skipped.
class MpiCalls {
 public:
  template <typename Function, typename... Args>
  void Run(const char* name, Function function, Args... args) {
    if (!status_.ok()) return;
    const int code = function(args...);
    if (code == MPI_SUCCESS) return;
    char text[MPI_MAX_ERROR_STRING];
    int length = 0;
    MPI_Error_string(code, text, &length);
    status_ = absl::FailedPreconditionError(
        absl::StrCat(name, " failed: ", absl::string_view(text, length)));
  }

  const absl::Status& status() const { return status_; }

 private:
  absl::Status status_;
};

MpiWorld ReadWorld(MpiCalls& mpi) {
  MpiWorld world;
  mpi.Run("MPI_Comm_rank", MPI_Comm_rank, MPI_COMM_WORLD, &world.rank);
  mpi.Run("MPI_Comm_size", MPI_Comm_size, MPI_COMM_WORLD, &world.size);
  MPI_Comm node = MPI_COMM_NULL;
  mpi.Run("MPI_Comm_split_type", MPI_Comm_split_type, MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0,
          MPI_INFO_NULL, &node);
  int node_size = 0;
  mpi.Run("MPI_Comm_size", MPI_Comm_size, node, &node_size);
  mpi.Run("MPI_Comm_free", MPI_Comm_free, &node);
  world.one_node = node_size == world.size;
  return world;
}

void Broadcast(MpiCalls& mpi, int root, std::string& blob) {
  uint64_t size = blob.size();
  mpi.Run("MPI_Bcast", MPI_Bcast, static_cast<void*>(&size), 1, MPI_UINT64_T, root, MPI_COMM_WORLD);
  if (!mpi.status().ok()) return;
  blob.resize(size);
  mpi.Run("MPI_Bcast", MPI_Bcast, static_cast<void*>(blob.data()), static_cast<int>(size), MPI_BYTE,
          root, MPI_COMM_WORLD);
}

// The lowest rank whose `own` is an error; the number of ranks if there is none.
int LowestFailed(MpiCalls& mpi, const MpiWorld& world, const absl::Status& own) {
  const int failed = own.ok() ? world.size : world.rank;
  int lowest = world.size;
  mpi.Run("MPI_Allreduce", MPI_Allreduce, static_cast<const void*>(&failed),
          static_cast<void*>(&lowest), 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  return lowest;
}

// The error of the lowest rank whose `own` is one, on every rank; OK if there is none, or if MPI
// fails.
absl::Status Share(MpiCalls& mpi, const MpiWorld& world, const absl::Status& own) {
  if (!mpi.status().ok()) return absl::OkStatus();
  const int speaker = LowestFailed(mpi, world, own);
  if (!mpi.status().ok() || speaker == world.size) return absl::OkStatus();
  int code = static_cast<int>(own.code());
  std::string message(own.message());
  mpi.Run("MPI_Bcast", MPI_Bcast, static_cast<void*>(&code), 1, MPI_INT, speaker, MPI_COMM_WORLD);
  Broadcast(mpi, speaker, message);
  if (speaker == world.rank) return SaidForAllRanks(own);
  return SaidByRank(speaker, absl::Status(static_cast<absl::StatusCode>(code), message));
}

}  // namespace

bool LaunchedByMpi() {
  // Open MPI; PMIx launchers; MPICH and Intel MPI's hydra. SLURM alone sets none of these unless it
  // launches MPI programs (srun --mpi=…).
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "PMI_RANK"}) {
    if (getenv(name) != nullptr) return true;
  }
  return false;
}

absl::StatusOr<MpiBootstrapResult> MpiBootstrap(const RankCheck& check,
                                                const BlobMaker& make_blob) {
  MpiCalls mpi;
  // Rank 0 starts the server's threads in between; only this thread calls MPI.
  int provided = 0;
  mpi.Run("MPI_Init_thread", MPI_Init_thread, nullptr, nullptr, MPI_THREAD_FUNNELED, &provided);
  mpi.Run("MPI_Comm_set_errhandler", MPI_Comm_set_errhandler, MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MpiBootstrapResult result;
  result.world = ReadWorld(mpi);
  absl::Status error =
      Share(mpi, result.world, mpi.status().ok() ? check(result.world) : absl::OkStatus());
  if (error.ok()) {
    absl::StatusOr<std::string> blob = std::string();
    if (mpi.status().ok() && result.world.rank == 0) blob = make_blob(result.world);
    error = Share(mpi, result.world, blob.status());
    if (error.ok()) result.blob = *std::move(blob);
  }
  if (error.ok()) Broadcast(mpi, 0, result.blob);
  mpi.Run("MPI_Finalize", MPI_Finalize);
  if (!mpi.status().ok()) return mpi.status();
  if (!error.ok()) return error;
  return result;
}

}  // namespace sluice
