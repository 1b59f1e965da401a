// The newest message of a stream of events, for any number of readers. A reader that is slow skips
// messages: it gets the one that is the newest when it is ready. So nobody waits for it, and its
// messages take no memory.

#ifndef SLUICE_SERVER_WEB_HTTP_HTTP_FEED_H_
#define SLUICE_SERVER_WEB_HTTP_HTTP_FEED_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/synchronization/mutex.h"

namespace sluice {

// Safe to use from any thread. One listener serves a feed, and closes it when it ends. Then nobody
// reads it, and what is published reaches nobody.
class HttpFeed {
 public:
  struct Message {
    uint64_t number = 0;                      // grows with each message
    std::shared_ptr<const std::string> text;  // null: there is none yet
    bool closed = false;                      // there will be none any more
  };

  // Replaces the message. `text` is sent as it is: one event with its empty line (HTML, "9.2
  // Server-sent events").
  void Publish(std::string text);

  // The newest message if it is newer than number `after`. If there is none, calls `park`, and
  // later `wake`, once, when there is one or the feed is closed. Who is late still gets the last
  // message of a closed feed. Both are called under the feed's mutex and must not use the feed;
  // `wake` by the publisher's thread or the one that closes.
  Message Next(uint64_t after, absl::FunctionRef<void()> park, std::function<void()> wake);

  // Wakes all readers. Afterwards, no `wake` is under way.
  void Close();

 private:
  void WakeAll() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  absl::Mutex mu_;
  Message newest_ ABSL_GUARDED_BY(mu_);
  bool closed_ ABSL_GUARDED_BY(mu_) = false;
  std::vector<std::function<void()>> parked_ ABSL_GUARDED_BY(mu_);
};

}  // namespace sluice

#endif  // SLUICE_SERVER_WEB_HTTP_HTTP_FEED_H_
