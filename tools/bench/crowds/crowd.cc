#include "tools/bench/crowds/crowd.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tools/bench/crowds/process_cost.h"

namespace sluice::bench {
namespace {

// Appends the sizes of `parts` nearly equal parts of `workers`.
void AppendParts(uint32_t workers, uint32_t parts, std::vector<uint32_t>& sizes) {
  for (uint32_t i = 0; i < parts; ++i) {
    sizes.push_back(workers / parts + (i < workers % parts ? 1 : 0));
  }
}

std::vector<std::string> CommandLine(const CrowdPlan& plan, uint32_t first, uint32_t count) {
  std::vector<std::string> words = {plan.program,
                                    "--address=" + plan.address,
                                    absl::StrCat("--elements=", plan.elements),
                                    absl::StrCat("--first=", first),
                                    absl::StrCat("--count=", count),
                                    absl::StrCat("--compute=", plan.compute_seconds)};
  if (plan.shared_memory) words.push_back("--shared-memory");
  if (plan.two_calls) words.push_back("--two-calls");
  if (plan.bare) words.push_back("--bare");
  return words;
}

}  // namespace

CrowdShares SharesOf(const CrowdPlan& plan) {
  const uint32_t others = plan.workers - plan.killed;
  const uint32_t processes = std::min(plan.processes, plan.workers);
  CrowdShares shares;
  if (plan.killed > 0) {
    const uint32_t rounded = (processes * plan.killed + plan.workers / 2) / plan.workers;
    shares.processes_to_kill = std::clamp<uint32_t>(rounded, 1, plan.killed);
    AppendParts(plan.killed, static_cast<uint32_t>(shares.processes_to_kill), shares.workers);
  }
  const auto left = static_cast<int64_t>(processes) - static_cast<int64_t>(shares.workers.size());
  AppendParts(others, static_cast<uint32_t>(std::clamp<int64_t>(left, 1, others)), shares.workers);
  return shares;
}

absl::StatusOr<std::unique_ptr<Crowd>> Crowd::Start(const CrowdPlan& plan) {
  auto crowd = std::make_unique<Crowd>();
  const CrowdShares shares = SharesOf(plan);
  crowd->processes_to_kill_ = shares.processes_to_kill;
  uint32_t first = 0;
  for (const uint32_t count : shares.workers) {
    const std::string name = absl::StrCat("the process of the workers ", first, " to ",
                                          first + count - 1, " of ", plan.workers);
    auto process = CrowdProcess::Start(name, CommandLine(plan, first, count));
    if (!process.ok()) return process.status();
    crowd->processes_.push_back(*std::move(process));
    first += count;
  }
  const auto ready = crowd->HearAll(0);
  if (!ready.ok()) return ready.status();
  return crowd;
}

absl::StatusOr<double> Crowd::Join() {
  const auto answers = AskAll("join", 2);
  if (!answers.ok()) return answers.status();
  double first = std::numeric_limits<double>::max(), last = 0;
  for (const auto& times : *answers) {
    first = std::min(first, times[0]);
    last = std::max(last, times[1]);
  }
  return last - first;
}

absl::Status Crowd::Begin() { return AskAll("start", 0).status(); }

absl::StatusOr<CrowdRounds> Crowd::Take() {
  const auto answers = AskAll("take", 1);
  if (!answers.ok()) return answers.status();
  CrowdRounds rounds;
  rounds.least = std::numeric_limits<uint64_t>::max();
  for (const auto& answer : *answers) {
    rounds.least = std::min(rounds.least, static_cast<uint64_t>(answer[0]));
    for (size_t i = 1; i < answer.size(); ++i) rounds.seconds.push_back(1e-6 * answer[i]);
  }
  return rounds;
}

absl::StatusOr<double> Crowd::CpuSeconds() const {
  double sum = 0;
  for (const auto& process : processes_) {
    const auto cost = CostOf(process->pid());
    if (!cost.ok()) return cost.status();
    sum += cost->cpu_seconds;
  }
  return sum;
}

void Crowd::KillSome() {
  for (size_t i = 0; i < processes_to_kill_; ++i) processes_[i]->Kill();
  processes_.erase(processes_.begin(),
                   processes_.begin() + static_cast<std::ptrdiff_t>(processes_to_kill_));
  processes_to_kill_ = 0;
}

absl::StatusOr<CrowdTotals> Crowd::Leave() {
  const auto answers = AskAll("leave", 4);
  if (!answers.ok()) return answers.status();
  CrowdTotals totals;
  for (const auto& answer : *answers) {
    totals.accepted += static_cast<uint64_t>(answer[0]);
    totals.stale += static_cast<uint64_t>(answer[1]);
    totals.others += static_cast<uint64_t>(answer[2]);
    totals.most_rounds = std::max(totals.most_rounds, static_cast<uint64_t>(answer[3]));
  }
  for (const auto& process : processes_) {
    const absl::Status ended = process->End();
    if (!ended.ok()) return ended;
  }
  return totals;
}

absl::StatusOr<Crowd::Answers> Crowd::AskAll(absl::string_view command, size_t least_numbers) {
  for (const auto& process : processes_) {
    const absl::Status told = process->Tell(command);
    if (!told.ok()) return told;
  }
  return HearAll(least_numbers);
}

absl::StatusOr<Crowd::Answers> Crowd::HearAll(size_t least_numbers) {
  Answers answers;
  for (const auto& process : processes_) {
    auto answer = process->Answer(least_numbers);
    if (!answer.ok()) return answer.status();
    answers.push_back(*std::move(answer));
  }
  return answers;
}

}  // namespace sluice::bench
