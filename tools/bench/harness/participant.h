// A participant of a cell: its server or one of its workers, each a process of its own. This is a
// participant's own half; tools/bench/harness/participant_link.h is the other, and
// peers/participant.py is this for Python.
//
// The process that measures writes lines to the participant's stdin, and the participant answers
// each with a line on stdout:
//
//   (once it is ready)  "ready ADDRESS"              a server; "ready" a worker
//   "round"             "SECONDS"                    does one round
//   "usage"             "CPU_SECONDS PEAK_BYTES"     of the process so far, by getrusage
//
// The end of stdin is the end of the participant.

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

// Those that mpirun starts know kind and index by their rank; the flags do not tell them.
struct Participant {
  ParticipantKind kind = ParticipantKind::kServer;
  uint64_t elements = 0;         // float32 numbers in the vector
  uint32_t workers = 1;          // in the cell
  uint32_t index = 0;            // of a worker
  std::string address;           // a worker's server, or a file where workers meet
  std::vector<uint64_t> layers;  // elements of each array; empty: one vector
};

// Adds the flags of a participant to `app`. `participant` outlives the parsing.
void AddParticipantFlags(CLI::App& app, Participant& participant);

// The flags that make `participant`.
std::vector<std::string> ParticipantFlags(const Participant& participant);

// Says "ready", followed by `detail`, then answers the lines on stdin until they end. `round` does
// one round; only its own time is measured, and the first error it gives is returned.
absl::Status AnswerParent(absl::string_view detail, const std::function<absl::Status()>& round);

}  // namespace sluice::bench

#endif  // SLUICE_TOOLS_BENCH_HARNESS_PARTICIPANT_H_
