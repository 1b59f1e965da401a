// Records which connection opened each session. That connection owns the session.
//
// Several observers may share a certificate, and a caller can guess a session's number from another
// session's. So a caller that has only the role observer may name only the sessions that were
// joined on its own connection. Such callers exist only with TLS, which means TCP. There the peer
// of a context names one connection.

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
  // In place of a connection, for OpenObserver(): any may use the session.
  static constexpr char kAnyConnection[] = "*";
  // Join's stream has ended.
  void Close(SessionId session);

  // Returns OK if an observer has joined the session on that connection, WRONG_ROLE if it is a
  // worker's session, and UNKNOWN_SESSION otherwise.
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
