// A part of a cell: its server or one of its workers, each a process of its own. This is a part's
// own half; tools/bench/harness/part_link.h is the other, and peers/part.py is this for Python.
//
// The process that measures writes lines to the part's stdin, and the part answers each with a line
// on stdout:
//
//   (once it is ready)  "ready ADDRESS"              a server; "ready" a worker
//   "round"             "SECONDS"                    does one round
//   "usage"             "CPU_SECONDS PEAK_BYTES"     of the process so far, by getrusage
//
// The end of stdin is the end of the part.

#ifndef SLUICE_TOOLS_BENCH_HARNESS_PART_H_
#define SLUICE_TOOLS_BENCH_HARNESS_PART_H_

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

enum class PartKind { kServer, kWorker };

// Those that mpirun starts know kind and index by their rank; the flags do not tell them.
struct Part {
  PartKind kind = PartKind::kServer;
  uint64_t elements = 0;         // float32 numbers in the vector
  uint32_t workers = 1;          // in the cell
  uint32_t index = 0;            // of a worker
  std::string address;           // a worker's server, or a file where workers meet
  std::vector<uint64_t> layers;  // elements of each array; empty: one vector
};

// Adds the flags of a part to `app`. `part` outlives the parsing.
void AddPartFlags(CLI::App& app, Part& part);

// The flags that make `part`.
std::vector<std::string> PartFlags(const Part& part);

// Says "ready", followed by `detail`, then answers the lines on stdin until they end. `round` does
// one round; only its own time is measured, and the first error it gives is returned.
absl::Status AnswerParent(absl::string_view detail, const std::function<absl::Status()>& round);

}  // namespace sluice::bench

#endif  // SLUICE_TOOLS_BENCH_HARNESS_PART_H_
