// Tries the inputs in the files and folders of the command line: what is kept stays fixed, whatever
// compiler there is. Exit status: 0 all hold, 2 there is none; it dies at one that does not hold,
// which is the last that it names.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

#include "tests/fuzz/silence.h"
#include "tests/fuzz/target.h"

namespace sluice {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> FilesIn(const fs::path& path) {
  if (!fs::is_directory(path)) return {path};
  std::vector<fs::path> files;
  for (const fs::directory_entry& entry : fs::directory_iterator(path)) {
    files.push_back(entry.path());
  }
  return files;
}

void Replay(const fs::path& path) {
  std::fprintf(stderr, "%s\n", path.c_str());
  std::ifstream file(path, std::ios::binary);
  // No byte longer than they are, so that sanitizers see who reads beyond them.
  std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};
  bytes.shrink_to_fit();
  Try({bytes.data(), bytes.size()});
}

}  // namespace
}  // namespace sluice

int main(int argc, char** argv) {
  sluice::SilenceWarnings();
  int tried = 0;
  for (int i = 1; i < argc; ++i) {
    for (const auto& path : sluice::FilesIn(argv[i])) {
      sluice::Replay(path);
      ++tried;
    }
  }
  std::printf("%d inputs hold\n", tried);
  return tried > 0 ? 0 : 2;
}
