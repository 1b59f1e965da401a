// The command line of what a server keeps on disk.

#ifndef SLUICE_SERVER_DURABLE_FLAGS_H_
#define SLUICE_SERVER_DURABLE_FLAGS_H_

#include "server/durable/directory.h"

namespace CLI {
class App;
}

namespace sluice {

// Adds them to `app`, in a group of their own. `options` outlives the parsing.
void AddDurableFlags(CLI::App& app, DurableOptions& options);

}  // namespace sluice

#endif  // SLUICE_SERVER_DURABLE_FLAGS_H_
