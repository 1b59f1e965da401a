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
#include "common/launch/launcher.h"
#include "common/security/secret.h"

namespace sluice {
namespace {

// A sequence of MPI calls among all ranks. After the first error, later calls are skipped.
//
// MPI may be the program's own, such as mpi4py's: then it stays as it is. The calls have a
// communicator of their own, so they neither meet the program's messages nor change how the
// program's errors are handled.
class MpiCalls {
 public:
  void Begin() {
    int initialized = 0;
    int finalized = 0;
    Run("MPI_Initialized", MPI_Initialized, &initialized);
    Run("MPI_Finalized", MPI_Finalized, &finalized);
    if (finalized != 0) {
      status_ = absl::FailedPreconditionError(
          "MPI was finalized in this process before, and cannot start again, expected a process "
          "where MPI was not used yet, or is in use; start the job first, or finalize MPI last");
    }
    programs_own_ = initialized != 0;
    // Rank 0 starts the server's threads in between; only this thread calls MPI.
    int provided = 0;
    if (!programs_own_) {
      Run("MPI_Init_thread", MPI_Init_thread, nullptr, nullptr, MPI_THREAD_FUNNELED, &provided);
    }
    Run("MPI_Comm_dup", MPI_Comm_dup, MPI_COMM_WORLD, &all_);
    Run("MPI_Comm_set_errhandler", MPI_Comm_set_errhandler, all_, MPI_ERRORS_RETURN);
  }

  // MPI_Finalize waits for all ranks. If some keep MPI, the others finalize it when they exit.
  void End() {
    const int own = programs_own_ ? 1 : 0;
    int kept = 0;
    Run("MPI_Allreduce", MPI_Allreduce, static_cast<const void*>(&own), static_cast<void*>(&kept),
        1, MPI_INT, MPI_MAX, all_);
    Run("MPI_Comm_free", MPI_Comm_free, &all_);
    if (programs_own_) return;
    if (kept == 0) {
      Run("MPI_Finalize", MPI_Finalize);
    } else if (status_.ok()) {
      atexit([] { MPI_Finalize(); });
    }
  }

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
  MPI_Comm all() const { return all_; }
  bool programs_own() const { return programs_own_; }

 private:
  absl::Status status_;
  MPI_Comm all_ = MPI_COMM_NULL;
  bool programs_own_ = false;  // the program has initialised MPI
};

MpiWorld ReadWorld(MpiCalls& mpi) {
  MpiWorld world;
  world.programs_own = mpi.programs_own();
  mpi.Run("MPI_Comm_rank", MPI_Comm_rank, mpi.all(), &world.rank);
  mpi.Run("MPI_Comm_size", MPI_Comm_size, mpi.all(), &world.size);
  MPI_Comm node = MPI_COMM_NULL;
  mpi.Run("MPI_Comm_split_type", MPI_Comm_split_type, mpi.all(), MPI_COMM_TYPE_SHARED, 0,
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
  mpi.Run("MPI_Bcast", MPI_Bcast, static_cast<void*>(&size), 1, MPI_UINT64_T, root, mpi.all());
  if (!mpi.status().ok()) return;
  blob.resize(size);
  mpi.Run("MPI_Bcast", MPI_Bcast, static_cast<void*>(blob.data()), static_cast<int>(size), MPI_BYTE,
          root, mpi.all());
}

// What each rank noted, on rank 0; empty elsewhere.
std::vector<std::string> Gather(MpiCalls& mpi, const MpiWorld& world, const std::string& note) {
  const int size = static_cast<int>(note.size());
  std::vector<int> sizes(world.size);
  mpi.Run("MPI_Gather", MPI_Gather, static_cast<const void*>(&size), 1, MPI_INT,
          static_cast<void*>(sizes.data()), 1, MPI_INT, 0, mpi.all());
  std::vector<int> begins(world.size);
  std::partial_sum(sizes.begin(), sizes.end() - 1, begins.begin() + 1);
  std::string all(begins.back() + sizes.back(), '\0');
  mpi.Run("MPI_Gatherv", MPI_Gatherv, static_cast<const void*>(note.data()), size, MPI_BYTE,
          static_cast<void*>(all.data()), static_cast<const int*>(sizes.data()),
          static_cast<const int*>(begins.data()), MPI_BYTE, 0, mpi.all());
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
          static_cast<void*>(&size), 1, MPI_INT, 0, mpi.all());
  for (const int rank : chosen) {
    mpi.Run("MPI_Send", MPI_Send, static_cast<const void*>(blob.data()), sizes[rank], MPI_BYTE,
            rank, 0, mpi.all());
  }
  if (world.rank == 0) Wipe(blob);
  if (!mpi.status().ok() || size == 0) return;
  blob.resize(size);
  mpi.Run("MPI_Recv", MPI_Recv, static_cast<void*>(blob.data()), size, MPI_BYTE, 0, 0, mpi.all(),
          MPI_STATUS_IGNORE);
}

// The lowest rank whose `own` is an error; the number of ranks if there is none.
int LowestFailed(MpiCalls& mpi, const MpiWorld& world, const absl::Status& own) {
  const int failed = own.ok() ? world.size : world.rank;
  int lowest = world.size;
  mpi.Run("MPI_Allreduce", MPI_Allreduce, static_cast<const void*>(&failed),
          static_cast<void*>(&lowest), 1, MPI_INT, MPI_MIN, mpi.all());
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
  mpi.Run("MPI_Bcast", MPI_Bcast, static_cast<void*>(&code), 1, MPI_INT, speaker, mpi.all());
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
  EndWithLauncher();
  MpiCalls mpi;
  mpi.Begin();
  NoteRanksMet();
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
  mpi.End();
  if (!mpi.status().ok()) return mpi.status();
  if (!error.ok()) return error;
  result.blob = std::move(given.for_all);
  result.for_chosen = std::move(given.for_chosen);
  return result;
}

}  // namespace sluice
