// The parts of a vector that have come so far, in any order. Neighbours are joined, so that a chunk
// that lies in several parts is found in one.

#ifndef SLUICE_WORKER_COMPRESSION_JOINED_PARTS_H_
#define SLUICE_WORKER_COMPRESSION_JOINED_PARTS_H_

#include <cstdint>
#include <map>

#include "common/tensor/shared_floats.h"

namespace sluice {

// Externally synchronized.
class JoinedParts {
 public:
  // Elements of the vector from `offset` on.
  struct Run {
    uint64_t offset = 0;
    SharedFloats floats;
  };

  // Takes the elements from `offset` on, which have not come before. Returns the run of all
  // neighbours that they are in. Parts in different memory are no neighbours.
  Run Add(uint64_t offset, const SharedFloats& part);

  void Clear() { runs_.clear(); }

 private:
  std::map<uint64_t, SharedFloats> runs_;  // by their offsets
};

}  // namespace sluice

#endif  // SLUICE_WORKER_COMPRESSION_JOINED_PARTS_H_
