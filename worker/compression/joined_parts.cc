#include "worker/compression/joined_parts.h"

#include <iterator>

namespace sluice {
namespace {

bool Touch(uint64_t offset, const SharedFloats& first, uint64_t next_offset,
           const SharedFloats& next) {
  return offset + first.values.size() == next_offset &&
         first.values.data() + first.values.size() == next.values.data() &&
         first.owner == next.owner;
}

SharedFloats Join(const SharedFloats& first, const SharedFloats& next) {
  return {{first.values.data(), first.values.size() + next.values.size()}, first.owner};
}

}  // namespace

JoinedParts::Run JoinedParts::Add(uint64_t offset, const SharedFloats& part) {
  auto run = runs_.emplace(offset, part).first;
  const auto after = std::next(run);
  if (after != runs_.end() && Touch(run->first, run->second, after->first, after->second)) {
    run->second = Join(run->second, after->second);
    runs_.erase(after);
  }
  if (run != runs_.begin()) {
    const auto before = std::prev(run);
    if (Touch(before->first, before->second, run->first, run->second)) {
      before->second = Join(before->second, run->second);
      runs_.erase(run);
      run = before;
    }
  }
  return {run->first, run->second};
}

}  // namespace sluice
