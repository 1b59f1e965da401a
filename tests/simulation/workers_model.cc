#include "tests/simulation/workers_model.h"

#include <algorithm>
#include <iterator>

namespace sluice {
namespace {

constexpr size_t kStoredAnswers = 16;

}  // namespace

const PushOutcome* ModelWorker::StoredAnswer(uint64_t sequence) const {
  const auto it = answers.find(sequence);
  return it == answers.end() || sequence < stored_from ? nullptr : &it->second;
}

void ModelWorker::Answer(uint64_t sequence, const PushOutcome& outcome) {
  answers[sequence] = outcome;
  ++answered;
  DiscardOldest();
}

void ModelWorker::TakeAnswersOf(const ModelWorker& earlier) {
  for (const auto& answer : earlier.answers) {
    if (earlier.StoredAnswer(answer.first) != nullptr) answers.insert(answer);
  }
  stored_from = std::max(stored_from, earlier.stored_from);
  DiscardOldest();
}

bool ModelWorker::IsPartOf(uint64_t step) const {
  if (answers.empty()) return false;
  const auto part = part_of.find(answers.rbegin()->first);
  return part != part_of.end() && part->second == step;
}

void ModelWorker::DiscardOldest() {
  if (answers.size() < kStoredAnswers) return;
  stored_from = std::max(stored_from, std::prev(answers.end(), kStoredAnswers)->first);
}

ModelWorker& WorkersModel::Open(const JoinRequest& request, uint64_t session, uint64_t from,
                                absl::Time now, bool started, uint32_t launched) {
  const bool observer = request.role == SessionRole::kObserver;
  ModelWorker& worker = all_[request.worker];
  const bool same_process = worker.nonce == request.process_nonce.value();
  const bool moves = !same_process && !worker.joined && SharesPart(worker, launched);
  const bool replaces = worker.alive && worker.observer == observer && !moves;
  const bool keeps_place = same_process && replaces;
  const uint32_t index = replaces ? worker.index : FreeIndex(request.worker, launched);
  if (!same_process) {
    const uint64_t pushes = worker.left ? 0 : worker.pushes_before + worker.answered;
    std::vector<uint64_t> replaced = std::move(worker.replaced);
    if (worker.highest > 0 && !worker.left) replaced.push_back(worker.nonce);
    worker = ModelWorker();
    worker.process = session;
    worker.pushes_before = pushes;
    worker.replaced = std::move(replaced);
  }
  if (!keeps_place) {
    worker.from = from;
    if (started) worker.pushes = std::max(worker.pushes, Slowest(&worker).value_or(0));
  }
  worker.name = request.worker;
  worker.observer = observer;
  worker.nonce = request.process_nonce.value();
  worker.session = session;
  worker.alive = true;
  worker.joined = true;
  worker.left = false;
  worker.lost = false;
  worker.excused = false;
  worker.heard = now;
  worker.index = observer ? 0 : keeps_place ? index : request.index.value_or(index);
  return worker;
}

bool WorkersModel::AreAllTaken(const std::string& claimant, uint32_t launched) const {
  bool all = true;
  for (uint32_t part = 0; part < launched; ++part) {
    all = all && IsPartTaken(claimant, part, launched);
  }
  return all;
}

bool WorkersModel::SharesPart(const ModelWorker& worker, uint32_t launched) const {
  return IsPartTaken(worker.name, worker.index % launched, launched) &&
         !AreAllTaken(worker.name, launched);
}

uint32_t WorkersModel::FreeIndex(const std::string& claimant, uint32_t launched) const {
  const bool all = AreAllTaken(claimant, launched);
  for (uint32_t index = 0;; ++index) {
    if (!all && IsPartTaken(claimant, index % launched, launched)) continue;
    const bool taken = std::any_of(all_.begin(), all_.end(), [&](const auto& entry) {
      const ModelWorker& other = entry.second;
      return other.name != claimant && other.alive && !other.observer && other.index == index;
    });
    if (!taken) return index;
  }
}

bool WorkersModel::IsPartTaken(const std::string& claimant, uint32_t part,
                               uint32_t launched) const {
  return std::any_of(all_.begin(), all_.end(), [&](const auto& entry) {
    const ModelWorker& other = entry.second;
    const bool works = other.alive && other.joined && !other.lost;
    const bool done = other.left && other.answered + other.pushes_before > 0;
    return other.name != claimant && !other.observer && other.index % launched == part &&
           (works || done);
  });
}

ModelWorker* WorkersModel::Named(const std::string& name) {
  const auto it = all_.find(name);
  return it == all_.end() ? nullptr : &it->second;
}

const ModelWorker* WorkersModel::Named(const std::string& name) const {
  return const_cast<WorkersModel*>(this)->Named(name);
}

ModelWorker* WorkersModel::Of(uint64_t session) {
  for (auto& entry : all_) {
    if (entry.second.alive && entry.second.session == session) return &entry.second;
  }
  return nullptr;
}

const ModelWorker* WorkersModel::Of(uint64_t session) const {
  return const_cast<WorkersModel*>(this)->Of(session);
}

uint32_t WorkersModel::CountKnown() const {
  return static_cast<uint32_t>(std::count_if(all_.begin(), all_.end(), [](const auto& entry) {
    return !entry.second.observer && (entry.second.alive || entry.second.joined);
  }));
}

uint32_t WorkersModel::CountAlive(bool observers) const {
  return static_cast<uint32_t>(std::count_if(all_.begin(), all_.end(), [&](const auto& entry) {
    return entry.second.alive && entry.second.observer == observers;
  }));
}

uint32_t WorkersModel::CountThere() const {
  return static_cast<uint32_t>(std::count_if(all_.begin(), all_.end(), [](const auto& entry) {
    const ModelWorker& worker = entry.second;
    return !worker.observer && worker.alive && worker.joined && !worker.lost;
  }));
}

uint32_t WorkersModel::CountDone() const {
  return static_cast<uint32_t>(std::count_if(all_.begin(), all_.end(), [this](const auto& entry) {
    const ModelWorker& worker = entry.second;
    if (worker.observer || !worker.left || !worker.joined) return false;
    return std::none_of(all_.begin(), all_.end(), [&worker](const auto& later) {
      const ModelWorker& other = later.second;
      return !other.observer && other.joined && other.index == worker.index &&
             other.session > worker.session;
    });
  }));
}

ModelWorkers WorkersModel::Members(uint64_t step) const {
  ModelWorkers members;
  for (const auto& entry : all_) {
    const ModelWorker& worker = entry.second;
    if (worker.alive && !worker.observer && worker.from <= step) members.push_back(&worker);
  }
  return members;
}

absl::optional<uint64_t> WorkersModel::Slowest(const ModelWorker* except) const {
  absl::optional<uint64_t> slowest;
  absl::optional<uint64_t> fastest_excused;
  for (const auto& entry : all_) {
    const ModelWorker& worker = entry.second;
    if (!worker.alive || worker.observer || &worker == except) continue;
    if (worker.excused) {
      fastest_excused = std::max(fastest_excused.value_or(worker.pushes), worker.pushes);
    } else {
      slowest = std::min(slowest.value_or(worker.pushes), worker.pushes);
    }
  }
  return slowest.has_value() ? slowest : fastest_excused;
}

}  // namespace sluice
