// The oracle's rules of a job with a journal: which answers wait for the disks, and what a journal
// has of a step.

#include <algorithm>
#include <tuple>

#include "tests/simulation/oracle.h"

namespace sluice {

// ---- Answers ----

void Oracle::NoteDurable(uint64_t step) {
  durable_ = step;
  held_.erase(held_.begin(), held_.upper_bound(step));
}

uint64_t Oracle::HeldUntil(const PushHeader& header) const {
  const ModelWorker* const worker = workers_.Of(header.session.value());
  if (!scenario_.journal || worker == nullptr) return 0;
  if (worker->StoredAnswer(header.sequence.value()) == nullptr) return 0;
  const auto part = worker->part_of.find(header.sequence.value());
  return part == worker->part_of.end() ? 0 : part->second + 1;
}

// Pushes of one session are judged in their order, and none while another one is inside.
std::map<uint64_t, PushVerdict> Oracle::TakeSilent(uint64_t waiting) {
  using Turn = std::tuple<ModelRank, uint64_t>;  // the order in which they are judged
  std::map<Turn, PushVerdict> silent;
  ModelSessions blocked = SessionsHeldInOrder();
  for (const auto& entry : pushes_) {
    const ModelPush& push = entry.second;
    const uint64_t session = push.header.session.value();
    if (std::count(blocked.begin(), blocked.end(), session) > 0) continue;
    const PushVerdict verdict = JudgeAtDoor(push.header);
    const bool waits = push.fate == Fate::kWaiting;
    if (!waits || !verdict.answered || HeldUntil(push.header) <= durable_) {
      blocked.push_back(session);
      continue;
    }
    const bool by_rank = consistency_.order == ReductionOrder::kRank;
    const ModelRank rank = workers_.Of(session)->rank();
    silent.emplace(Turn(by_rank ? rank : ModelRank(), entry.first), verdict);
  }
  std::map<uint64_t, PushVerdict> taken;
  for (const auto& one : silent) {
    if (WaitingAtDoor() <= waiting) break;
    const uint64_t number = std::get<uint64_t>(one.first);
    taken.emplace(number, one.second);
    Conclude(pushes_.at(number), one.second);
  }
  return taken;
}

uint64_t Oracle::WaitingAtDoor() const {
  return static_cast<uint64_t>(std::count_if(pushes_.begin(), pushes_.end(), [](const auto& entry) {
    return entry.second.fate == Fate::kWaiting;
  }));
}

// ---- Steps ----

// Each worker waits for the answer to its latest push, or for the next step: nobody makes this one
// complete.
bool Oracle::AllArePart() const {
  const auto& all = workers_.all();
  return scenario_.journal && std::all_of(all.begin(), all.end(), [this](const auto& entry) {
           const ModelWorker& worker = entry.second;
           return !worker.alive || worker.observer || worker.from > step_ || worker.IsPartOf(step_);
         });
}

// A vector each.
uint64_t Oracle::StepsInMemory() const {
  return scenario_.journal ? step_ - std::min(step_, durable_) : 0;
}

ModelStep Oracle::Journaled() const {
  ModelStep step;
  step.step = step_ + 1;
  step.incarnation = incarnation().value();
  step.consistency = consistency_;
  step.learning_rate = learning_rate_;
  step.options = step_sum_.options();
  step.forgot = forgot_;
  for (const auto& entry : workers_.all()) {
    if (!step_sum_.Has(entry.first)) continue;
    ModelWorker& worker = step.contributors[entry.first] = entry.second;
    worker.alive = worker.alive && !worker.observer;
    worker.observer = false;
    worker.answers.clear();
    worker.stored_from = 0;
    for (const auto& part : entry.second.part_of) {
      const PushOutcome* const answer = entry.second.StoredAnswer(part.first);
      if (part.second == step_ && answer != nullptr) worker.answers.emplace(part.first, *answer);
    }
  }
  return step;
}

void Oracle::Repeat(const ModelStep& step) {
  consistency_ = step.consistency;
  learning_rate_ = step.learning_rate;
  step_sum_.set_latest_options(step.options);
  forgot_ = forgot_ || step.forgot;
  published_.push_back(step.parameters);
  step_ = durable_ = step.step;
  for (const auto& entry : step.contributors) {
    ModelWorker later = entry.second;
    const ModelWorker* const earlier = workers_.Named(entry.first);
    if (earlier != nullptr && earlier->process == later.process) later.TakeAnswersOf(*earlier);
    Restore(entry.first, later);
  }
  started_ = workers_.CountAlive(false) > 0;
  had_workers_ = had_workers_ || started_;
}

}  // namespace sluice
