// Knows to which sessions parameters are being sent at this moment, for people who look.

#ifndef SLUICE_SERVER_STATE_ACTIVE_PULLS_H_
#define SLUICE_SERVER_STATE_ACTIVE_PULLS_H_

#include <cstdint>
#include <map>
#include <set>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "common/base/ids.h"

namespace sluice {

// Any thread may call any method.
class ActivePulls {
 public:
  // A stream that sends parameters, for as long as the object lives. `pulls` outlives it.
  class Stream {
   public:
    Stream(ActivePulls& pulls, SessionId session) : pulls_(pulls), session_(session) {
      pulls_.Add(session_);
    }
    ~Stream() { pulls_.Remove(session_); }

    Stream(const Stream&) = delete;
    Stream& operator=(const Stream&) = delete;

   private:
    ActivePulls& pulls_;
    const SessionId session_;
  };

  // The sessions that have such a stream.
  std::set<SessionId> Sessions() const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  void Add(SessionId session) ABSL_LOCKS_EXCLUDED(mu_);
  void Remove(SessionId session) ABSL_LOCKS_EXCLUDED(mu_);

  mutable absl::Mutex mu_;
  std::map<SessionId, uint32_t> streams_ ABSL_GUARDED_BY(mu_);  // how many; none is 0
};

}  // namespace sluice

#endif  // SLUICE_SERVER_STATE_ACTIVE_PULLS_H_
