// The limit on the files, sockets included, that this process may have open.

#ifndef SLUICE_SERVER_RPC_LISTENING_OPEN_FILES_H_
#define SLUICE_SERVER_RPC_LISTENING_OPEN_FILES_H_

#include <cstdint>

namespace sluice {

struct OpenFiles {
  uint64_t now = 0;   // the limit that is in force (the soft limit)
  uint64_t most = 0;  // what it may be raised to (the hard limit)
};

OpenFiles OpenFilesLimit();

// Raises the limit as far as the system allows, but not beyond a million. Returns the new one. Call
// it before threads are started.
OpenFiles RaiseOpenFilesLimit();

}  // namespace sluice

#endif  // SLUICE_SERVER_RPC_LISTENING_OPEN_FILES_H_
