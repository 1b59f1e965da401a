#include "tests/simulation/stripe_disk.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "tests/testing/replica/stripes_in_memory.h"

namespace sluice {
namespace {

// FNV-1a, a word at a time.
class Checksum {
 public:
  void Add(uint64_t word) { sum_ = (sum_ ^ word) * 0x100000001b3; }
  uint64_t sum() const { return sum_; }

 private:
  uint64_t sum_ = 0xcbf29ce484222325;
};

uint64_t ChecksumOf(const TakeCheckpoint& checkpoint, uint32_t server,
                    const StripeCheckpoint& stripe) {
  Checksum sum;
  sum.Add(checkpoint.incarnation.value());
  sum.Add(checkpoint.step.value());
  sum.Add(server);
  sum.Add(stripe.optimizer_steps);
  for (const float value : stripe.parameters->values.span()) {
    uint32_t bits = 0;
    std::memcpy(&bits, &value, sizeof(bits));
    sum.Add(bits);
  }
  return sum.sum();
}

}  // namespace

absl::StatusOr<uint64_t> StripeDisk::Save(const TakeCheckpoint& checkpoint, const Layout& /*whole*/,
                                          const StripeCheckpoint& stripe) {
  File& file = files_[{checkpoint.incarnation.value(), checkpoint.step.value()}];
  file.stripe = StripesInMemory::Copy(stripe);
  file.checksum = ChecksumOf(checkpoint, server_, stripe);
  ++saved_[checkpoint.incarnation.value()];
  return file.checksum;
}

absl::StatusOr<StripeCheckpoint> StripeDisk::Load(const CheckpointSource& checkpoint,
                                                  const Layout& /*whole*/) {
  const File* const file = Find({checkpoint.incarnation, checkpoint.step});
  if (file == nullptr) {
    return absl::DataLossError(absl::StrCat("there is no file of step ", checkpoint.step.value(),
                                            " of incarnation ", checkpoint.incarnation.value()));
  }
  if (file->checksum != checkpoint.stripes.at(server_)) {
    return absl::DataLossError("the file has another checksum than the state names");
  }
  return StripesInMemory::Copy(file->stripe);
}

// ---- The journal ----

absl::StatusOr<Step> StripeDisk::OpenJournal(const LoadCheckpoint& checkpoint,
                                             const Layout& /*whole*/) {
  const CheckpointSource& source = checkpoint.source;
  const auto following = journal_.Following({source.incarnation, source.step}, checkpoint.begins);
  if (!following.ok()) return following.status();
  repeats_ = {following->begin(), following->end()};
  return repeats_.empty() ? source.step : repeats_.back()->step.step;
}

const DiskJournal::Record* StripeDisk::NextRecord() {
  if (repeats_.empty()) return nullptr;
  const DiskJournal::Record* const next = repeats_.front();
  repeats_.pop_front();
  return next;
}

absl::StatusOr<JournaledSum> StripeDisk::NextJournaled() {
  const DiskJournal::Record* const next = NextRecord();
  if (next == nullptr) return absl::DataLossError("the journal has no more steps");
  JournaledSum step = {next->step.step, next->step.incarnation, next->step.checksum,
                       FloatBuffer(next->sum.size()), next->rows};
  std::copy(next->sum.begin(), next->sum.end(), step.sum.span().begin());
  return step;
}

// ---- Files that belong to no checkpoint ----

void StripeDisk::Keep(const KeepCheckpoints& checkpoints) {
  if (!checkpoints.keep.empty()) journal_.RemoveUpTo(checkpoints.keep.back());
  for (auto it = files_.begin(); it != files_.end();) {
    it = IsKept(it->first, checkpoints.keep) ? std::next(it) : files_.erase(it);
  }
}

// What is newer than all of them may become a checkpoint yet.
bool StripeDisk::IsKept(const Name& name, const std::vector<CheckpointKey>& keep) {
  bool older = false;
  for (const CheckpointKey& key : keep) {
    if (NameOf(key) == name) return true;
    older = older || name < NameOf(key);
  }
  return !older;
}

const StripeDisk::File* StripeDisk::Find(const CheckpointKey& checkpoint) const {
  const auto found = files_.find(NameOf(checkpoint));
  return found == files_.end() ? nullptr : &found->second;
}

uint64_t StripeDisk::SavedBy(Incarnation incarnation) const {
  const auto saved = saved_.find(incarnation.value());
  return saved == saved_.end() ? 0 : saved->second;
}

bool StripeDisk::HasOnly(const std::vector<CheckpointKey>& keep) const {
  return std::all_of(files_.begin(), files_.end(),
                     [&](const auto& file) { return IsKept(file.first, keep); });
}

}  // namespace sluice
