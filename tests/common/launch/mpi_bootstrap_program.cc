// One rank of mpi_bootstrap_test: rank 0 broadcasts the bytes of BLOB, every rank writes what it
// received to BLOB.<rank> and says on one line what it knows of the launch.
//
//   mpi_bootstrap_program BLOB [RANK | blob]…
//
// The ranks that are named refuse to take part; with "blob", rank 0 refuses to broadcast. Then
// every rank says what it heard of it.
//
//   mpi_bootstrap_program BLOB chosen [RANK]…
//
// Rank 0 hands the bytes of BLOB to the ranks that are named only. Each rank notes its process id,
// and says what it noted and how many bytes it got; rank 0 says what the others noted, by rank.
//
//   mpi_bootstrap_program BLOB mpi [over] [RANK]…
//
// The ranks that are named have initialised MPI before; with "over", they have also finalized it.
// Each rank says what it received and whether MPI is over afterwards; those that are named use it
// once more.

#define OMPI_SKIP_MPICXX 1
#include <mpi.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/launch/failure.h"
#include "common/launch/mpi_bootstrap.h"

namespace {

using sluice::MpiWorld;

std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
}

int HandToChosen(const std::string& path, const std::vector<int>& chosen) {
  std::vector<std::string> told;
  const auto make = [&](const MpiWorld&, const std::vector<std::string>& notes) {
    told = notes;
    return absl::StatusOr<sluice::MpiBlobs>({"all", ReadFile(path), chosen});
  };
  const std::string note = absl::StrCat(getpid());
  const auto result = sluice::MpiBootstrap([&note](const MpiWorld&) { return note; },
                                           [](const MpiWorld&) { return absl::OkStatus(); }, make);
  if (!result.ok()) return 1;
  std::cout << absl::StrCat("rank ", result->world.rank, " noted ", note, ", got ", result->blob,
                            " and ", result->for_chosen.size(), " bytes, was told ",
                            absl::StrJoin(told, ","), "\n");
  return result->for_chosen.empty() || result->for_chosen == ReadFile(path) ? 0 : 1;
}

int UseMpiToo(const std::string& path, std::vector<std::string> words) {
  const bool over = !words.empty() && words.front() == "over";
  const char* const launched_as = getenv("OMPI_COMM_WORLD_RANK");
  const std::string rank = launched_as == nullptr ? "0" : launched_as;
  const bool own = std::find(words.begin(), words.end(), rank) != words.end();
  if (own) MPI_Init(nullptr, nullptr);
  if (own && over) MPI_Finalize();
  const auto result = sluice::MpiBootstrap([](const MpiWorld&) { return absl::OkStatus(); },
                                           [&](const MpiWorld&) { return ReadFile(path); });
  int finalized = 0;
  MPI_Finalized(&finalized);
  std::string said = absl::StrCat("rank ", rank, ", finalized=", finalized);
  if (!result.ok()) {
    absl::StrAppend(&said, " says: ", result.status().message());
  } else if (own) {
    int got = 0;
    const int sent = 7;
    MPI_Sendrecv(&sent, 1, MPI_INT, result->world.rank, 0, &got, 1, MPI_INT, result->world.rank, 0,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    absl::StrAppend(&said, ", sent itself ", got);
  }
  std::cout << said << (result.ok() ? ", got " + result->blob : "") << "\n" << std::flush;
  if (own && !over) MPI_Finalize();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  if (argc > 2 && std::string(argv[2]) == "chosen") {
    std::vector<int> ranks;
    for (int i = 3; i < argc; ++i) ranks.push_back(std::stoi(argv[i]));
    return HandToChosen(argv[1], ranks);
  }
  const std::string path = argv[1];
  if (argc > 2 && std::string(argv[2]) == "mpi") return UseMpiToo(path, {argv + 3, argv + argc});
  const std::vector<std::string> refusals(argv + 2, argv + argc);
  const auto refuse = [&refusals](const std::string& word, const std::string& who) {
    const bool refuses = std::find(refusals.begin(), refusals.end(), word) != refusals.end();
    return refuses ? absl::InvalidArgumentError(who + " refuses") : absl::OkStatus();
  };
  const bool launched = sluice::LaunchedByMpi();
  MpiWorld world;
  std::string made_for = "none";
  const auto check = [&](const MpiWorld& told) {
    world = told;
    return refuse(absl::StrCat(told.rank), absl::StrCat("number ", told.rank));
  };
  const auto make = [&](const MpiWorld& told) -> absl::StatusOr<std::string> {
    made_for = absl::StrCat(told.rank, "/", told.size);
    const absl::Status refused = refuse("blob", "the maker");
    if (!refused.ok()) return refused;
    return ReadFile(path);
  };
  const auto result = sluice::MpiBootstrap(check, make);
  if (!result.ok()) {
    const bool other = sluice::IsSaidByAnotherRank(result.status());
    std::cout << absl::StrCat("rank ", world.rank, other ? " heard: " : " says: ",
                              result.status().ToString(absl::StatusToStringMode::kWithNoExtraData),
                              ", blob made for ", made_for, "\n");
    return 0;
  }
  std::ofstream(absl::StrCat(path, ".", world.rank), std::ios::binary) << result->blob;
  std::cout << absl::StrCat("rank ", world.rank, " of ", world.size, ", one_node=", world.one_node,
                            ", node=", world.node, ", launched=", launched, ", blob made for ",
                            made_for, "\n");
  return 0;
}
