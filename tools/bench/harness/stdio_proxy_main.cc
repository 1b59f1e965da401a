// stdio_proxy_main SOCKET PROGRAM [ARGUMENT…]: becomes PROGRAM, a rank of an mpirun, with stdin and
// stdout connected to the unix socket SOCKET, on which tools/bench/harness/mpirun.h listens. Exit
// code 1: it could not connect or start PROGRAM.

#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <initializer_list>

namespace {

// Returns the rank that Open MPI or PMIx says, or −1.
int Rank() {
  for (const char* name : {"OMPI_COMM_WORLD_RANK", "PMIX_RANK"}) {
    const char* const rank = getenv(name);
    if (rank != nullptr) return atoi(rank);
  }
  return -1;
}

bool Tie(const char* path) {
  sockaddr_un name = {};
  name.sun_family = AF_UNIX;
  strncpy(name.sun_path, path, sizeof(name.sun_path) - 1);
  const int tie = socket(AF_UNIX, SOCK_STREAM, 0);
  const auto rank = static_cast<uint32_t>(Rank());
  return connect(tie, reinterpret_cast<const sockaddr*>(&name), sizeof(name)) == 0 &&
         send(tie, &rank, sizeof(rank), 0) == sizeof(rank) && dup2(tie, STDIN_FILENO) >= 0 &&
         dup2(tie, STDOUT_FILENO) >= 0 && close(tie) == 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc >= 3 && Tie(argv[1])) execvp(argv[2], argv + 2);
  perror("stdio_proxy_main");
  return 1;
}
