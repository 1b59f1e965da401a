// Owns a file descriptor, and closes it when destroyed.

#ifndef SLUICE_COMMON_BASE_FILE_DESCRIPTOR_H_
#define SLUICE_COMMON_BASE_FILE_DESCRIPTOR_H_

#include <unistd.h>

#include <utility>

namespace sluice {

// Can be moved, but not copied.
class FileDescriptor {
 public:
  FileDescriptor() = default;
  explicit FileDescriptor(int fd) : fd_(fd) {}  // negative: none
  FileDescriptor(FileDescriptor&& other) noexcept : fd_(other.Release()) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~FileDescriptor() {
    if (fd_ >= 0) close(fd_);
  }

  bool ok() const { return fd_ >= 0; }
  int get() const { return fd_; }

  // Gives up ownership: the caller closes it.
  int Release() { return std::exchange(fd_, -1); }

 private:
  int fd_ = -1;
};

}  // namespace sluice

#endif  // SLUICE_COMMON_BASE_FILE_DESCRIPTOR_H_
