// The cells of the table, and the measurements of each.

#ifndef SLUICE_TOOLS_BENCH_HARNESS_CELL_H_
#define SLUICE_TOOLS_BENCH_HARNESS_CELL_H_

#include <cstdint>
#include <vector>

#include "tools/bench/harness/row.h"

namespace sluice::bench {

struct Cell {
  Row row;
  uint64_t elements = 0;  // float32 numbers in the vector
  uint32_t workers = 1;
};

// The measured rounds of a cell, from all passes.
struct Measurement {
  std::vector<double> seconds;     // of the slowest worker, by round
  double server_cpu_seconds = 0;   // of all rounds together
  double workers_cpu_seconds = 0;  // of all rounds and all workers together
  uint64_t server_peak_bytes = 0;  // 0: there is no server
  uint64_t worker_peak_bytes = 0;  // of the worker that needed most
};

// A cell and at least one round of it.
struct Result {
  Cell cell;
  Measurement measurement;
};

struct Spread {
  double median = 0;
  double min = 0;
  double max = 0;
};

// `values` holds at least one value. The median of an even number of values is the mean of the
// middle two.
Spread SpreadOf(std::vector<double> values);

// The user and system time of one round, on average: of the server, and of all workers together.
double ServerCpuPerRound(const Measurement& measurement);
double WorkersCpuPerRound(const Measurement& measurement);

// How many float32 numbers a vector of `megabytes` million bytes has, rounded up.
uint64_t ElementsOf(double megabytes);
inline uint64_t Bytes(const Cell& cell) { return cell.elements * sizeof(float); }
inline double Megabytes(uint64_t bytes) { return static_cast<double>(bytes) / 1e6; }

}  // namespace sluice::bench

#endif  // SLUICE_TOOLS_BENCH_HARNESS_CELL_H_
