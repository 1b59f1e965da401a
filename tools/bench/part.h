// A part of a cell: its server or one of its workers, each a process of its own.
//
// gRPC cannot be forked, so a part is this program started once more, with hidden flags that say
// which part it is. The process that measures writes lines to the part's stdin, and the part
// answers each with a line on stdout:
//
//   (once it is ready)  "ready ADDRESS"              a server; "ready" a worker
//   "round"             "SECONDS"                    workers only: does one round
//   "usage"             "CPU_SECONDS PEAK_BYTES"     of the process so far, by getrusage
//
// The end of stdin is the end of the part.

#ifndef SLUICE_TOOLS_BENCH_PART_H_
#define SLUICE_TOOLS_BENCH_PART_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "tools/bench/cell.h"

namespace CLI {
class App;
}

namespace sluice::bench {

enum class PartKind { kNone, kServer, kWorker };

struct Part {
  PartKind kind = PartKind::kNone;  // none: the process that measures
  Cell cell;
  uint32_t index = 0;   // of a worker
  std::string address;  // a worker's server
};

// Adds the hidden flags to `app`. `part` outlives the parsing.
void AddPartFlags(CLI::App& app, Part& part);

// The hidden flags that make `part`.
std::vector<std::string> PartFlags(const Part& part);

// "the Sluice worker 2 of 4".
std::string Describe(const Part& part);

// Says "ready", followed by `detail`, then answers the lines on stdin until they end. `round` does
// one round; only its own time is measured, and the first error it gives is returned.
absl::Status AnswerParent(absl::string_view detail, const std::function<absl::Status()>& round);

}  // namespace sluice::bench

#endif  // SLUICE_TOOLS_BENCH_PART_H_
