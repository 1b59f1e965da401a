// A library for LD_PRELOAD that moves the wall clock of a process: it is ahead of the true time by
// the nanoseconds (an int64_t) in the file that $SLUICE_MOVED_CLOCK names. The number may change at
// any time, as when somebody sets the machine's clock: also waits until a time of the wall clock
// (Abseil's, and so gRPC's) then end earlier or later. Other clocks are left alone, and so are
// waits inside glibc. wall_clock.h is what tests use.

#include <dlfcn.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdint>
#include <cstdlib>

namespace {

using Nanoseconds = int64_t;

constexpr Nanoseconds kSecond = 1'000'000'000;
constexpr Nanoseconds kSlice = kSecond / 100;  // how soon a wait notices that the clock was set

const std::atomic<Nanoseconds>* MapFile() {
  static const std::atomic<Nanoseconds> zero(0);
  const char* const path = std::getenv("SLUICE_MOVED_CLOCK");
  const int file = path == nullptr ? -1 : open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return &zero;
  void* const memory = mmap(nullptr, sizeof(Nanoseconds), PROT_READ, MAP_SHARED, file, 0);
  close(file);
  return memory == MAP_FAILED ? &zero : static_cast<const std::atomic<Nanoseconds>*>(memory);
}

Nanoseconds Ahead() {
  static const std::atomic<Nanoseconds>* const ahead = MapFile();
  return ahead->load();
}

using Syscall = long (*)(long, ...);

Syscall RealSyscall() {
  static const auto real = reinterpret_cast<Syscall>(dlsym(RTLD_NEXT, "syscall"));
  return real;
}

Nanoseconds Count(const timespec& time) { return time.tv_sec * kSecond + time.tv_nsec; }

timespec TimeOf(Nanoseconds count) {
  Nanoseconds rest = count % kSecond;
  if (rest < 0) rest += kSecond;
  return {(count - rest) / kSecond, rest};
}

Nanoseconds TrueTime(clockid_t clock) {
  timespec time = {};
  RealSyscall()(SYS_clock_gettime, clock, &time);
  return Count(time);
}

Nanoseconds WallTime() { return TrueTime(CLOCK_REALTIME) + Ahead(); }

struct FutexWait {
  uint32_t* word;
  long operation;
  long value;
  const timespec* until;
  long bits;
};

// Waits in slices, by the monotonic clock.
long WaitUntilWallTime(const FutexWait& wait) {
  for (;;) {
    const Nanoseconds left = Count(*wait.until) - WallTime();
    if (left <= 0) {
      errno = ETIMEDOUT;
      return -1;
    }
    const timespec slice = TimeOf(TrueTime(CLOCK_MONOTONIC) + std::min(left, kSlice));
    const long woken =
        RealSyscall()(SYS_futex, wait.word, wait.operation & ~long{FUTEX_CLOCK_REALTIME},
                      wait.value, &slice, nullptr, wait.bits);
    if (woken == 0 || errno != ETIMEDOUT) return woken;
  }
}

}  // namespace

extern "C" {

int clock_gettime(clockid_t clock, timespec* time) noexcept {
  const long got = RealSyscall()(SYS_clock_gettime, clock, time);
  const bool wall = clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE;
  if (got == 0 && wall) *time = TimeOf(Count(*time) + Ahead());
  return static_cast<int>(got);
}

int gettimeofday(timeval* time, void*) noexcept {
  const timespec now = TimeOf(WallTime());
  *time = {now.tv_sec, now.tv_nsec / 1000};
  return 0;
}

time_t time(time_t* time) noexcept {
  const time_t now = TimeOf(WallTime()).tv_sec;
  if (time != nullptr) *time = now;
  return now;
}

long syscall(long number, ...) noexcept {
  va_list list;
  va_start(list, number);
  long words[6];
  for (long& word : words) word = va_arg(list, long);
  va_end(list);
  if (number == SYS_futex && (words[1] & FUTEX_CLOCK_REALTIME) != 0 && words[3] != 0) {
    return WaitUntilWallTime({reinterpret_cast<uint32_t*>(words[0]), words[1], words[2],
                              reinterpret_cast<const timespec*>(words[3]), words[5]});
  }
  return RealSyscall()(number, words[0], words[1], words[2], words[3], words[4], words[5]);
}

}  // extern "C"
