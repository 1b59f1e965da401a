// Gives freed memory back to the kernel once nobody has needed it for a while. Server calls it.
//
// A process with KeepFreedMemory() keeps what it frees, so without this it would stay as large as
// its worst moment, for example an attack with many large messages.

#ifndef SLUICE_COMMON_BASE_IDLE_MEMORY_H_
#define SLUICE_COMMON_BASE_IDLE_MEMORY_H_

#include <cstdint>
#include <limits>

#include "absl/time/time.h"

namespace sluice {

// Used by one thread.
class IdleMemory {
 public:
  static constexpr absl::Duration kLook = absl::Seconds(1);
  static constexpr absl::Duration kIdle = absl::Minutes(1);
  static constexpr uint64_t kEnough = 64 << 20;  // bytes

  // Call it often. It looks once in kLook, and judges once in kIdle: if more than kEnough bytes
  // were free and still in memory at every look, returns all free memory to the kernel, and true.
  // Training pays page faults once for what it takes again. While this runs, other threads that
  // allocate wait: about 7 ms for each 100 MB. It does nothing where malloc is not glibc's.
  bool Look(absl::Time now);

 private:
  absl::Time next_ = absl::InfinitePast();
  absl::Time since_ = absl::InfinitePast();                // the first look of this while
  uint64_t least_ = std::numeric_limits<uint64_t>::max();  // free bytes at a look since then
};

}  // namespace sluice

#endif  // SLUICE_COMMON_BASE_IDLE_MEMORY_H_
