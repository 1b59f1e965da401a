#include "server/state/time_spans.h"

#include <algorithm>

namespace sluice {

void TimeSpans::Add(absl::Time begin, absl::Time end) {
  if (begin == end) return;
  if (!spans_.empty() && begin <= spans_.back().end) {
    spans_.back().end = end;
    return;
  }
  spans_.push_back({begin, end});
  if (spans_.size() > kMost) spans_.pop_front();
}

absl::Duration TimeSpans::After(absl::Time begin) const {
  absl::Duration length;
  for (const Span& span : spans_) {
    length += std::max(span.end - std::max(span.begin, begin), absl::ZeroDuration());
  }
  return length;
}

}  // namespace sluice
