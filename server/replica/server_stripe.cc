#include "server/replica/server_stripe.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/tensor/stripes.h"
#include "common/tensor/vector_copy.h"

namespace sluice {
namespace {

void Copy(absl::Span<const float> from, absl::Span<float> to, Parallel& parallel) {
  ForParts(parallel, from.size(), [&](size_t, uint64_t begin, uint64_t end) {
    CopyTo(AsPiece(from.subspan(begin, end - begin)), to.subspan(begin, end - begin));
  });
}

std::vector<SlotCheckpoint> CopySlots(StripeExecutor& stripe, Parallel& parallel) {
  std::vector<SlotCheckpoint> copies;
  for (const OptimizerSlot& slot : stripe.slots()) {
    copies.push_back({slot.name, FloatBuffer(slot.values.size())});
    Copy(slot.values, copies.back().values.span(), parallel);
  }
  return copies;
}

absl::Status RestoreSlots(const std::vector<SlotCheckpoint>& slots, StripeExecutor& stripe,
                          Parallel& parallel) {
  const std::vector<OptimizerSlot> own = stripe.slots();
  // A stripe without elements has no slots, and the file has them, empty.
  const bool none = own.empty() && std::all_of(slots.begin(), slots.end(), [](const auto& slot) {
                      return slot.values.size() == 0;
                    });
  const bool same = none || std::equal(own.begin(), own.end(), slots.begin(), slots.end(),
                                       [](const OptimizerSlot& a, const SlotCheckpoint& b) {
                                         return a.name == b.name;
                                       });
  if (!same) {
    return absl::DataLossError(absl::StrCat("the checkpoint has ", slots.size(),
                                            " optimizer slots; expected the ", own.size(),
                                            " slots of its optimizer, by name"));
  }
  for (size_t i = 0; i < own.size(); ++i) Copy(slots[i].values.span(), own[i].values, parallel);
  return absl::OkStatus();
}

}  // namespace

ServerStripe::ServerStripe(SnapshotMemory memory, Parallel& parallel, TableMemory table_memory)
    : memory_(memory), parallel_(parallel), table_memory_(std::move(table_memory)) {}

void ServerStripe::Open(const std::shared_ptr<const Layout>& layout,
                        const OptimizerConfig& optimizer, StripePlace place,
                        std::unique_ptr<ProgramOptimizer> program) {
  const Stripes stripes(layout->size(), place.stripes);
  absl::MutexLock lock(&mu_);
  place_ = place;
  whole_ = layout;
  layout_ = place.stripes == 1
                ? layout
                : std::make_shared<const Layout>(layout->OfStripe(stripes, place.stripe));
  snapshots_ = std::make_unique<SnapshotStore>(layout_->size(), memory_);
  model_ = std::make_unique<ModelExecutor>(layout, optimizer, stripes, place.stripe, table_memory_,
                                           parallel_, std::move(program));
}

// ---- Pushes ----

std::unique_ptr<PendingPush> ServerStripe::Begin(PushId push, const PushHeader& header,
                                                 std::shared_ptr<std::atomic<uint64_t>> arrived,
                                                 bool begins_sum) {
  return std::make_unique<PendingPush>(push, header, layout(), std::move(arrived),
                                       begins_sum ? LendNext(push) : nullptr);
}

std::shared_ptr<FloatBuffer> ServerStripe::LendNext(PushId push) {
  absl::MutexLock lock(&mu_);
  if (step_.next != nullptr || !lent_.expired()) return nullptr;
  const std::shared_ptr<Snapshot> next = snapshots_->Make();
  lent_ = next;
  lent_to_ = push;
  return {next, &next->values};
}

HaveReport ServerStripe::End(PendingPush& push, const absl::Status& fault,
                             bool measures_norm) const {
  HaveReport have = {push.id(), fault, absl::nullopt, push.bytes()};
  if (have.refused.ok()) have.refused = push.CheckComplete();
  push.Seal();
  if (have.refused.ok() && push.rows().rows() > 0) have.refused = tables()->CheckFits(push.rows());
  if (have.refused.ok() && measures_norm) have.norm = push.ParameterNorm();
  return have;
}

// ---- The first snapshot ----

std::shared_ptr<Snapshot> ServerStripe::MakeFirst(const PendingPush& offer, Step step) {
  std::shared_ptr<Snapshot> first;
  {
    absl::MutexLock lock(&mu_);
    first = snapshots_->Make();
  }
  first->step = step;
  offer.gradient().CopyTo(0, first->values.span());
  return first;
}

void ServerStripe::Start(std::shared_ptr<Snapshot> first) {
  model_->StartRows(nullptr, 0, *first).IgnoreError();  // there are none that could be missing
  absl::MutexLock lock(&mu_);
  snapshots_->Publish(std::move(first));
}

absl::Status ServerStripe::Restore(const StripeCheckpoint& checkpoint, Step step) {
  const absl::Status restored = RestoreSlots(checkpoint.slots, model_->stripe(), parallel_);
  if (!restored.ok()) return restored;
  model_->stripe().set_optimizer_steps(checkpoint.optimizer_steps);
  std::shared_ptr<Snapshot> first;
  {
    absl::MutexLock lock(&mu_);
    first = snapshots_->Make();
  }
  first->step = step;
  first->optimizer_steps = checkpoint.optimizer_steps;
  CopyTo(AsPiece(checkpoint.parameters->values.span()), first->values.span());
  const absl::Status rows = model_->StartRows(checkpoint.rows.get(), checkpoint.row_steps, *first);
  if (!rows.ok()) return rows;
  absl::MutexLock lock(&mu_);
  snapshots_->Publish(std::move(first));
  return absl::OkStatus();
}

// ---- Steps ----

SnapshotPair ServerStripe::BeginStep(PushId first) {
  absl::MutexLock lock(&mu_);
  if (step_.next == nullptr) {
    std::shared_ptr<Snapshot> next = first == lent_to_ ? lent_.lock() : nullptr;
    if (next == nullptr) next = snapshots_->Make();
    step_ = {snapshots_->latest(), std::move(next)};
    step_.next->step = step_.current->step.Next();
    lent_.reset();
  }
  return step_;
}

void ServerStripe::Add(std::unique_ptr<PendingPush> push, const GradientWeight& weight, bool last) {
  // The last gradient is not added to the sum, so its memory is not the sum's. The journal takes
  // the whole sum, which has memory of its own.
  if (journal_ == nullptr) model_->SumInto(*BeginStep(last ? PushId() : push->id()).next);
  if (!last || journal_ != nullptr) return model_->Add(*push, weight);
  model_->Keep(*push, weight);
  last_ = std::move(push);
}

void ServerStripe::Load(absl::Span<const float> sum, absl::Span<const TableSums> rows) {
  loaded_ = true;
  model_->SumInto(*BeginStep().next);
  // A stripe without elements may have rows.
  if (!sum.empty() || !rows.empty()) model_->Load(sum, rows);
}

StripeReport ServerStripe::Carry(const StepOrder& order) {
  if (order.kind == StepOrder::Kind::kDigest) return model_->Carry(order, {latest(), nullptr});
  const SnapshotPair step = BeginStep();
  WriteProgress progress;
  if (order.inconsistent_reads && !loaded_) {  // nobody reads before a step is made again
    progress = [this, &step](uint64_t written) {
      absl::MutexLock lock(&mu_);
      snapshots_->Grow(step.next, written);
    };
  }
  const bool measures = journal_ != nullptr || loaded_;
  return model_->Carry(order, step, progress, measures ? &checksum_ : nullptr);
}

void ServerStripe::Journal(StepRecord record) {
  record.checksum = checksum_;
  const bool has_sum = record.gradients > 0;
  journal_->Append(record, has_sum ? model_->sum() : absl::Span<const float>(),
                   has_sum ? model_->row_sums() : std::vector<TableSums>());
}

std::shared_ptr<const Snapshot> ServerStripe::Publish() {
  absl::MutexLock lock(&mu_);
  SnapshotPair made = std::exchange(step_, {});
  if (made.next == nullptr) return nullptr;  // the leader breaks the protocol
  made.next->optimizer_steps = model_->stripe().optimizer_steps();
  snapshots_->Publish(std::move(made.next));
  return std::move(made.current);
}

void ServerStripe::EndStep() {
  model_->Clear();
  last_ = nullptr;
  loaded_ = false;
  checksum_ = 0;
}

StripeCheckpoint ServerStripe::Copy() {
  StripeExecutor& stripe = model_->stripe();
  return {latest(), CopySlots(stripe, parallel_), stripe.optimizer_steps(),
          nullptr,  model_->row_slots(),          model_->row_steps()};
}

// ---- Readers ----

std::shared_ptr<const Snapshot> ServerStripe::latest() const {
  absl::MutexLock lock(&mu_);
  return snapshots_ == nullptr ? nullptr : snapshots_->latest();
}

std::shared_ptr<const Snapshot> ServerStripe::newest(uint64_t end) const {
  absl::MutexLock lock(&mu_);
  return snapshots_->newest(end);
}

TensorPart ServerStripe::Read(const TensorQuery& query, const Snapshot& snapshot) const {
  StripePlace place;
  std::shared_ptr<const Layout> whole;
  {
    absl::MutexLock lock(&mu_);
    place = place_;
    whole = whole_;
  }
  const StripedTensor tensor(*whole, Stripes(whole->size(), place.stripes), query);
  return tensor.Read(place.stripe, snapshot.values.span());
}

std::shared_ptr<RowTables> ServerStripe::tables() const {
  absl::MutexLock lock(&mu_);
  return model_ == nullptr ? nullptr : model_->tables();
}

HeldRows ServerStripe::rows() const {
  absl::MutexLock lock(&mu_);
  if (model_ == nullptr) return {};
  return {layout_, snapshots_->latest(), model_->row_slots(), place_};
}

std::shared_ptr<const Layout> ServerStripe::layout() const {
  absl::MutexLock lock(&mu_);
  return layout_;
}

}  // namespace sluice
