// Who opened which session. The connection on which a session was joined owns it.
//
// A certificate does not tell observers apart, since several may share one, and the number of a
// session can be guessed from another one. So a caller with the role observer only may name only
// sessions that were joined on its own connection. Only TLS, and so TCP, has such callers, and
// there the peer of a context names one connection.

#ifndef SLUICE_SERVER_RPC_ACCESS_SESSION_OWNERS_H_
#define SLUICE_SERVER_RPC_ACCESS_SESSION_OWNERS_H_

#include <map>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "common/base/ids.h"

namespace sluice {

// May be used by any thread.
class SessionOwners {
 public:
  // A worker's or an observer's session. `connection` is the peer of the context of its Join.
  void OpenWorker(SessionId session) { Open(session, {true, ""}); }
  void OpenObserver(SessionId session, std::string connection) {
    Open(session, {false, std::move(connection)});
  }
  // Join's stream has ended.
  void Close(SessionId session);

  // OK for a session that an observer has joined on that connection. WRONG_ROLE for a worker's
  // session, and UNKNOWN_SESSION for any other.
  absl::Status CheckObserves(SessionId session, absl::string_view connection) const;

 private:
  struct Owner {
    bool works;
    std::string connection;
  };

  void Open(SessionId session, Owner owner);

  mutable absl::Mutex mu_;
  std::map<SessionId, Owner> owners_ ABSL_GUARDED_BY(mu_);
};

}  // namespace sluice

#endif  // SLUICE_SERVER_RPC_ACCESS_SESSION_OWNERS_H_
