// Describes a table of rows: part of a model's Layout, beside the ranges of the vector.
// proto/sluice/v1/table.proto defines its words, and the bits of a row's first value. The functions
// here are pure; any thread may call them.

#ifndef SLUICE_COMMON_TENSOR_TABLE_SPEC_H_
#define SLUICE_COMMON_TENSOR_TABLE_SPEC_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace sluice {

using RowId = uint64_t;

// How a row begins. See RowInitializerKind in table.proto.
enum class RowInitializerKind { kZero, kUniform, kNormal };

struct RowInitializer {
  RowInitializerKind kind = RowInitializerKind::kZero;
  float scale = 0;
  uint64_t seed = 0;
};

// By what the sum of a row's gradients is divided, if the job's reduction is a mean.
enum class RowDivisor { kAllContributors, kRowContributors };

struct TableSpec {
  static constexpr size_t kMaxTables = 4096;  // of one layout
  static constexpr uint32_t kMaxWidth = 65536;
  static constexpr uint32_t kMaxAdmitAfter = 1'000'000;

  std::string name;
  uint32_t width = 0;  // elements of a row
  RowInitializer initializer;
  RowDivisor divisor = RowDivisor::kAllContributors;
  uint32_t admit_after = 0;  // steps that touch a row until it is made; 0 and 1: the first does
  uint64_t evict_after = 0;  // steps without a touch until a row is removed; 0: never
  uint64_t max_rows = 0;     // on each server; 0: as many as its memory takes
};

bool operator==(const TableSpec& a, const TableSpec& b);

// OK, or BAD_LAYOUT naming the table and the field that is outside its domain. Does not check the
// name.
absl::Status Validate(const TableSpec& table);

// "\"items\" of 64 floats, uniform 0.05 (seed 1), …" for sentences.
std::string Describe(const TableSpec& table);

// A table has this many buckets, on any number of servers. BucketOf() is the bucket of a row;
// bucket b is on server b mod S.
inline constexpr uint32_t kRowBuckets = 256;

// The finalizer of SplitMix64.
constexpr uint64_t MixId(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

constexpr uint32_t BucketOf(RowId id) { return static_cast<uint32_t>(MixId(id) >> 56); }

// BAD_ARGUMENT: a push or a pull has a row that this server does not hold.
absl::Status RowOfAnotherServer(const TableSpec& table, RowId id);

// The key of a table's first values: h in table.proto. `name_checksum` is the name's XXH3-64.
constexpr uint64_t InitializerKey(const RowInitializer& initializer, uint64_t name_checksum) {
  return MixId(initializer.seed ^ name_checksum);
}

// Writes the first value of row `id`.
void InitializeRow(const RowInitializer& initializer, uint64_t key, RowId id,
                   absl::Span<float> row);

}  // namespace sluice

#endif  // SLUICE_COMMON_TENSOR_TABLE_SPEC_H_
