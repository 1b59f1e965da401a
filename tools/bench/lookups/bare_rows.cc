#include "tools/bench/lookups/bare_rows.h"

#include <algorithm>

namespace sluice::bench {
namespace {

constexpr size_t kAhead = 8;  // rows that are fetched ahead
constexpr size_t kFloatsOfLine = 16;

uint64_t PowerOfTwoFrom(uint64_t rows) {
  uint64_t power = 1;
  while (power < rows) power *= 2;
  return power;
}

void Fetch(const float* record, size_t floats) {
  for (size_t i = 0; i < floats; i += kFloatsOfLine) __builtin_prefetch(record + i);
}

}  // namespace

BareRows::BareRows(uint64_t rows, size_t width, size_t slots)
    : width_(width),
      record_(width * (1 + slots)),
      mask_(PowerOfTwoFrom(rows) - 1),
      records_((mask_ + 1) * record_) {}

void BareRows::Read(absl::Span<const uint64_t> ids, absl::Span<float> to) const {
  for (size_t i = 0; i < ids.size(); ++i) {
    if (i + kAhead < ids.size()) Fetch(&records_[PlaceOf(ids[i + kAhead])], width_);
    std::copy_n(&records_[PlaceOf(ids[i])], width_, &to[i * width_]);
  }
}

void BareRows::Add(absl::Span<const uint64_t> ids, absl::Span<const float> gradients) {
  for (size_t i = 0; i < ids.size(); ++i) {
    if (i + kAhead < ids.size()) Fetch(&records_[PlaceOf(ids[i + kAhead])], record_);
    float* const record = &records_[PlaceOf(ids[i])];
    const float* const gradient = &gradients[i * width_];
    for (size_t at = 0; at < record_; at += width_) {
      for (size_t j = 0; j < width_; ++j) record[at + j] += gradient[j];
    }
  }
}

}  // namespace sluice::bench
