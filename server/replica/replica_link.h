// The leader's link to one replica.

#ifndef SLUICE_SERVER_REPLICA_REPLICA_LINK_H_
#define SLUICE_SERVER_REPLICA_REPLICA_LINK_H_

#include "server/replica/replica_commands.h"

namespace sluice {

// One thread at a time calls it. Reports come to whom the link was made with.
class ReplicaLink {
 public:
  virtual ~ReplicaLink() = default;

  // Appends a command to the replica's log. A link to another server does not wait for it.
  virtual void Send(const ReplicaCommand& command) = 0;

  // Whether the replica has come, and then lets nothing be heard: it is stopped, or cannot be
  // reached. Meanwhile no step waits too long for a worker. Any thread may ask.
  virtual bool silent() const = 0;
};

}  // namespace sluice

#endif  // SLUICE_SERVER_REPLICA_REPLICA_LINK_H_
