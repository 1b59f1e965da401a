// Works on buckets in stages, so that memory is asked for in one stage and there in the next.
//
// A row costs several misses of the cache: its bucket, the index and its record. A bucket has few
// rows of a batch. So memory is awaited for the rows of several buckets at a time.

#ifndef SLUICE_SERVER_TABLES_STAGES_H_
#define SLUICE_SERVER_TABLES_STAGES_H_

#include <cstddef>

namespace sluice {

// Calls stage(i) of each of the stages for each i in [begin, end), in ascending order of i. A stage
// has i when the stage before it has had i + 1, or all.
template <typename... Stages>
void InStages(size_t begin, size_t end, const Stages&... stages) {
  for (size_t first = begin; first < end + sizeof...(stages) - 1; ++first) {
    size_t behind = 0;
    const auto advance = [&](const auto& stage) {
      if (first >= begin + behind && first < end + behind) stage(first - behind);
      ++behind;
    };
    (advance(stages), ...);
  }
}

}  // namespace sluice

#endif  // SLUICE_SERVER_TABLES_STAGES_H_
