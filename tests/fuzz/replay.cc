// Tries the inputs in the files of the command line: what is kept stays fixed, whatever compiler
// there is. A file that ends with .base64 has an input in each line. Exit status: 0 all hold, 2
// there is none, or a line is not base64; it dies at an input that does not hold, which is the last
// that it names.
#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "tests/fuzz/silence.h"
#include "tests/fuzz/target.h"

namespace sluice {
namespace {

// Returns how many inputs it has tried, or -1 at a line that is not base64.
int ReplayLines(const char* path) {
  std::ifstream file(path);
  int tried = 0;
  std::string bytes;
  for (std::string line; std::getline(file, line); ++tried) {
    std::fprintf(stderr, "%s:%d\n", path, tried + 1);
    if (!absl::Base64Unescape(line, &bytes)) {
      std::fprintf(stderr, "this line is not base64\n");
      return -1;
    }
    // No byte longer than they are, so that sanitizers see who reads beyond them.
    const std::vector<char> exact(bytes.begin(), bytes.end());
    Try({exact.data(), exact.size()});
  }
  return tried;
}

int Replay(const char* path) {
  if (absl::EndsWith(path, ".base64")) return ReplayLines(path);
  std::fprintf(stderr, "%s\n", path);
  std::ifstream file(path, std::ios::binary);
  std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};
  bytes.shrink_to_fit();
  Try({bytes.data(), bytes.size()});
  return 1;
}

}  // namespace
}  // namespace sluice

int main(int argc, char** argv) {
  sluice::SilenceWarnings();
  int tried = 0;
  for (int i = 1; i < argc; ++i) {
    const int more = sluice::Replay(argv[i]);
    if (more < 0) return 2;
    tried += more;
  }
  std::printf("%d inputs hold\n", tried);
  return tried > 0 ? 0 : 2;
}
