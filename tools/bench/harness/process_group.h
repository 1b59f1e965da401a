// The processes of a cell, from their start to their end.

#ifndef SLUICE_TOOLS_BENCH_HARNESS_PROCESS_GROUP_H_
#define SLUICE_TOOLS_BENCH_HARNESS_PROCESS_GROUP_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/net/private_directory.h"
#include "tools/bench/harness/cell.h"
#include "tools/bench/harness/child.h"
#include "tools/bench/harness/participant.h"
#include "tools/bench/harness/participant_link.h"

namespace sluice::bench {

// Where the programs lie.
struct Programs {
  std::string root = ".";  // of the names in rows
  std::string python = "/usr/bin/python3";
};

// Of all rounds so far. The workers': CPU of all together, memory of the one that needed most.
struct GroupUsage {
  Usage server;
  Usage workers;
};

// The command that starts `program`, by the interpreter if it is Python's.
std::vector<std::string> CommandOf(const Programs& programs, const std::string& program);

// Externally synchronized.
class ProcessGroup {
 public:
  // Starts the participants of `cell` and waits until they are ready.
  static absl::StatusOr<std::unique_ptr<ProcessGroup>> Start(const Cell& cell,
                                                             const Programs& programs);

  // One round, which all workers begin together: the seconds of the slowest.
  absl::StatusOr<double> RunRound();

  absl::StatusOr<GroupUsage> AskUsage();

  // Lets the participants end, and waits for them; an error unless all went well. Once, after all
  // else.
  absl::Status End();

 private:
  ProcessGroup(const Cell& cell, const Programs& programs) : cell_(cell), programs_(programs) {}

  absl::Status StartDirectly();
  absl::StatusOr<std::string> StartServer();
  absl::StatusOr<std::string> MakeRendezvous();
  absl::Status StartParticipant(const Participant& participant);
  absl::Status StartByMpirun();
  Participant ParticipantOf(ParticipantKind kind, uint32_t index, const std::string& address) const;
  std::string NameOf(ParticipantKind kind, uint32_t index) const;
  std::vector<std::string> Command(const Participant& participant) const;
  absl::Status AwaitWorkers();

  const Cell cell_;
  const Programs programs_;
  std::unique_ptr<PrivateDirectory> rendezvous_;  // a file where workers without a server meet
  // In the order in which they have to go: links first, then workers, then the server.
  std::unique_ptr<Child> server_process_;
  std::vector<std::unique_ptr<Child>> worker_processes_;  // or mpirun alone
  std::unique_ptr<ParticipantLink> server_;
  std::vector<std::unique_ptr<ParticipantLink>> workers_;
};

}  // namespace sluice::bench

#endif  // SLUICE_TOOLS_BENCH_HARNESS_PROCESS_GROUP_H_
