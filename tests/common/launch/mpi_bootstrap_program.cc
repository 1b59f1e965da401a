// One rank of mpi_bootstrap_test: rank 0 broadcasts the bytes of BLOB, every rank writes what it
// received to BLOB.<rank> and says on one line what it knows of the launch.
//
//   mpi_bootstrap_program BLOB [RANK | blob]…
//
// The ranks that are named refuse to take part; with "blob", rank 0 refuses to broadcast. Then
// every rank says what it heard of it.

#include <algorithm>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/launch/failure.h"
#include "common/launch/mpi_bootstrap.h"

namespace {

using sluice::MpiWorld;

std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  const std::string path = argv[1];
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
                            ", launched=", launched, ", blob made for ", made_for, "\n");
  return 0;
}
