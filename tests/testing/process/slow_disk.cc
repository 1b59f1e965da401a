// A library for LD_PRELOAD that makes a process's disk slow: it writes $SLUICE_DISK_MB_PER_S
// megabytes a second to regular files, and each sync takes 50 ms more than it would. As with a real
// disk, the thread that writes or syncs is the one that waits.

#include <dlfcn.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

namespace {

constexpr double kSync = 0.05;  // seconds

// 0 if the disk is as fast as it is.
double BytesPerSecond() {
  static const char* const text = std::getenv("SLUICE_DISK_MB_PER_S");
  static const double bytes = text == nullptr ? 0 : 1e6 * std::atof(text);
  return bytes;
}

void Wait(double seconds) {
  const int before = errno;
  timespec left = {static_cast<time_t>(seconds), 0};
  left.tv_nsec = static_cast<long>((seconds - static_cast<double>(left.tv_sec)) * 1e9);
  while (nanosleep(&left, &left) != 0 && errno == EINTR) {
  }
  errno = before;
}

bool IsRegular(int file) {
  struct stat about = {};
  return fstat(file, &about) == 0 && S_ISREG(about.st_mode);
}

int SyncSlowly(const char* name, int file) {
  using Sync = int (*)(int);
  if (BytesPerSecond() > 0) Wait(kSync);
  return reinterpret_cast<Sync>(dlsym(RTLD_NEXT, name))(file);
}

}  // namespace

extern "C" {

ssize_t write(int file, const void* bytes, size_t size) {
  using Write = ssize_t (*)(int, const void*, size_t);
  static const auto real = reinterpret_cast<Write>(dlsym(RTLD_NEXT, "write"));
  const ssize_t written = real(file, bytes, size);
  if (written > 0 && BytesPerSecond() > 0 && IsRegular(file)) {
    Wait(static_cast<double>(written) / BytesPerSecond());
  }
  return written;
}

int fdatasync(int file) { return SyncSlowly("fdatasync", file); }

int fsync(int file) { return SyncSlowly("fsync", file); }

}  // extern "C"
