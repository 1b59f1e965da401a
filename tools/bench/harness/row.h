// The rows of the table: each a way to bring gradients together and take parameters back.

#ifndef SLUICE_TOOLS_BENCH_HARNESS_ROW_H_
#define SLUICE_TOOLS_BENCH_HARNESS_ROW_H_

#include <string>
#include <vector>

namespace sluice::bench {

// What a row cannot do without.
struct Need {
  std::string what;                // what to do about it: "python3-torch (tools/setup peers)"
  std::vector<std::string> probe;  // a command that ends with 0 if it is there
};

enum class Launch {
  kDirect,  // each participant by itself, the server first
  kMpirun,  // all participants at once, by mpirun; rank 0 is the server if there is one
};

// Programs are named from the root: "tools/bench/rounds/participant_main". Those that end in .py
// are Python's.
struct Row {
  std::string name;     // in the table, in JSON, in --rows: "plain-unix"
  std::string program;  // of each participant
  std::vector<std::string>
      flags;  // on top of those that make a participant (tools/bench/harness/participant.h)
  Launch launch = Launch::kDirect;
  bool has_server = true;       // else the workers are among themselves
  bool server_is_told = false;  // the server is told of each round; others serve when asked
  bool takes_layers =
      false;  // the vector is cut as a model's arrays (tools/bench/harness/layers.h)
  bool warms_up_at_once = false;  // one round warms up, not three: for those that take seconds
  std::vector<Need> needs = {};
};

// All rows, Sluice's own first, their names beginning with "sluice". A new one is one entry more.
// `python` is the interpreter that sees the distribution's packages.
std::vector<Row> AllRows(const std::string& python);

inline bool IsSluice(const Row& row) { return row.name.rfind("sluice", 0) == 0; }

}  // namespace sluice::bench

#endif  // SLUICE_TOOLS_BENCH_HARNESS_ROW_H_
