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

// Safe to use from any thread. One listener serves a feed, and closes it when it ends; nothing is
// published at that time.
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
  // later `wake`, once, when there is one or the feed is closed. `park` is called under the feed's
  // mutex and must not use the feed; `wake` is called by the publisher's thread.
  Message Next(uint64_t after, absl::FunctionRef<void()> park, std::function<void()> wake);

  void Close();  // wakes all readers

 private:
  absl::Mutex mu_;
  Message newest_ ABSL_GUARDED_BY(mu_);
  std::vector<std::function<void()>> parked_ ABSL_GUARDED_BY(mu_);
};

}  // namespace sluice

#endif  // SLUICE_SERVER_WEB_HTTP_HTTP_FEED_H_
