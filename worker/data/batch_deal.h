// Deals the batches of the data to the workers of a job, also when it goes on with another number
// of workers than it began with. Pure arithmetic, no data.

#ifndef SLUICE_WORKER_DATA_BATCH_DEAL_H_
#define SLUICE_WORKER_DATA_BATCH_DEAL_H_

#include <cstdint>
#include <vector>

namespace sluice {

// Block b of an epoch is the b-th batch_size rows of the epoch's order (sampler.h).
//
// A launch with W workers deals n = floor(blocks / W) * W blocks of each epoch, one after the
// other: the worker with index r takes the blocks r, r + W, r + 2 W and so on of all that are left,
// epoch after epoch. So each step takes the next W blocks. Left are those that no earlier launch
// has taken. The first epoch that a launch begins with is perhaps one that another has begun: then
// its blocks are those that the other one deals, and a step at its end takes blocks of the next
// epoch, too. So no block is taken twice in an epoch, and none that a launch deals is left out,
// whatever numbers of workers there are, and however far the workers of a launch were apart.
//
// Any thread may call const methods.
class BatchDeal {
 public:
  // How many batches each worker of an earlier launch has taken, by its index.
  using Launch = std::vector<int64_t>;
  struct Block {
    int64_t epoch = 0;  // from 0
    int64_t block = 0;
  };

  // The data has `blocks` blocks, at least `workers`. `index` is in [0, workers).
  BatchDeal(int64_t blocks, int64_t index, int64_t workers,
            const std::vector<Launch>& earlier_launches);

  // This worker's batch of that number, which counts from 0 and over all epochs of this launch.
  Block At(int64_t batch) const { return Left(index_ + batch * workers_, per_epoch_); }

  // How many batches of this worker are in the first `epochs` epochs.
  int64_t Count(int64_t epochs) const;

 private:
  void TakeOut(int64_t blocks, const Launch& launch);
  // What is left, if each whole epoch has so many blocks.
  Block Left(int64_t position, int64_t per_epoch) const;

  const int64_t index_;
  const int64_t workers_;
  const int64_t per_epoch_;       // blocks
  std::vector<Block> remainder_;  // of epochs that earlier launches have begun, in order
  int64_t whole_from_ = 0;        // the first epoch that none has begun
};

}  // namespace sluice

#endif  // SLUICE_WORKER_DATA_BATCH_DEAL_H_
