#include "tools/bench/lookups/zipf_ids.h"

#include <algorithm>

namespace sluice::bench {

std::vector<uint64_t> ZipfIds::Draw(size_t count) {
  std::uniform_real_distribution<double> uniform(0, 1);
  std::vector<uint64_t> ids(count);
  for (uint64_t& id : ids) id = law_.Draw([&] { return uniform(engine_); });
  return ids;
}

std::vector<uint64_t> Different(std::vector<uint64_t> ids) {
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  return ids;
}

}  // namespace sluice::bench
