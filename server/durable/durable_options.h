// The options of a directory in which a server saves its state.

#ifndef SLUICE_SERVER_DURABLE_DURABLE_OPTIONS_H_
#define SLUICE_SERVER_DURABLE_DURABLE_OPTIONS_H_

#include <cstdint>
#include <string>

namespace sluice {

// How much of the training a crash of the server may lose.
enum class Durability {
  kMemory,   // the steps since the last checkpoint
  kJournal,  // nothing that a worker was told of
};

struct DurableOptions {
  std::string directory;
  uint64_t checkpoint_every = 0;  // steps; 0: only at the beginning, at the end, or on request
  uint32_t keep_checkpoints = 3;
  Durability durability = Durability::kMemory;
  uint32_t servers = 1;  // of the job; the directory is that of the leader
};

}  // namespace sluice

#endif  // SLUICE_SERVER_DURABLE_DURABLE_OPTIONS_H_
