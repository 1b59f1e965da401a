// Ids that are drawn by Zipf's law, as those of real embeddings are.

#ifndef SLUICE_TOOLS_BENCH_LOOKUPS_ZIPF_IDS_H_
#define SLUICE_TOOLS_BENCH_LOOKUPS_ZIPF_IDS_H_

#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "worker/data/zipf_law.h"

namespace sluice::bench {

// Externally synchronized.
class ZipfIds {
 public:
  ZipfIds(uint64_t rows, double exponent, uint64_t seed) : law_(rows, exponent), engine_(seed) {}

  std::vector<uint64_t> Draw(size_t count);

 private:
  const ZipfLaw law_;
  std::mt19937_64 engine_;
};

// The different ids, ascending.
std::vector<uint64_t> Different(std::vector<uint64_t> ids);

}  // namespace sluice::bench

#endif  // SLUICE_TOOLS_BENCH_LOOKUPS_ZIPF_IDS_H_
