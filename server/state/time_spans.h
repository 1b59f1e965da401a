// Spans of time that do not overlap, in order: when a worker had to wait for the server.

#ifndef SLUICE_SERVER_STATE_TIME_SPANS_H_
#define SLUICE_SERVER_STATE_TIME_SPANS_H_

#include <deque>

#include "absl/time/time.h"

namespace sluice {

// A plain value, externally synchronized.
class TimeSpans {
 public:
  // The most spans that are kept. A further span replaces the oldest.
  static constexpr size_t kMost = 16;

  // Adds a span, which ends no earlier than the latest one. Time that both cover counts once.
  void Add(absl::Time begin, absl::Time end);

  // The length of the parts of all spans that lie after `begin`.
  absl::Duration After(absl::Time begin) const;

 private:
  struct Span {
    absl::Time begin;
    absl::Time end;
  };

  std::deque<Span> spans_;
};

}  // namespace sluice

#endif  // SLUICE_SERVER_STATE_TIME_SPANS_H_
