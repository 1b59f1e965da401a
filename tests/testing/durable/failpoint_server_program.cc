// sluice_server, whose process dies by SIGKILL when a failpoint is reached.
//
//   failpoint_server_program journal.sync.before:3 and the flags of sluice_server

#include <signal.h>

#include <iostream>

#include "absl/strings/str_cat.h"
#include "server/program/server_program.h"
#include "tests/testing/durable/failpoints.h"

namespace sluice {
namespace {

int Main(int argc, char** argv) {
  const auto point = Failpoint::Parse(argc > 1 ? argv[1] : "");
  if (!point.ok()) {
    std::cerr << absl::StrCat("failpoint_server_program: ", point.status().message(), "\n");
    return 2;
  }
  FailpointFiles files(RealFileSystem(), *point, [] { raise(SIGKILL); });
  argv[1] = argv[0];
  ServerProgramOptions options;
  options.files = &files;
  return RunServerProgram(argc - 1, argv + 1, options);
}

}  // namespace
}  // namespace sluice

int main(int argc, char** argv) { return sluice::Main(argc, argv); }
