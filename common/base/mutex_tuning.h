// Tunes Abseil's mutexes, which gRPC uses, too. Mains call this before they start threads.

#ifndef SLUICE_COMMON_BASE_MUTEX_TUNING_H_
#define SLUICE_COMMON_BASE_MUTEX_TUNING_H_

namespace sluice {

// Turns off the search for deadlocks. Debian's Abseil is built with it: each lock then notes in
// which order the process takes its mutexes.
void TrustLockOrder();

}  // namespace sluice

#endif  // SLUICE_COMMON_BASE_MUTEX_TUNING_H_
