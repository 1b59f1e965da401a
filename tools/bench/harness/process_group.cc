#include "tools/bench/harness/process_group.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tools/bench/harness/layers.h"
#include "tools/bench/harness/mpirun.h"
#include "tools/bench/harness/pipe.h"

namespace sluice::bench {

std::vector<std::string> CommandOf(const Programs& programs, const std::string& program) {
  const std::string path = absl::StrCat(programs.root, "/", program);
  if (absl::EndsWith(program, ".py")) return {programs.python, path};
  return {path};
}

absl::StatusOr<std::unique_ptr<ProcessGroup>> ProcessGroup::Start(const Cell& cell,
                                                                  const Programs& programs) {
  std::unique_ptr<ProcessGroup> process_group(new ProcessGroup(cell, programs));
  const absl::Status started = cell.row.launch == RowLaunch::kMpirun
                                   ? process_group->StartByMpirun()
                                   : process_group->StartDirectly();
  if (!started.ok()) return started;
  return process_group;
}

absl::Status ProcessGroup::StartDirectly() {
  const auto address = cell_.row.has_server ? StartServer() : MakeRendezvous();
  if (!address.ok()) return address.status();
  for (uint32_t i = 0; i < cell_.workers; ++i) {
    const absl::Status started =
        StartParticipant(ParticipantOf(ParticipantKind::kWorker, i, *address));
    if (!started.ok()) return started;
  }
  return AwaitWorkers();
}

absl::StatusOr<std::string> ProcessGroup::StartServer() {
  const absl::Status started = StartParticipant(ParticipantOf(ParticipantKind::kServer, 0, ""));
  if (!started.ok()) return started;
  return server_->AwaitReady();
}

absl::StatusOr<std::string> ProcessGroup::MakeRendezvous() {
  auto directory = PrivateDirectory::Create();
  if (!directory.ok()) return directory.status();
  rendezvous_ = *std::move(directory);
  return absl::StrCat("file://", rendezvous_->path(), "/rendezvous");
}

absl::Status ProcessGroup::StartParticipant(const Participant& participant) {
  const std::string name = NameOf(participant.kind, participant.index);
  Pipe input, output;
  if (!input.open() || !output.open()) return absl::ErrnoToStatus(errno, "cannot make a pipe");
  auto child = Child::Start(name, Command(participant), {input.read_end(), output.write_end()});
  if (!child.ok()) return child.status();
  auto link = std::make_unique<ParticipantLink>(name, input.TakeWriteEnd(), output.TakeReadEnd());
  if (participant.kind == ParticipantKind::kServer) {
    server_process_ = *std::move(child);
    server_ = std::move(link);
  } else {
    worker_processes_.push_back(*std::move(child));
    workers_.push_back(std::move(link));
  }
  return absl::OkStatus();
}

absl::Status ProcessGroup::StartByMpirun() {
  std::vector<std::string> names;
  if (cell_.row.has_server) names.push_back(NameOf(ParticipantKind::kServer, 0));
  for (uint32_t i = 0; i < cell_.workers; ++i) names.push_back(NameOf(ParticipantKind::kWorker, i));
  auto launch = LaunchByMpirun(programs_.root, names,
                               Command(ParticipantOf(ParticipantKind::kWorker, 0, "")));
  if (!launch.ok()) return launch.status();
  worker_processes_.push_back(std::move(launch->mpirun));
  workers_ = std::move(launch->ranks);
  if (!cell_.row.has_server) return AwaitWorkers();
  server_ = std::move(workers_.front());
  workers_.erase(workers_.begin());
  const auto ready = server_->AwaitReady();
  return ready.ok() ? AwaitWorkers() : ready.status();
}

Participant ProcessGroup::ParticipantOf(ParticipantKind kind, uint32_t index,
                                        const std::string& address) const {
  Participant participant;
  participant.kind = kind;
  participant.elements = cell_.elements;
  participant.workers = cell_.workers;
  participant.index = index;
  participant.address = address;
  if (cell_.row.takes_layers) participant.layers = LayersOf(cell_.elements);
  return participant;
}

std::string ProcessGroup::NameOf(ParticipantKind kind, uint32_t index) const {
  if (kind == ParticipantKind::kServer) return absl::StrCat(cell_.row.name, "'s server");
  return absl::StrCat(cell_.row.name, "'s worker ", index + 1, " of ", cell_.workers);
}

std::vector<std::string> ProcessGroup::Command(const Participant& participant) const {
  std::vector<std::string> command = CommandOf(programs_, cell_.row.program);
  command.insert(command.end(), cell_.row.flags.begin(), cell_.row.flags.end());
  for (std::string& flag : ParticipantFlags(participant)) command.push_back(std::move(flag));
  return command;
}

absl::Status ProcessGroup::AwaitWorkers() {
  for (const auto& worker : workers_) {
    const auto ready = worker->AwaitReady();
    if (!ready.ok()) return ready.status();
  }
  return absl::OkStatus();
}

absl::StatusOr<double> ProcessGroup::RunRound() {
  const bool tells_server = server_ != nullptr && cell_.row.server_is_told;
  if (tells_server) {
    const absl::Status begun = server_->BeginRound();
    if (!begun.ok()) return begun;
  }
  for (const auto& worker : workers_) {
    const absl::Status begun = worker->BeginRound();
    if (!begun.ok()) return begun;
  }
  double slowest = 0;
  for (const auto& worker : workers_) {
    const auto seconds = worker->EndRound();
    if (!seconds.ok()) return seconds.status();
    slowest = std::max(slowest, *seconds);
  }
  if (tells_server) {
    const auto seconds = server_->EndRound();
    if (!seconds.ok()) return seconds.status();
  }
  return slowest;
}

absl::StatusOr<GroupUsage> ProcessGroup::AskUsage() {
  GroupUsage usage;
  if (server_ != nullptr) {
    const auto server = server_->AskUsage();
    if (!server.ok()) return server.status();
    usage.server = *server;
  }
  for (const auto& worker : workers_) {
    const auto one = worker->AskUsage();
    if (!one.ok()) return one.status();
    usage.workers.cpu_seconds += one->cpu_seconds;
    usage.workers.peak_bytes = std::max(usage.workers.peak_bytes, one->peak_bytes);
  }
  return usage;
}

// Ends the server last, since it serves until its workers have left. Ranks leave together.
absl::Status ProcessGroup::End() {
  workers_.clear();
  if (server_process_ == nullptr) server_.reset();
  for (const auto& worker : worker_processes_) {
    const absl::Status ended = worker->Wait();
    if (!ended.ok()) return ended;
  }
  server_.reset();
  return server_process_ == nullptr ? absl::OkStatus() : server_process_->Wait();
}

}  // namespace sluice::bench
