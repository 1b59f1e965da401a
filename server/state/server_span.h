// The parts of the server's work whose length somebody may measure, for example for metrics.

#ifndef SLUICE_SERVER_STATE_SERVER_SPAN_H_
#define SLUICE_SERVER_STATE_SERVER_SPAN_H_

#include <cstddef>
#include <functional>

#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "common/base/clock.h"

namespace sluice {

enum class ServerSpan {
  kStep,         // since the step before was published; of the first, since its first gradient
  kWait,         // of a step: from its first gradient until none is missing
  kAccumulate,   // of a step: adding its gradients, except the one that the apply pass adds
  kApply,        // of a step: the optimizer's pass
  kPublish,      // of a step: giving it to the journal, publishing it, answering pushes and pulls
  kEncode,       // making the messages of the pulls of a snapshot, in one encoding
  kJournalSync,  // syncing the journal's file
};

inline constexpr size_t kServerSpans = static_cast<size_t>(ServerSpan::kJournalSync) + 1;

// Called without the shard's mutex, from any thread. It must be quick: a step waits for it.
using SpanListener = std::function<void(ServerSpan span, absl::Duration length)>;

// Measures its own scope. Reads no clock if nobody listens.
class SpanTimer {
 public:
  // `listener`, which may be null, and `clock` outlive it.
  SpanTimer(const SpanListener& listener, const Clock& clock, ServerSpan span)
      : listener_(listener), clock_(clock), span_(span) {
    if (listener_ != nullptr) began_ = clock_.Now();
  }
  ~SpanTimer() {
    if (began_.has_value()) listener_(span_, clock_.Now() - *began_);
  }

  SpanTimer(const SpanTimer&) = delete;
  SpanTimer& operator=(const SpanTimer&) = delete;

 private:
  const SpanListener& listener_;
  const Clock& clock_;
  const ServerSpan span_;
  absl::optional<absl::Time> began_;
};

}  // namespace sluice

#endif  // SLUICE_SERVER_STATE_SERVER_SPAN_H_
