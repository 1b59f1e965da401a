// The server that this process runs: the first one of its job, or another one, which holds a
// stripe. Used by the programs, so that they need not know which it is.

#ifndef SLUICE_SERVER_PROGRAM_JOB_SERVER_H_
#define SLUICE_SERVER_PROGRAM_JOB_SERVER_H_

#include <memory>

#include "common/net/address.h"
#include "server/replica_server.h"
#include "server/server.h"

namespace sluice {

// Used by the thread that started the server.
class JobServer {
 public:
  // Whose exit code says why the job ends. Under mpirun one rank's; see common/launch/failure.h.
  enum class Speaker { kEveryServer, kFirstServer };

  explicit JobServer(std::unique_ptr<Server> first);
  JobServer(std::unique_ptr<ReplicaServer> replica, Speaker speaker);
  ~JobServer();

  // Where it listens.
  const Address& address() const;

  // Serves until the job is over; then the leader prints the closing table. Returns the process's
  // exit code, that of Server::Serve() or ReplicaServer::Serve(). But if only the leader speaks, a
  // replica whose job the leader has ended returns 0.
  int Serve();

 private:
  const std::unique_ptr<Server> first_;           // or null
  const std::unique_ptr<ReplicaServer> replica_;  // or null
  const Speaker speaker_;
};

}  // namespace sluice

#endif  // SLUICE_SERVER_PROGRAM_JOB_SERVER_H_
