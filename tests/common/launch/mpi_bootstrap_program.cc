// One rank of mpi_bootstrap_test: rank 0 broadcasts the bytes of BLOB, every rank writes what it
// received to BLOB.<rank> and says on one line what it knows of the launch.
//
//   mpi_bootstrap_program BLOB

#include <fstream>
#include <iostream>
#include <iterator>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/launch/mpi_bootstrap.h"

namespace {

std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const std::string path = argv[1];
  const bool launched = sluice::LaunchedByMpi();
  std::string made_for = "none";
  const auto result = sluice::MpiBootstrap([&](const sluice::MpiWorld& world) {
    made_for = absl::StrCat(world.rank, "/", world.size);
    return ReadFile(path);
  });
  if (!result.ok()) {
    std::cerr << result.status() << "\n";
    return 1;
  }
  const sluice::MpiWorld& world = result->world;
  std::ofstream(absl::StrCat(path, ".", world.rank), std::ios::binary) << result->blob;
  std::cout << absl::StrCat("rank ", world.rank, " of ", world.size, ", one_node=", world.one_node,
                            ", launched=", launched, ", blob made for ", made_for, "\n");
  return 0;
}
