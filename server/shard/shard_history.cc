// What of a shard outlives its server: earlier lives, what is written down, images.

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "common/tensor/vector_copy.h"
#include "server/shard/shard.h"

namespace sluice {
namespace {

void Copy(absl::Span<const float> from, absl::Span<float> to, Parallel& parallel) {
  ForParts(parallel, from.size(), [&](size_t, uint64_t begin, uint64_t end) {
    CopyTo(AsPiece(from.subspan(begin, end - begin)), to.subspan(begin, end - begin));
  });
}

}  // namespace

// ---- Earlier lives ----

absl::Status Shard::Restore(const ShardImage& image) {
  absl::MutexLock lock(&mu_);
  maker_ = absl::make_unique<StepMaker>(*image.layout, image.optimizer, options_.guards.clip_norm,
                                        *parallel_);
  const std::vector<OptimizerSlot> slots = maker_->slots();
  const bool same =
      std::equal(slots.begin(), slots.end(), image.slots.begin(), image.slots.end(),
                 [](const OptimizerSlot& a, const SlotImage& b) { return a.name == b.name; });
  if (!same) {
    return absl::DataLossError(absl::StrCat("the saved optimizer has ", image.slots.size(),
                                            " slots, or of other names ", "than the ", slots.size(),
                                            " that this server keeps of it"));
  }
  for (size_t i = 0; i < slots.size(); ++i) {
    Copy(image.slots[i].values.span(), slots[i].values, *parallel_);
  }
  maker_->set_optimizer_steps(image.optimizer_steps);
  coordinator_.Restore(image);
  return absl::OkStatus();
}

void Shard::Replay(const StepRecord& record, absl::Span<const float> sum) {
  absl::MutexLock lock(&mu_);
  const std::shared_ptr<const Snapshot> current = coordinator_.snapshots()->latest();
  std::shared_ptr<Snapshot> next = coordinator_.snapshots()->Make();
  maker_->Load(record.gradients, record.samples, sum);
  maker_->Make(record.consistency, record.learning_rates, nullptr, current->values.span(),
               next->values.span());
  coordinator_.Replayed(record, std::move(next));
}

void Shard::BeginLife(const std::map<Incarnation, Step>& lives) {
  absl::MutexLock lock(&mu_);
  coordinator_.BeginLife(lives);
}

void Shard::SetLostSteps(uint64_t steps) {
  absl::MutexLock lock(&mu_);
  coordinator_.set_lost_steps(steps);
}

// ---- What is kept ----

void Shard::TellSteps(std::function<void(Step)> made) { made_ = std::move(made); }

void Shard::KeepSteps(StepLog* log) {
  absl::MutexLock lock(&mu_);
  log_ = log;
  coordinator_.HoldUntilKept();
}

void Shard::Kept(Step step) {
  CompletingLock lock(&mu_);
  coordinator_.Kept(step, lock.completions());
}

void Shard::SetTrouble(const absl::Status& trouble) {
  absl::MutexLock lock(&mu_);
  coordinator_.SetTrouble(trouble);
}

void Shard::AbandonHeld(const absl::Status& why) {
  CompletingLock lock(&mu_);
  coordinator_.AbandonHeld(why, lock.completions());
}

void Shard::WriteDown(const StepWork& work) {
  StepRecord record;
  {
    absl::MutexLock lock(&mu_);
    record = coordinator_.Record(work);
  }
  record.gradients = maker_->gradients();
  record.samples = maker_->samples();
  log_->Append(record, maker_->sum());
}

// ---- Images ----

void Shard::TakeImages(uint64_t steps, ImageCallback taken) {
  absl::MutexLock lock(&mu_);
  steps_between_images_ = steps;
  every_image_ = std::move(taken);
}

// There are parameters.
void Shard::WantOwnImage() {
  if (every_image_ == nullptr || !coordinator_.WantImage().ok()) return;
  image_callbacks_.push_back(every_image_);
}

void Shard::TakeImage(ImageCallback taken) {
  absl::Status wanted;
  {
    absl::MutexLock lock(&mu_);
    wanted = coordinator_.WantImage();
    if (wanted.ok()) image_callbacks_.push_back(taken);
  }
  if (!wanted.ok()) {
    taken(wanted);
    return;
  }
  Advance();
}

// Copies what the next step will overwrite; the parameters are immutable as they are.
void Shard::MakeImage() {
  const absl::Time began = clock_.Now();
  const auto image = std::make_shared<ShardImage>();
  std::vector<ImageCallback> callbacks;
  {
    absl::MutexLock lock(&mu_);
    *image = coordinator_.Image();
    callbacks.swap(image_callbacks_);
  }
  {
    const TraceSpan span(trace_, kStepsRow, "image", image->step);
    for (const OptimizerSlot& slot : maker_->slots()) {
      image->slots.push_back({slot.name, FloatBuffer(slot.values.size())});
      Copy(slot.values, image->slots.back().values.span(), *parallel_);
    }
  }
  image->optimizer_steps = maker_->optimizer_steps();
  image->pause = clock_.Now() - began;
  for (const ImageCallback& taken : callbacks) taken(std::shared_ptr<const ShardImage>(image));
}

}  // namespace sluice
