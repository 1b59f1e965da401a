#include "worker/data/batch_deal.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <utility>

namespace sluice {

BatchDeal::BatchDeal(int64_t blocks, int64_t index, int64_t workers,
                     const std::vector<Launch>& earlier_launches)
    : index_(index), workers_(workers), per_epoch_(blocks / workers * workers) {
  for (const Launch& launch : earlier_launches) TakeOut(blocks, launch);
}

int64_t BatchDeal::Count(int64_t epochs) const {
  const auto end = std::find_if(remainder_.begin(), remainder_.end(),
                                [epochs](const Block& block) { return block.epoch >= epochs; });
  const int64_t left =
      (end - remainder_.begin()) + std::max<int64_t>(0, epochs - whole_from_) * per_epoch_;
  return std::max<int64_t>(0, left - index_ + workers_ - 1) / workers_;
}

BatchDeal::Block BatchDeal::Left(int64_t position, int64_t per_epoch) const {
  const auto begun = static_cast<int64_t>(remainder_.size());
  if (position < begun) return remainder_[static_cast<size_t>(position)];
  const int64_t beyond = position - begun;
  return {whole_from_ + beyond / per_epoch, beyond % per_epoch};
}

void BatchDeal::TakeOut(int64_t blocks, const Launch& launch) {
  const auto workers = static_cast<int64_t>(launch.size());
  if (workers == 0 || workers > blocks) return;  // no such launch can have trained
  const int64_t per_epoch = blocks / workers * workers;
  int64_t dealt = 0;                                  // all are before this one
  int64_t all = std::numeric_limits<int64_t>::max();  // none is missing before this one
  for (int64_t i = 0; i < workers; ++i) {
    const int64_t next = i + launch[static_cast<size_t>(i)] * workers;
    dealt = std::max(dealt, next - workers + 1);
    all = std::min(all, next);
  }
  // Whole epochs are listed only as far as they are begun.
  const auto begun = static_cast<int64_t>(remainder_.size());
  const int64_t epochs = std::max<int64_t>(0, dealt - begun + per_epoch - 1) / per_epoch;
  std::vector<Block> left;
  for (int64_t k = all; k < begun + epochs * per_epoch; ++k) {
    if (k / workers >= launch[static_cast<size_t>(k % workers)]) left.push_back(Left(k, per_epoch));
  }
  remainder_ = std::move(left);
  whole_from_ += epochs;
}

}  // namespace sluice
