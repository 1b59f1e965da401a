// The oracle's rules of a server that is started again from a checkpoint.

#include <algorithm>
#include <iterator>

#include "tests/simulation/oracle.h"

namespace sluice {

Oracle::Oracle(const Scenario& scenario, absl::Time now, const ModelCheckpoint& checkpoint)
    : Oracle(scenario, now) {
  restored_ = true;
  forgot_ = checkpoint.forgot;
  step_ = checkpoint.step;
  ancestors_ = checkpoint.incarnations;
  published_ = checkpoint.published;
  consistency_ = checkpoint.consistency;
  learning_rate_ = checkpoint.learning_rate;
  step_sum_.set_latest_options(checkpoint.options);
  for (const auto& entry : checkpoint.workers) {
    Restore(entry.first, entry.second);
  }
  durable_ = step_;
  had_workers_ = workers_.CountAlive(false) > 0;
  const bool knows_all = workers_.CountAlive(false) >= scenario.options.expected_workers;
  const bool has_begun = step_ > 0 || (scenario.options.goes_on && knows_all);
  started_ = has_begun && had_workers_;
  resumes_ = step_ > 0;
}

void Oracle::Restore(const std::string& name, const ModelWorker& saved) {
  ModelWorker& worker = workers_.all()[name] = saved;
  worker.from = step_;
  worker.heard = now_;
  worker.lost = true;
  worker.evicted = absl::InfinitePast();
  worker.joined = false;
  worker.excused = false;
  worker.part_of.clear();
  worker.served.clear();
  // A session that nobody knows.
  if (worker.alive) worker.session = scenario_.options.session_base.value() + ++sessions_;
}

ModelCheckpoint Oracle::Checkpoint() {
  ModelCheckpoint saved;
  saved.step = step_;
  saved.incarnations = ancestors_;
  saved.incarnations[incarnation().value()] = step_;
  saved.published = published_;
  saved.consistency = consistency_;
  saved.learning_rate = learning_rate_;
  saved.options = step_sum_.latest_options();
  saved.forgot = forgot_;
  for (const auto& entry : workers_.all()) {
    const ModelWorker& worker = entry.second;
    if (worker.observer) {
      saved.forgot = saved.forgot || worker.MayBeRepeated();
    } else {
      saved.workers[entry.first] = BeforeStep(worker);
    }
  }
  Advance();
  return saved;
}

// Without the first push that is part of the step under way, and those after it.
ModelWorker Oracle::BeforeStep(const ModelWorker& worker) const {
  ModelWorker before = worker;
  const auto first = std::find_if(before.part_of.begin(), before.part_of.end(),
                                  [this](const auto& entry) { return entry.second == step_; });
  const bool by_this =
      first != before.part_of.end() && worker.StoredAnswer(first->first) != nullptr;
  if (!by_this) {
    const bool by_earlier = first == before.part_of.end() && step_sum_.Has(worker.name);
    if (by_earlier && before.pushes_before > 0) --before.pushes_before;
    return before;
  }
  before.highest = first->first - 1;
  const auto end = before.answers.lower_bound(first->first);
  for (auto it = end; it != before.answers.end(); ++it) {
    const bool counts = it->second.disposition != Disposition::kStaleDropped;
    if (counts && before.pushes > 0) --before.pushes;
  }
  before.answered -= static_cast<uint64_t>(std::distance(end, before.answers.end()));
  before.answers.erase(end, before.answers.end());
  return before;
}

bool Oracle::Remembers(const JoinRequest& request) const {
  const ModelWorker* const known = workers_.Named(request.worker);
  const uint64_t nonce = request.process_nonce.value();
  if (known != nullptr && known->nonce == nonce) return true;
  if (!restored_ || forgot_) return false;
  return known == nullptr || std::count(known->replaced.begin(), known->replaced.end(), nonce) == 0;
}

bool Oracle::IsOfThisHistory(const PushHeader& header) const {
  if (header.incarnation == incarnation()) return true;
  const auto ancestor = ancestors_.find(header.incarnation.value());
  return ancestor != ancestors_.end() && header.step.value() <= ancestor->second;
}

}  // namespace sluice
