// The books of pushes: each one received ends in exactly one column.

#ifndef SLUICE_SERVER_PUSH_BOOKS_H_
#define SLUICE_SERVER_PUSH_BOOKS_H_

#include <cstdint>

namespace sluice {

struct PushBooks {
  uint64_t received = 0;
  uint64_t accepted = 0;   // counted, whether or not they completed a step
  uint64_t stale = 0;      // dropped for their age
  uint64_t duplicate = 0;  // answered before
  uint64_t rejected = 0;   // refused with an error
  uint64_t aborted =
      0;  // broken off before they were whole, or overtaken by the end of their session
  uint64_t in_progress = 0;

  bool Balanced() const {
    return received == accepted + stale + duplicate + rejected + aborted + in_progress;
  }
};

}  // namespace sluice

#endif  // SLUICE_SERVER_PUSH_BOOKS_H_
