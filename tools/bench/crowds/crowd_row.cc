#include "tools/bench/crowds/crowd_row.h"

#include <sys/resource.h>

#include <cerrno>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "tests/testing/quantile.h"
#include "tools/bench/crowds/crowd.h"
#include "tools/bench/crowds/crowd_check.h"
#include "tools/bench/crowds/crowd_server.h"
#include "tools/bench/crowds/process_cost.h"

namespace sluice::bench {
namespace {

constexpr absl::Duration kSettle =
    absl::Seconds(1);  // after the last Join, before idle costs count
constexpr absl::Duration kLongestEviction = absl::Seconds(60);  // beyond the lease

CrowdPlan PlanOf(const CrowdCase& of, const CrowdSetup& setup, const std::string& address) {
  CrowdPlan plan;
  plan.program = setup.root + "/tools/bench/crowds/crowd_worker_main";
  plan.address = address;
  plan.elements = of.bytes / sizeof(float);
  plan.workers = of.workers;
  plan.killed = setup.kill;
  plan.processes = setup.processes;
  plan.compute_seconds = setup.compute;
  plan.shared_memory = setup.shared_memory;
  plan.two_calls = setup.two_calls;
  plan.bare = of.mode == kBareMode;
  return plan;
}

// In sync all rounds end at once, so the CPU of up to one more round is counted. With so many
// rounds of each worker that is a small part; but no row takes longer than so many times what was
// asked for.
constexpr uint64_t kLeastRounds = 10;
constexpr double kMostExtensions = 10;

// One row under way.
class RowRun {
 public:
  RowRun(const CrowdCase& of, const CrowdSetup& setup) : setup_(setup) { result_.of = of; }

  absl::StatusOr<CrowdResult> Run() {
    for (const auto part : {&RowRun::StartAndJoin, &RowRun::MeasureIdle, &RowRun::MeasureRounds,
                            &RowRun::MeasureKill, &RowRun::LeaveAndCheck}) {
      const absl::Status done = (this->*part)();
      if (!done.ok()) return done;
    }
    return std::move(result_);
  }

 private:
  absl::Status StartAndJoin();
  absl::Status MeasureIdle();
  absl::Status MeasureRounds();
  absl::Status MeasureKill();
  absl::Status LeaveAndCheck();

  // CPU-seconds so far: of the server, and of all workers.
  struct Cpu {
    double server = 0;
    double workers = 0;
  };
  absl::StatusOr<Cpu> ReadCpu() const;
  absl::Status TakeTimes(std::vector<double>& times) const;
  void NoteTimes(const std::vector<double>& times);

  const CrowdSetup setup_;
  CrowdResult result_;
  std::unique_ptr<CrowdServer> server_;
  std::unique_ptr<Crowd> crowd_;  // destroyed first
  uint64_t resident_alone_ = 0;   // bytes of the server before a worker had connected
};

absl::Status RowRun::StartAndJoin() {
  auto server = CrowdServer::Start(result_.of, setup_);
  if (!server.ok()) return server.status();
  server_ = *std::move(server);
  const auto alone = CostOf(server_->pid());
  if (!alone.ok()) return alone.status();
  resident_alone_ = alone->resident_bytes;
  auto crowd = Crowd::Start(PlanOf(result_.of, setup_, server_->address()));
  if (!crowd.ok()) return crowd.status();
  crowd_ = *std::move(crowd);
  const auto took = crowd_->Join();
  if (!took.ok()) return took.status();
  result_.join_seconds = *took;
  return server_->Pass(kSettle);
}

absl::Status RowRun::MeasureIdle() {
  const auto before = CostOf(server_->pid());
  if (!before.ok()) return before.status();
  const Wakeups wakeups = WakeupsOf(server_->pid());
  const absl::Time start = RealClock().Now();
  const absl::Status works = server_->Pass(absl::Seconds(setup_.idle));
  if (!works.ok()) return works;
  const uint64_t woken = WakeupsBetween(wakeups, WakeupsOf(server_->pid()));
  const double worker_seconds =
      result_.of.workers * absl::ToDoubleSeconds(RealClock().Now() - start);
  const auto after = CostOf(server_->pid());
  if (!after.ok()) return after.status();
  result_.idle.bytes_per_worker =
      (static_cast<double>(after->resident_bytes) - static_cast<double>(resident_alone_)) /
      result_.of.workers;
  result_.idle.wakeups_per_second = static_cast<double>(woken) / worker_seconds;
  result_.idle.cpu_per_second = (after->cpu_seconds - before->cpu_seconds) / worker_seconds;
  return absl::OkStatus();
}

absl::StatusOr<RowRun::Cpu> RowRun::ReadCpu() const {
  const auto server = CostOf(server_->pid());
  if (!server.ok()) return server.status();
  const auto workers = crowd_->CpuSeconds();
  if (!workers.ok()) return workers.status();
  return Cpu{server->cpu_seconds, *workers};
}

absl::Status RowRun::MeasureRounds() {
  absl::Status status = crowd_->Begin();
  if (status.ok()) status = server_->Pass(absl::Seconds(setup_.warm_up));
  if (!status.ok()) return status;
  const auto forgotten = crowd_->Take();
  if (!forgotten.ok()) return forgotten.status();
  const auto before = ReadCpu();
  if (!before.ok()) return before.status();
  const absl::Time start = RealClock().Now();
  std::vector<double> times;
  do {
    status = server_->Pass(absl::Seconds(setup_.seconds));
    if (!status.ok()) return status;
    const auto after = ReadCpu();
    if (!after.ok()) return after.status();
    result_.seconds = absl::ToDoubleSeconds(RealClock().Now() - start);
    result_.server_cpu_seconds = after->server - before->server;
    result_.workers_cpu_seconds = after->workers - before->workers;
    status = TakeTimes(times);
    if (!status.ok()) return status;
  } while (times.size() < kLeastRounds * result_.of.workers &&
           result_.seconds < kMostExtensions * setup_.seconds);
  NoteTimes(times);
  const auto cost = CostOf(server_->pid());
  if (cost.ok()) result_.server_peak_bytes = cost->peak_bytes;
  return cost.status();
}

// Appends the seconds of the rounds that ended since the last call.
absl::Status RowRun::TakeTimes(std::vector<double>& times) const {
  const auto rounds = crowd_->Take();
  if (!rounds.ok()) return rounds.status();
  times.insert(times.end(), rounds->seconds.begin(), rounds->seconds.end());
  return absl::OkStatus();
}

void RowRun::NoteTimes(const std::vector<double>& times) {
  result_.rounds = times.size();
  if (times.empty()) {
    result_.wrong = absl::StrFormat("no round ended within %.1f s", result_.seconds);
    return;
  }
  result_.median_seconds = Quantile(times, 0.5);
  result_.p99_seconds = Quantile(times, 0.99);
}

absl::Status RowRun::MeasureKill() {
  if (setup_.kill == 0) return absl::OkStatus();
  KillCost kill;
  kill.killed = setup_.kill;
  crowd_->KillSome();
  const auto forgotten = crowd_->Take();
  if (!forgotten.ok()) return forgotten.status();
  const auto took =
      server_->AwaitEvictions(setup_.kill, absl::Seconds(setup_.lease) + kLongestEviction);
  if (!took.ok()) return took.status();
  const auto until = crowd_->Take();
  if (!until.ok()) return until.status();
  const absl::Status works = server_->Pass(absl::Seconds(setup_.seconds));
  if (!works.ok()) return works;
  const auto after = crowd_->Take();
  if (!after.ok()) return after.status();
  kill.eviction_seconds = absl::ToDoubleSeconds(*took);
  kill.rate_before = static_cast<double>(until->seconds.size()) / kill.eviction_seconds;
  kill.rate_after = static_cast<double>(after->seconds.size()) / setup_.seconds;
  kill.least_after = after->least;
  if (kill.least_after == 0) {
    result_.wrong = absl::StrCat("a worker made no round in the ", setup_.seconds,
                                 " s after the others were evicted");
  }
  result_.kill = kill;
  return absl::OkStatus();
}

absl::Status RowRun::LeaveAndCheck() {
  const auto totals = crowd_->Leave();
  if (!totals.ok()) return totals.status();
  const auto rows = server_->AwaitEnd();
  if (!rows.ok()) return rows.status();
  const std::string wrong = WhatIsWrong(*rows, result_.of.mode, *totals,
                                        setup_.kill > 0 ? SomeWere::kKilled : SomeWere::kNotKilled);
  if (result_.wrong.empty()) result_.wrong = wrong;
  return absl::OkStatus();
}

}  // namespace

absl::Status AllowFiles(uint32_t workers) {
  // A worker's connection takes two files of the server, and one of its process; shared memory
  // some.
  constexpr uint64_t kOfWorker = 4, kOthers = 200;
  const uint64_t needed = kOthers + kOfWorker * workers;
  rlimit limit = {};
  getrlimit(RLIMIT_NOFILE, &limit);
  if (limit.rlim_max < needed) {
    return absl::FailedPreconditionError(absl::StrCat(
        workers, " workers need a server with ", needed, " open files, and the system allows ",
        limit.rlim_max, "; raise that (ulimit -Hn), or give fewer --workers"));
  }
  limit.rlim_cur = limit.rlim_max;
  if (setrlimit(RLIMIT_NOFILE, &limit) == 0) return absl::OkStatus();
  return absl::ErrnoToStatus(errno, "cannot raise the limit of open files");
}

absl::StatusOr<CrowdResult> MeasureRow(const CrowdCase& of, const CrowdSetup& setup) {
  return RowRun(of, setup).Run();
}

}  // namespace sluice::bench
