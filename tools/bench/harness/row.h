// The rows of the table. Each is one way to sum gradients and to return parameters.

#ifndef SLUICE_TOOLS_BENCH_HARNESS_ROW_H_
#define SLUICE_TOOLS_BENCH_HARNESS_ROW_H_

#include <string>
#include <vector>

namespace sluice::bench {

// Something that a row needs from the machine.
struct Need {
  std::string what;                // what is missing: "python3-torch (tools/setup peers)"
  std::vector<std::string> probe;  // a command that exits with 0 if it is there
};

enum class RowLaunch {
  kDirect,  // starts each participant itself, the server first
  kMpirun,  // starts all by one mpirun; rank 0 is the server if there is one
};

// Programs are relative to the root: "tools/bench/rounds/participant_main". A name that ends in .py
// is a Python program.
struct Row {
  std::string name;                // in the table, in JSON, in --rows: "plain-unix"
  std::string program;             // that each participant runs
  std::vector<std::string> flags;  // besides those of participant.h
  RowLaunch launch = RowLaunch::kDirect;
  bool has_server = true;       // false: workers exchange gradients directly
  bool server_is_told = false;  // the server gets "round", too, not only the workers
  bool takes_layers = false;    // the vector is cut into a model's arrays (layers.h)
  bool warms_up_at_once =
      false;  // one round warms up instead of three, since a round takes seconds
  std::vector<Need> needs = {};
};

// Returns all rows. Those of Sluice come first, and their names begin with "sluice". To add a row,
// add an entry. `python` is the interpreter that has the distribution's packages.
std::vector<Row> AllRows(const std::string& python);

inline bool IsSluice(const Row& row) { return row.name.rfind("sluice", 0) == 0; }

}  // namespace sluice::bench

#endif  // SLUICE_TOOLS_BENCH_HARNESS_ROW_H_
