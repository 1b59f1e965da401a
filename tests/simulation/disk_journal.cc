#include "tests/simulation/disk_journal.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace sluice {
namespace {

// What a file keeps of a step.
StepRecord SavedStep(const StepRecord& step) {
  StepRecord saved = step;
  saved.terms = StepTerms();
  saved.terms.consistency = step.terms.consistency;
  saved.terms.learning_rates = step.terms.learning_rates;
  saved.terms.changed = step.terms.changed;
  saved.terms.clip_norm = step.terms.clip_norm;
  saved.terms.ordered = step.terms.ordered;
  saved.terms.momentum_divisor = step.terms.momentum_divisor;
  saved.terms.running_means = step.terms.running_means;
  for (SessionRecord& worker : saved.contributors) worker = SavedWorker(worker);
  return saved;
}

}  // namespace

SessionRecord SavedWorker(const SessionRecord& worker) {
  SessionRecord saved;
  saved.worker = worker.worker;
  saved.process_nonce = worker.process_nonce;
  saved.index = worker.index;
  saved.presence = worker.presence;
  if (worker.alive()) saved.presence = Presence::kLost;
  saved.banned = worker.banned;
  saved.last_sequence = worker.last_sequence;
  saved.answers = worker.answers;
  for (auto& answer : saved.answers) answer.second.part_of.reset();
  saved.clock = worker.clock;
  saved.accepted = worker.accepted;
  saved.stale = worker.stale;
  saved.skipped = worker.skipped;
  saved.pushes_before = worker.pushes_before;
  saved.replaced = worker.replaced;
  return saved;
}

// ---- Writing ----

class DiskJournal::Writer final : public StepJournal {
 public:
  explicit Writer(DiskJournal& journal) : journal_(journal) {}
  ~Writer() override { journal_.listener_ = nullptr; }

  void Append(const StepRecord& record, absl::Span<const float> sum,
              absl::Span<const TableSums> rows) override {
    journal_.records_.push_back({SavedStep(record), ValuesOf(sum), {rows.begin(), rows.end()}});
  }

 private:
  DiskJournal& journal_;
};

std::unique_ptr<StepJournal> DiskJournal::Start(Listener listener) {
  durable_ = Step();
  stopped_ = false;
  listener_ = std::move(listener);
  return std::make_unique<Writer>(*this);
}

void DiskJournal::Sync(size_t most) {
  const size_t written = std::min(most, waiting());
  if (full_ || written == 0) return;
  synced_ += written;
  if (std::exchange(stopped_, false)) Tell(absl::OkStatus());
  durable_ = records_[synced_ - 1].step.step;
  Tell(absl::OkStatus());
}

void DiskJournal::TellIfStopped() {
  if (!full_ || waiting() == 0 || std::exchange(stopped_, true)) return;
  Tell(absl::ResourceExhaustedError("its disk is full"));
}

void DiskJournal::Tell(const absl::Status& stopped) {
  if (listener_ != nullptr) listener_({durable_, stopped});
}

void DiskJournal::End(size_t kept) {
  records_.resize(synced_ + std::min(kept, waiting()));
  synced_ = records_.size();
  durable_ = Step();
  listener_ = nullptr;
}

// ---- Reading ----

absl::StatusOr<std::vector<const DiskJournal::Record*>> DiskJournal::Following(
    const CheckpointKey& checkpoint, const IncarnationBegins& begins) const {
  std::vector<const Record*> following;
  Step last = checkpoint.step;
  for (const Record& record : records_) {
    const StepRecord& step = record.step;
    const bool lost = std::any_of(begins.begin(), begins.end(), [&](const auto& begun) {
      return begun.first > step.incarnation && begun.second < step.step;
    });
    if (step.incarnation < checkpoint.incarnation || lost || step.step <= last) continue;
    if (step.step != last.Next()) {
      return absl::DataLossError(absl::StrCat("step ", last.value() + 1, " is not in the journal, ",
                                              "but step ", step.step.value(), " is"));
    }
    last = step.step;
    following.push_back(&record);
  }
  return following;
}

void DiskJournal::RemoveUpTo(const CheckpointKey& checkpoint) {
  while (synced_ > 0 && records_.front().step.incarnation <= checkpoint.incarnation &&
         records_.front().step.step <= checkpoint.step) {
    records_.pop_front();
    --synced_;
  }
}

}  // namespace sluice
