#include "tests/testing/process/launch.h"

#include <arpa/inet.h>
#include <glog/logging.h>
#include <grpcpp/grpcpp.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <functional>
#include <random>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/file_descriptor.h"
#include "common/wire/status.h"
#include "gtest/gtest.h"
#include "server/state/push_counters.h"
#include "sluice/v1/inspector.grpc.pb.h"
#include "tests/testing/outcome.h"
#include "tests/testing/process/mpi_environment.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

constexpr absl::string_view kTableTitle = "Sluice job ";
// Below the ports that Linux gives to those who connect.
constexpr int kFirstPort = 10000;
constexpr int kLastPort = 30000;

// Looks at a server, for as long as the patience of one wait lasts.
class Inspection {
 public:
  explicit Inspection(const std::string& address)
      : stub_(v1::Inspector::NewStub(
            grpc::CreateChannel(address, grpc::InsecureChannelCredentials()))) {}

  absl::Status GetServerState(v1::ServerState* state) {
    grpc::ClientContext context;
    context.set_deadline(deadline_);
    return FromGrpcStatus(stub_->GetServerState(&context, {}, state));
  }

  // The page that begins at `page_token`.
  absl::Status ListWorkers(v1::ListWorkersResponse* workers, const std::string& page_token = "") {
    grpc::ClientContext context;
    context.set_deadline(deadline_);
    v1::ListWorkersRequest request;
    request.set_page_token(page_token);
    return FromGrpcStatus(stub_->ListWorkers(&context, request, workers));
  }

 private:
  const std::unique_ptr<v1::Inspector::Stub> stub_;
  const std::chrono::system_clock::time_point deadline_ =
      std::chrono::system_clock::now() + absl::ToChronoMilliseconds(Process::kPatience);
};

absl::Status WaitForState(const std::string& address,
                          const std::function<bool(const v1::ServerState&)>& reached) {
  Inspection inspection(address);
  v1::ServerState state;
  do {
    const absl::Status looked = inspection.GetServerState(&state);
    if (!looked.ok()) return looked;
  } while (!reached(state));
  return absl::OkStatus();
}

std::unique_ptr<Process> StartIn(const Words& argv, const Process::Environment& environment) {
  auto process = Process::Start(argv, environment);
  EXPECT_THAT(process, IsOk());
  return process.ok() ? *std::move(process) : nullptr;
}

bool IsBindable(uint16_t port) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const bool bound = bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0;
  close(fd);
  return bound;
}

// Takes a name for the port that only one process can have, until it ends: tests that run beside
// each other may look for a port before the first of them uses its own. The names, as the ports,
// are those of the network namespace.
bool Reserve(uint16_t port) {
  static std::vector<FileDescriptor>& reserved = *new std::vector<FileDescriptor>();
  FileDescriptor holder(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  CHECK_GE(holder.get(), 0) << "no more files may be open";
  sockaddr_un name = {};
  name.sun_family = AF_UNIX;
  // A path that begins with a zero byte is a name without a file.
  const std::string text = absl::StrCat("sluice-test-port-", port);
  std::copy(text.begin(), text.end(), name.sun_path + 1);
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + text.size());
  if (bind(holder.get(), reinterpret_cast<sockaddr*>(&name), size) != 0) return false;
  reserved.push_back(std::move(holder));
  return true;
}

// Of glog's log: severity, date, time, thread and place. mpirun reads stdout and stderr by turns,
// so that a line of the log may come between two rows of a table that was written in one piece.
bool IsLogLine(absl::string_view line) {
  constexpr absl::string_view kSeverities = "IWEF";
  return line.size() > 1 && absl::StrContains(kSeverities, line[0]) &&
         absl::ascii_isdigit(static_cast<unsigned char>(line[1]));
}

uint64_t Count(const std::map<std::string, std::string>& rows, const std::string& name) {
  uint64_t count = 0;
  const auto row = rows.find(name);
  if (row == rows.end()) return 0;
  EXPECT_TRUE(absl::SimpleAtoi(row->second, &count)) << name << " is " << row->second;
  return count;
}

}  // namespace

std::unique_ptr<Process> Start(const Words& argv) { return StartIn(argv, {}); }

std::unique_ptr<Process> Mpirun(const std::vector<Ranks>& parts, RankDeath death,
                                const Process::Environment& extra) {
  const bool prterun = parts.size() > 1 && Process::Start({"prterun", "--version"}).ok();
  Words words = prterun ? Words{"prterun", "--map-by", ":OVERSUBSCRIBE", "--bind-to", "none"}
                        : Words{"mpirun", "--oversubscribe", "--bind-to", "none"};
  if (death == RankDeath::kIsRecovered) {
    const Words recover =
        prterun ? Words{"--runtime-options", "recoverable"} : Words{"--enable-recovery"};
    words.insert(words.end(), recover.begin(), recover.end());
  }
  for (const Ranks& part : parts) {
    if (&part != &parts.front()) words.push_back(":");
    words.insert(words.end(), {"-n", absl::StrCat(part.count)});
    words.insert(words.end(), part.argv.begin(), part.argv.end());
  }
  Process::Environment environment = extra;
  environment.merge(MpiEnvironment());  // which leaves the values of `extra`
  return StartIn(words, environment);
}

uint16_t FreePort() {
  std::random_device random;
  std::uniform_int_distribution<int> ports(kFirstPort, kLastPort);
  for (;;) {
    const auto port = static_cast<uint16_t>(ports(random));
    if (Reserve(port) && IsBindable(port)) return port;
  }
}

absl::Status WaitForAccepted(const std::string& address, uint64_t pushes) {
  return WaitForState(address, [pushes](const v1::ServerState& state) {
    return state.pushes().accepted() >= pushes;
  });
}

absl::Status WaitForObserver(const std::string& address) {
  return WaitForState(address, [](const v1::ServerState& state) { return state.observers() > 0; });
}

absl::Status WaitForTraining(const std::string& address) {
  return WaitForState(address, [](const v1::ServerState& state) {
    return state.phase() == v1::TRAINING || state.phase() == v1::FINISHED;
  });
}

absl::Status WaitForStep(const std::string& address, uint64_t steps) {
  return WaitForState(address,
                      [steps](const v1::ServerState& state) { return state.step() >= steps; });
}

absl::StatusOr<uint64_t> StepOf(const std::string& address) {
  v1::ServerState state;
  const absl::Status looked = Inspection(address).GetServerState(&state);
  if (!looked.ok()) return looked;
  return state.step();
}

absl::StatusOr<pid_t> PidOfWorker(const std::string& address, uint32_t index) {
  Inspection inspection(address);
  for (;;) {
    v1::ListWorkersResponse workers;
    const absl::Status looked = inspection.ListWorkers(&workers);
    if (!looked.ok()) return looked;
    for (const v1::Worker& worker : workers.workers()) {
      if (worker.index() == index) return static_cast<pid_t>(worker.pid());
    }
  }
}

absl::Status WaitForPresence(const std::string& address, const std::string& worker,
                             const std::string& presence) {
  Inspection inspection(address);
  for (;;) {
    v1::ListWorkersResponse workers;
    const absl::Status looked = inspection.ListWorkers(&workers);
    if (!looked.ok()) return looked;
    for (const v1::Worker& found : workers.workers()) {
      const bool reached = v1::WorkerPresence_Name(found.presence()) == presence;
      if (found.worker() == worker && reached) return absl::OkStatus();
    }
  }
}

absl::StatusOr<uint32_t> CountWorkers(const std::string& address, const std::string& presence) {
  Inspection inspection(address);
  uint32_t count = 0;
  v1::ListWorkersResponse page;
  do {
    const absl::Status looked = inspection.ListWorkers(&page, page.next_page_token());
    if (!looked.ok()) return looked;
    for (const v1::Worker& worker : page.workers()) {
      count += v1::WorkerPresence_Name(worker.presence()) == presence ? 1 : 0;
    }
  } while (!page.next_page_token().empty());
  return count;
}

std::map<std::string, std::string> ClosingRows(absl::string_view output) {
  if (LinesWith(output, kTableTitle).size() != 1) return {};
  std::map<std::string, std::string> rows;
  const absl::string_view table = output.substr(output.find(kTableTitle));
  const std::vector<absl::string_view> lines = absl::StrSplit(table, '\n');
  for (size_t i = 1; i < lines.size(); ++i) {
    if (IsLogLine(lines[i])) continue;
    if (!absl::StartsWith(lines[i], "  ")) break;
    const size_t end_of_name = lines[i].find("  ", lines[i].find_first_not_of(' '));
    if (end_of_name == absl::string_view::npos) break;
    const auto name = absl::StripAsciiWhitespace(lines[i].substr(0, end_of_name));
    const auto value = absl::StripAsciiWhitespace(lines[i].substr(end_of_name));
    rows.emplace(name, value);
  }
  return rows;
}

std::string Counters(absl::string_view output) {
  const std::map<std::string, std::string> rows = ClosingRows(output);
  if (rows.empty()) return "";
  PushCounters counters;
  counters.received = Count(rows, "pushes received");
  counters.accepted = Count(rows, "accepted");
  counters.stale = Count(rows, "stale");
  counters.skipped = Count(rows, "skipped");
  counters.duplicate = Count(rows, "duplicate");
  counters.rejected = Count(rows, "rejected");
  counters.aborted = Count(rows, "aborted");
  counters.in_progress = Count(rows, "in progress");
  return absl::StrCat(Count(rows, "steps"), " steps, ", Columns(counters),
                      counters.Balanced() ? "" : ", unbalanced");
}

std::vector<std::string> LinesWith(absl::string_view output, absl::string_view part) {
  std::vector<std::string> lines;
  for (const absl::string_view line : absl::StrSplit(output, '\n')) {
    if (absl::StrContains(line, part)) lines.emplace_back(line);
  }
  return lines;
}

}  // namespace sluice
