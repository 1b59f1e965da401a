// Deals the batches of the data to the workers of a job. A job may be launched again with another
// number of workers; then the new launch deals what is left. Pure arithmetic, no data.

#ifndef SLUICE_WORKER_DATA_BATCH_DEAL_H_
#define SLUICE_WORKER_DATA_BATCH_DEAL_H_

#include <cstdint>
#include <vector>

namespace sluice {

// Each epoch has a random order of rows (sampler.h). Block b is the b-th batch_size rows of that
// order.
//
// A launch with W workers deals the first n = floor(blocks / W) * W blocks of each epoch. It puts
// these blocks into one sequence, epoch after epoch. The worker with index r takes every W-th block
// of the sequence, and begins with block r. So each step takes the next W blocks.
//
// If earlier launches have taken blocks, the sequence has only the blocks that are left. An epoch
// that an earlier launch has begun keeps the n of that launch. Its rest may be no multiple of W:
// then the last step of this epoch also takes blocks of the next epoch.
//
// So no block is taken twice in an epoch, and no dealt block is left out. That holds for all
// numbers of workers, and also if some workers of a launch had taken more batches than others.
//
// Any thread may call const methods.
class BatchDeal {
 public:
  // An earlier launch: how many batches each of its workers has taken, by the worker's index.
  using Launch = std::vector<int64_t>;
  struct Block {
    int64_t epoch = 0;  // from 0
    int64_t block = 0;
  };

  // The data has `blocks` blocks, at least `workers`. `index` is in [0, workers).
  BatchDeal(int64_t blocks, int64_t index, int64_t workers,
            const std::vector<Launch>& earlier_launches);

  // The block of this worker's batch number `batch`. The numbers begin at 0 and go on over all
  // epochs of this launch.
  Block At(int64_t batch) const { return Left(index_ + batch * workers_, per_epoch_); }

  // How many batches of this worker are in the first `epochs` epochs.
  int64_t Count(int64_t epochs) const;

 private:
  // Removes the blocks that `launch` has taken from the sequence.
  void TakeOut(int64_t blocks, const Launch& launch);
  // The block at this position of the sequence, if each epoch that no launch has begun has
  // `per_epoch` blocks in it.
  Block Left(int64_t position, int64_t per_epoch) const;

  const int64_t index_;
  const int64_t workers_;
  const int64_t per_epoch_;       // blocks of an epoch that this launch deals
  std::vector<Block> remainder_;  // what is left of epochs that earlier launches have begun
  int64_t whole_from_ = 0;        // the first epoch that no launch has begun
};

}  // namespace sluice

#endif  // SLUICE_WORKER_DATA_BATCH_DEAL_H_
