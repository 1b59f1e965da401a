// A pipe between the measuring process and a process that it starts.

#ifndef SLUICE_TOOLS_BENCH_HARNESS_PIPE_H_
#define SLUICE_TOOLS_BENCH_HARNESS_PIPE_H_

#include <fcntl.h>
#include <unistd.h>

#include <utility>

namespace sluice::bench {

// Owns both ends, except those that were taken. No child inherits them by itself. Externally
// synchronized.
class Pipe {
 public:
  // open() is false, and errno says why, if the system refuses.
  Pipe() : open_(pipe2(ends_, O_CLOEXEC) == 0) {}
  ~Pipe() {
    for (const int end : ends_) {
      if (open_ && end >= 0) close(end);
    }
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;

  bool open() const { return open_; }
  int read_end() const { return ends_[0]; }
  int write_end() const { return ends_[1]; }
  // What is taken is the caller's.
  int TakeReadEnd() { return std::exchange(ends_[0], -1); }
  int TakeWriteEnd() { return std::exchange(ends_[1], -1); }

 private:
  int ends_[2];
  const bool open_;
};

}  // namespace sluice::bench

#endif  // SLUICE_TOOLS_BENCH_HARNESS_PIPE_H_
