#include "server/web/http/http_feed.h"

#include <utility>

namespace sluice {

void HttpFeed::Publish(std::string text) {
  std::vector<std::function<void()>> readers;
  {
    const absl::MutexLock lock(&mu_);
    ++newest_.number;
    newest_.text = std::make_shared<const std::string>(std::move(text));
    readers.swap(parked_);
  }
  for (const auto& wake : readers) wake();
}

HttpFeed::Message HttpFeed::Next(uint64_t after, absl::FunctionRef<void()> park,
                                 std::function<void()> wake) {
  const absl::MutexLock lock(&mu_);
  if (newest_.closed || newest_.number > after) return newest_;
  park();
  parked_.push_back(std::move(wake));
  return Message();
}

void HttpFeed::Close() {
  std::vector<std::function<void()>> readers;
  {
    const absl::MutexLock lock(&mu_);
    newest_.closed = true;
    readers.swap(parked_);
  }
  for (const auto& wake : readers) wake();
}

}  // namespace sluice
