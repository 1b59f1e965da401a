// How the process's malloc treats memory that was freed. To be called by mains, before there are
// threads.
//
// The buffers that gradients and parameters travel through are some MiB long and short-lived. By
// default glibc returns such memory to the kernel at once, and every message then pays for its page
// faults again: that costs more than copying it (first touch 1.8 GB/s, a copy 7 GB/s and more).

#ifndef SLUICE_COMMON_BASE_MALLOC_TUNING_H_
#define SLUICE_COMMON_BASE_MALLOC_TUNING_H_

namespace sluice {

// Keeps what was freed for what comes next. Vectors of 32 MiB and more still go back to the kernel.
void KeepFreedMemory();

// Also lets all threads share one heap: memory that one has freed serves the others, so that the
// peak is lower. For a process whose threads allocate little but large.
void KeepFreedMemoryInOneHeap();

}  // namespace sluice

#endif  // SLUICE_COMMON_BASE_MALLOC_TUNING_H_
