#include "tools/bench/harness/crew.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tools/bench/harness/layers.h"
#include "tools/bench/harness/mpirun.h"

namespace sluice::bench {
namespace {

class Pipe {
 public:
  Pipe() : open_(pipe2(ends_, O_CLOEXEC) == 0) {}
  ~Pipe() {
    for (const int end : ends_) {
      if (open_ && end >= 0) close(end);
    }
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;

  bool open() const { return open_; }
  int read_end() const { return ends_[0]; }
  int write_end() const { return ends_[1]; }
  // What is taken is the caller's.
  int TakeReadEnd() { return std::exchange(ends_[0], -1); }
  int TakeWriteEnd() { return std::exchange(ends_[1], -1); }

 private:
  int ends_[2];
  const bool open_;
};

}  // namespace

std::vector<std::string> CommandOf(const Programs& programs, const std::string& program) {
  const std::string path = absl::StrCat(programs.root, "/", program);
  if (absl::EndsWith(program, ".py")) return {programs.python, path};
  return {path};
}

absl::StatusOr<std::unique_ptr<Crew>> Crew::Start(const Cell& cell, const Programs& programs) {
  std::unique_ptr<Crew> crew(new Crew(cell, programs));
  const absl::Status started =
      cell.row.launch == Launch::kMpirun ? crew->StartByMpirun() : crew->StartDirectly();
  if (!started.ok()) return started;
  return crew;
}

absl::Status Crew::StartDirectly() {
  const auto address = cell_.row.has_server ? StartServer() : MakeRendezvous();
  if (!address.ok()) return address.status();
  for (uint32_t i = 0; i < cell_.workers; ++i) {
    const absl::Status started = StartPart(PartOf(PartKind::kWorker, i, *address));
    if (!started.ok()) return started;
  }
  return AwaitWorkers();
}

absl::StatusOr<std::string> Crew::StartServer() {
  const absl::Status started = StartPart(PartOf(PartKind::kServer, 0, ""));
  if (!started.ok()) return started;
  return server_->AwaitReady();
}

absl::StatusOr<std::string> Crew::MakeRendezvous() {
  auto directory = PrivateDirectory::Create();
  if (!directory.ok()) return directory.status();
  rendezvous_ = *std::move(directory);
  return absl::StrCat("file://", rendezvous_->path(), "/rendezvous");
}

absl::Status Crew::StartPart(const Part& part) {
  const std::string name = NameOf(part.kind, part.index);
  Pipe input, output;
  if (!input.open() || !output.open()) return absl::ErrnoToStatus(errno, "cannot make a pipe");
  auto child = Child::Start(name, Command(part), {input.read_end(), output.write_end()});
  if (!child.ok()) return child.status();
  auto link = std::make_unique<PartLink>(name, input.TakeWriteEnd(), output.TakeReadEnd());
  if (part.kind == PartKind::kServer) {
    server_process_ = *std::move(child);
    server_ = std::move(link);
  } else {
    worker_processes_.push_back(*std::move(child));
    workers_.push_back(std::move(link));
  }
  return absl::OkStatus();
}

absl::Status Crew::StartByMpirun() {
  std::vector<std::string> names;
  if (cell_.row.has_server) names.push_back(NameOf(PartKind::kServer, 0));
  for (uint32_t i = 0; i < cell_.workers; ++i) names.push_back(NameOf(PartKind::kWorker, i));
  auto launch = LaunchByMpirun(programs_.root, names, Command(PartOf(PartKind::kWorker, 0, "")));
  if (!launch.ok()) return launch.status();
  worker_processes_.push_back(std::move(launch->mpirun));
  workers_ = std::move(launch->ranks);
  if (!cell_.row.has_server) return AwaitWorkers();
  server_ = std::move(workers_.front());
  workers_.erase(workers_.begin());
  const auto ready = server_->AwaitReady();
  return ready.ok() ? AwaitWorkers() : ready.status();
}

Part Crew::PartOf(PartKind kind, uint32_t index, const std::string& address) const {
  Part part;
  part.kind = kind;
  part.elements = cell_.elements;
  part.workers = cell_.workers;
  part.index = index;
  part.address = address;
  if (cell_.row.takes_layers) part.layers = LayersOf(cell_.elements);
  return part;
}

std::string Crew::NameOf(PartKind kind, uint32_t index) const {
  if (kind == PartKind::kServer) return absl::StrCat(cell_.row.name, "'s server");
  return absl::StrCat(cell_.row.name, "'s worker ", index + 1, " of ", cell_.workers);
}

std::vector<std::string> Crew::Command(const Part& part) const {
  std::vector<std::string> command = CommandOf(programs_, cell_.row.program);
  command.insert(command.end(), cell_.row.flags.begin(), cell_.row.flags.end());
  for (std::string& flag : PartFlags(part)) command.push_back(std::move(flag));
  return command;
}

absl::Status Crew::AwaitWorkers() {
  for (const auto& worker : workers_) {
    const auto ready = worker->AwaitReady();
    if (!ready.ok()) return ready.status();
  }
  return absl::OkStatus();
}

absl::StatusOr<double> Crew::RunRound() {
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

absl::StatusOr<CrewUsage> Crew::AskUsage() {
  CrewUsage usage;
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

// The server last: it serves until its workers have left. Ranks leave together.
absl::Status Crew::End() {
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
