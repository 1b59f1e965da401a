// Starts, commands and ends the processes of one cell: its server and its workers.

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

// Where to find the programs.
struct Programs {
  std::string root = ".";  // the folder that the programs of rows are relative to
  std::string python = "/usr/bin/python3";
};

// The resources that all rounds so far have used. `workers` has the CPU of all, and the peak of the
// largest.
struct GroupUsage {
  Usage server;
  Usage workers;
};

// Returns the command that starts `program`, with the interpreter if it is Python.
std::vector<std::string> CommandOf(const Programs& programs, const std::string& program);

// Externally synchronized.
class ProcessGroup {
 public:
  // Starts the participants of `cell` and waits until they are ready.
  static absl::StatusOr<std::unique_ptr<ProcessGroup>> Start(const Cell& cell,
                                                             const Programs& programs);

  // Lets all workers do one round at the same time. Returns the seconds of the slowest.
  absl::StatusOr<double> RunRound();

  absl::StatusOr<GroupUsage> AskUsage();

  // Ends the participants and waits for them. Returns an error unless all of them succeeded. Call
  // it once, after the other methods.
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
  std::unique_ptr<PrivateDirectory>
      rendezvous_;  // holds the file through which workers without a server meet
  // Destroyed from last to first: links, then workers, then the server.
  std::unique_ptr<Child> server_process_;
  std::vector<std::unique_ptr<Child>> worker_processes_;  // or mpirun alone
  std::unique_ptr<ParticipantLink> server_;
  std::vector<std::unique_ptr<ParticipantLink>> workers_;
};

}  // namespace sluice::bench

#endif  // SLUICE_TOOLS_BENCH_HARNESS_PROCESS_GROUP_H_
