// Says how much of a checkpoint is read.

#ifndef SLUICE_COMMON_CHECKPOINT_READING_READ_PROGRESS_H_
#define SLUICE_COMMON_CHECKPOINT_READING_READ_PROGRESS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "common/base/progress_line.h"
#include "common/tensor/layout.h"

namespace sluice {

// Used by one thread. Rows of tables are not counted: the checkpoint does not tell their bytes.
class ReadProgress {
 public:
  // The work is to read parameters and so many slots once, of all stripes.
  ReadProgress(const std::string& path, const Layout& layout, size_t slots,
               const ProgressOutput& output);

  // For StripeReader::Read(). Valid as long as the object.
  std::function<void(uint64_t bytes)> listener();

 private:
  const uint64_t total_;
  uint64_t read_ = 0;
  ProgressLine line_;
};

}  // namespace sluice

#endif  // SLUICE_COMMON_CHECKPOINT_READING_READ_PROGRESS_H_
