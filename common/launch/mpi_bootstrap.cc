#include "common/launch/mpi_bootstrap.h"

// Leaves out MPI's old C++ bindings, which need a library of their own.
#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>
#include <stdlib.h>

#include <cstdint>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/launch/failure.h"
#include "common/security/secret.h"

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
  mpi.Run("MPI_Allreduce", MPI_Allreduce, static_cast<const void*>(&world.rank),
          static_cast<void*>(&world.node), 1, MPI_INT, MPI_MIN, node);
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

// What each rank noted, on rank 0; empty elsewhere.
std::vector<std::string> Gather(MpiCalls& mpi, const MpiWorld& world, const std::string& note) {
  const int size = static_cast<int>(note.size());
  std::vector<int> sizes(world.size);
  mpi.Run("MPI_Gather", MPI_Gather, static_cast<const void*>(&size), 1, MPI_INT,
          static_cast<void*>(sizes.data()), 1, MPI_INT, 0, MPI_COMM_WORLD);
  std::vector<int> begins(world.size);
  std::partial_sum(sizes.begin(), sizes.end() - 1, begins.begin() + 1);
  std::string all(begins.back() + sizes.back(), '\0');
  mpi.Run("MPI_Gatherv", MPI_Gatherv, static_cast<const void*>(note.data()), size, MPI_BYTE,
          static_cast<void*>(all.data()), static_cast<const int*>(sizes.data()),
          static_cast<const int*>(begins.data()), MPI_BYTE, 0, MPI_COMM_WORLD);
  std::vector<std::string> notes;
  if (!mpi.status().ok() || world.rank != 0) return notes;
  for (int i = 0; i < world.size; ++i) notes.push_back(all.substr(begins[i], sizes[i]));
  return notes;
}

// Hands rank 0's `blob` to the ranks `chosen`, each by a message of its own. What they get is in
// `blob`; it is empty on all other ranks. Only rank 0 needs to know the blob and the ranks.
void HandToChosen(MpiCalls& mpi, const MpiWorld& world, const std::vector<int>& chosen,
                  std::string& blob) {
  std::vector<int> sizes(world.size);  // of what each rank gets
  for (const int rank : chosen) sizes[rank] = static_cast<int>(blob.size());
  int size = 0;
  mpi.Run("MPI_Scatter", MPI_Scatter, static_cast<const void*>(sizes.data()), 1, MPI_INT,
          static_cast<void*>(&size), 1, MPI_INT, 0, MPI_COMM_WORLD);
  for (const int rank : chosen) {
    mpi.Run("MPI_Send", MPI_Send, static_cast<const void*>(blob.data()), sizes[rank], MPI_BYTE,
            rank, 0, MPI_COMM_WORLD);
  }
  if (world.rank == 0) Wipe(blob);
  if (!mpi.status().ok() || size == 0) return;
  blob.resize(size);
  mpi.Run("MPI_Recv", MPI_Recv, static_cast<void*>(blob.data()), size, MPI_BYTE, 0, 0,
          MPI_COMM_WORLD, MPI_STATUS_IGNORE);
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
  const auto make = [&](const MpiWorld& world,
                        const std::vector<std::string>&) -> absl::StatusOr<MpiBlobs> {
    auto blob = make_blob(world);
    if (!blob.ok()) return blob.status();
    return MpiBlobs{*std::move(blob)};
  };
  return MpiBootstrap([](const MpiWorld&) { return std::string(); }, check, make);
}

absl::StatusOr<MpiBootstrapResult> MpiBootstrap(const NoteMaker& note, const RankCheck& check,
                                                const BlobsMaker& make_blobs) {
  MpiCalls mpi;
  // Rank 0 starts the server's threads in between; only this thread calls MPI.
  int provided = 0;
  mpi.Run("MPI_Init_thread", MPI_Init_thread, nullptr, nullptr, MPI_THREAD_FUNNELED, &provided);
  mpi.Run("MPI_Comm_set_errhandler", MPI_Comm_set_errhandler, MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MpiBootstrapResult result;
  result.world = ReadWorld(mpi);
  absl::Status error =
      Share(mpi, result.world, mpi.status().ok() ? check(result.world) : absl::OkStatus());
  MpiBlobs given;
  if (error.ok()) {
    const std::vector<std::string> notes = Gather(mpi, result.world, note(result.world));
    absl::StatusOr<MpiBlobs> blobs = MpiBlobs();
    if (mpi.status().ok() && result.world.rank == 0) blobs = make_blobs(result.world, notes);
    error = Share(mpi, result.world, blobs.status());
    if (error.ok()) given = *std::move(blobs);
  }
  if (error.ok()) {
    Broadcast(mpi, 0, given.for_all);
    HandToChosen(mpi, result.world, given.chosen, given.for_chosen);
  }
  mpi.Run("MPI_Finalize", MPI_Finalize);
  if (!mpi.status().ok()) return mpi.status();
  if (!error.ok()) return error;
  result.blob = std::move(given.for_all);
  result.for_chosen = std::move(given.for_chosen);
  return result;
}

}  // namespace sluice
