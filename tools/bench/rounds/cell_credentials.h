// The TLS credentials of one cell. The server makes them; the workers, which are processes of their
// own, read them from files.

#ifndef SLUICE_TOOLS_BENCH_ROUNDS_CELL_CREDENTIALS_H_
#define SLUICE_TOOLS_BENCH_ROUNDS_CELL_CREDENTIALS_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "common/net/private_directory.h"
#include "common/security/credentials_source.h"

namespace sluice::bench {

// The workers' files exist as long as this object.
struct CellCredentials {
  CredentialsSource server;
  std::unique_ptr<PrivateDirectory> directory;  // of the workers' files
};

// UNAVAILABLE if a file cannot be written; other errors are MakeLaunchCredentials()'s. From then on
// only this user may read the files that the process makes.
absl::StatusOr<CellCredentials> MakeCellCredentials();

// A server's address as a worker gets it: with the directory of its credentials, if there is one.
struct CellAddress {
  std::string address;
  std::string directory;  // empty: plaintext
};

std::string JoinAddress(const CellAddress& cell);
CellAddress SplitAddress(const std::string& text);

// Reads the files of MakeCellCredentials(). Empty if the directory is.
CredentialsSource WorkerCredentials(const std::string& directory);

}  // namespace sluice::bench

#endif  // SLUICE_TOOLS_BENCH_ROUNDS_CELL_CREDENTIALS_H_
