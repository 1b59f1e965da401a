// How long a worker uses rows of tables that it has pulled; see row_cache.h.

#ifndef SLUICE_WORKER_CLIENT_ROW_CACHE_OPTIONS_H_
#define SLUICE_WORKER_CLIENT_ROW_CACHE_OPTIONS_H_

#include <cstdint>

namespace sluice {

struct RowCacheOptions {
  uint64_t max_age = 0;              // in steps; 0: no row is used again
  uint64_t max_bytes = 256'000'000;  // of the rows of all tables, which have equal shares
};

}  // namespace sluice

#endif  // SLUICE_WORKER_CLIENT_ROW_CACHE_OPTIONS_H_
