#include "common/tensor/coverage.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "common/base/error.h"

namespace sluice {
namespace {

absl::Status BadChunk(uint64_t offset, uint64_t length, absl::string_view problem) {
  return MakeError(Reason::kBadChunk,
                   absl::StrCat("chunk of ", length, " elements at offset ", offset, " ", problem));
}

}  // namespace

absl::Status Coverage::Add(uint64_t offset, uint64_t length) {
  if (length == 0) return BadChunk(offset, length, "is empty; leave it out");
  if (offset > size_ || length > size_ - offset) {
    return BadChunk(offset, length,
                    absl::StrCat("lies outside the vector of ", size_, " elements"));
  }
  const uint64_t end = offset + length;
  auto after = runs_.lower_bound(offset);
  if (after != runs_.end() && after->first < end) {
    return BadChunk(
        offset, length,
        absl::StrCat("overlaps elements from ", after->first, " on, which arrived before"));
  }
  auto before = after == runs_.begin() ? runs_.end() : std::prev(after);
  if (before != runs_.end() && before->second > offset) {
    return BadChunk(
        offset, length,
        absl::StrCat("overlaps elements before ", before->second, ", which arrived before"));
  }
  const bool joins_before = before != runs_.end() && before->second == offset;
  const bool joins_after = after != runs_.end() && after->first == end;
  if (!joins_before && !joins_after && runs_.size() >= kMaxFragments) {
    return BadChunk(offset, length,
                    absl::StrCat("would leave the vector in more than ", kMaxFragments,
                                 " pieces; send neighbouring chunks together"));
  }
  uint64_t run_end = end;
  if (joins_after) {
    run_end = after->second;
    runs_.erase(after);
  }
  if (joins_before) {
    before->second = run_end;
  } else {
    runs_.emplace(offset, run_end);
  }
  covered_ += length;
  return absl::OkStatus();
}

absl::Status Coverage::CheckComplete() const {
  const absl::optional<Gap> gap = FirstGap();
  if (!gap.has_value()) return absl::OkStatus();
  return MakeError(Reason::kBadChunk, absl::StrCat("elements ", gap->begin, " to ", gap->end - 1,
                                                   " are missing: ", covered_, " of ", size_,
                                                   " arrived before the stream's end"));
}

absl::optional<Coverage::Gap> Coverage::FirstGap(uint64_t from) const {
  const auto next = runs_.upper_bound(from);
  if (next != runs_.begin()) from = std::max(from, std::prev(next)->second);
  if (from >= size_) return absl::nullopt;
  return Gap{from, next == runs_.end() ? size_ : next->first};
}

}  // namespace sluice
