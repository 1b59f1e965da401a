// A participant of a cell: its server or one of its workers, each a process of its own. This header
// is for the participant. The measuring process uses tools/bench/harness/participant_link.h, and
// participants in Python use peers/participant.py.
//
// The measuring process writes lines to the participant's stdin. The participant answers each with
// a line on stdout:
//
//   line      answer                        meaning
//   (none)    "ready ADDRESS" or "ready"    the server, or the worker, is ready
//   "round"   "SECONDS"                     it has done one round, which took so long
//   "usage"   "CPU_SECONDS PEAK_BYTES"      what the process used so far, by getrusage
//
// The participant ends when its stdin ends.

#ifndef SLUICE_TOOLS_BENCH_HARNESS_PARTICIPANT_H_
#define SLUICE_TOOLS_BENCH_HARNESS_PARTICIPANT_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace CLI {
class App;
}

namespace sluice::bench {

enum class ParticipantKind { kServer, kWorker };

// A participant that mpirun starts learns kind and index from its rank instead of from flags.
struct Participant {
  ParticipantKind kind = ParticipantKind::kServer;
  uint64_t elements = 0;         // float32 numbers in the vector
  uint32_t workers = 1;          // those of the cell
  uint32_t index = 0;            // for a worker: its number
  std::string address;           // for a worker: its server, or a file through which workers meet
  std::vector<uint64_t> layers;  // elements of each array; empty: one vector
};

// Adds the flags of a participant to `app`. `participant` must outlive the parsing.
void AddParticipantFlags(CLI::App& app, Participant& participant);

// Returns the flags that AddParticipantFlags() parses into `participant`.
std::vector<std::string> ParticipantFlags(const Participant& participant);

// Prints "ready" and `detail`, then answers the lines on stdin until stdin ends. `round` does one
// round; only its time is measured. Returns the first error of `round`.
absl::Status AnswerParent(absl::string_view detail, const std::function<absl::Status()>& round);

}  // namespace sluice::bench

#endif  // SLUICE_TOOLS_BENCH_HARNESS_PARTICIPANT_H_
