// The threads of a server for what grows with the model, and for callbacks of the server's program.
// While they work, gRPC's few threads stay free for heartbeats, joins and the Inspector.
//
// Each kind of work has threads of its own, so that none waits for another kind. Tasks that wait
// are bounded by what their callers wait for: a push or a pull has one at a time.

#ifndef SLUICE_SERVER_REPLICA_EXECUTORS_H_
#define SLUICE_SERVER_REPLICA_EXECUTORS_H_

#include <cstddef>
#include <map>
#include <memory>
#include <string>

#include "common/base/executor.h"

namespace sluice {

struct Executors {
  // On the calling threads, as tests and the simulation need it.
  static Executors Inline();
  static Executors OnThreads();

  // Waits until no task is left.
  void Drain();

  // How many tasks wait or run on each of the first five, by the name of its threads without
  // "sluice-".
  std::map<std::string, size_t> Tasks() const;

  std::unique_ptr<Executor> arrivals;  // checks and decodes large chunks; copies initial parameters
  std::unique_ptr<Executor> steps;     // accumulates, applies, takes checkpoints; one thread
  std::unique_ptr<Executor> encodings;  // makes the messages of large pulls
  std::unique_ptr<Executor> summaries;  // for the Inspector
  std::unique_ptr<Executor> hooks;      // ShardOptions::on_attachments; one thread
  // Writes a replica's files; one thread. On the calling thread, unless the owner replaces it.
  std::unique_ptr<Executor> files = std::make_unique<InlineExecutor>();
};

}  // namespace sluice

#endif  // SLUICE_SERVER_REPLICA_EXECUTORS_H_
