#include "server/web/http/http_feed.h"

#include <utility>

namespace sluice {

void HttpFeed::Publish(std::string text) {
  const absl::MutexLock lock(&mu_);
  ++newest_.number;
  newest_.text = std::make_shared<const std::string>(std::move(text));
  WakeAll();
}

HttpFeed::Message HttpFeed::Next(uint64_t after, absl::FunctionRef<void()> park,
                                 std::function<void()> wake) {
  const absl::MutexLock lock(&mu_);
  if (newest_.number > after) return newest_;
  Message none;
  none.closed = closed_;
  if (closed_) return none;
  park();
  parked_.push_back(std::move(wake));
  return none;
}

void HttpFeed::Close() {
  const absl::MutexLock lock(&mu_);
  closed_ = true;
  WakeAll();
}

// Under the mutex: else the listener could end, after Close(), while a publisher still wakes the
// readers that it took before, whose connections are gone by then.
void HttpFeed::WakeAll() {
  for (const auto& wake : parked_) wake();
  parked_.clear();
}

}  // namespace sluice
