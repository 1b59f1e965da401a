// The flags for what a server writes to disk.

#ifndef SLUICE_SERVER_DURABLE_FLAGS_H_
#define SLUICE_SERVER_DURABLE_FLAGS_H_

#include "server/durable/durable_options.h"

namespace CLI {
class App;
}

namespace sluice {

// Declares the flags in a group of `app`. `options` must outlive the parsing.
void AddDurableFlags(CLI::App& app, DurableOptions& options);

}  // namespace sluice

#endif  // SLUICE_SERVER_DURABLE_FLAGS_H_
