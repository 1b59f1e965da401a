// What is measured: the cells of the table, and what is known of each.

#ifndef SLUICE_TOOLS_BENCH_CELL_H_
#define SLUICE_TOOLS_BENCH_CELL_H_

#include <cstdint>
#include <vector>

namespace sluice::bench {

enum class Side {
  kSluice,  // a push and a pull through Sluice
  kPlain,   // the same bytes, copied there and back by plain sockets
};

enum class SocketKind { kUnix, kTcp };

struct Cell {
  Side side = Side::kSluice;
  SocketKind socket = SocketKind::kUnix;
  uint64_t elements = 0;  // float32 numbers in the vector
  uint32_t workers = 1;
};

// All measured rounds of a cell, whatever pass they belong to.
struct Measurement {
  std::vector<double> seconds;     // of the slowest worker, by round
  double server_cpu_seconds = 0;   // of all rounds together
  double workers_cpu_seconds = 0;  // of all rounds and all workers together
  uint64_t server_peak_bytes = 0;
  uint64_t worker_peak_bytes = 0;  // of the worker that needed most
};

inline const char* SideName(Side side) { return side == Side::kSluice ? "sluice" : "plain"; }
inline const char* SocketName(SocketKind socket) {
  return socket == SocketKind::kUnix ? "unix" : "tcp";
}
inline uint64_t Bytes(const Cell& cell) { return cell.elements * sizeof(float); }
inline double Megabytes(uint64_t bytes) { return static_cast<double>(bytes) / 1e6; }

}  // namespace sluice::bench

#endif  // SLUICE_TOOLS_BENCH_CELL_H_
