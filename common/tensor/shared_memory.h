// Memory that one process writes and others of its node read.
//
// A sealed memory file (memfd_create(2)), private to its executor: nobody can shrink it under those
// that map it, and only its executor can map it writable. Others reach it as /proc/<pid>/fd/<fd>,
// which the kernel opens to processes of the same user and pid namespace. It has no name, so that
// nothing is left of it when the processes are gone, however they went.

#ifndef SLUICE_COMMON_TENSOR_SHARED_MEMORY_H_
#define SLUICE_COMMON_TENSOR_SHARED_MEMORY_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "common/base/file_descriptor.h"

namespace sluice {

// Where to find it. The cookie, drawn at random, is also in the memory: another file that happens
// to be found there is not taken for it.
struct SharedMemoryName {
  uint32_t pid = 0;
  uint32_t fd = 0;
  uint64_t cookie = 0;
  uint64_t elements = 0;
};

// A mapping of the whole file: a page for the header, then the floats.
class SharedMapping {
 public:
  SharedMapping(void* address, uint64_t elements) : address_(address), elements_(elements) {}
  ~SharedMapping();

  SharedMapping(const SharedMapping&) = delete;
  SharedMapping& operator=(const SharedMapping&) = delete;

  struct Header;
  Header* header() const { return static_cast<Header*>(address_); }
  float* floats() const;
  uint64_t elements() const { return elements_; }

 private:
  void* const address_;
  const uint64_t elements_;
};

// The executor's end. Any thread may call its methods.
class SharedMemory {
 public:
  // Zeroes. UNAVAILABLE if the system gives no such memory.
  static absl::StatusOr<std::shared_ptr<SharedMemory>> Create(uint64_t elements);

  const SharedMemoryName& name() const { return name_; }
  absl::Span<float> floats() const {
    return absl::MakeSpan(mapping_.floats(), mapping_.elements());
  }

  // Where `part` begins in it; none if it lies elsewhere.
  absl::optional<uint64_t> IndexOf(absl::Span<const float> part) const;

  // For memory that is written while others may be reading: to be called before each time. What
  // they then find is of another generation, which tells them that it may be torn.
  void StartGeneration();
  uint64_t generation() const;

 private:
  SharedMemory(FileDescriptor file, void* address, const SharedMemoryName& name);

  const FileDescriptor file_;
  const SharedMapping mapping_;
  const SharedMemoryName name_;
};

// A reader's end.
class SharedMemoryView {
 public:
  // Of whatever a peer may have named: UNAVAILABLE if it cannot be reached from here, or is not
  // what its name says. It cannot shrink, but its executor may write it at any time.
  static absl::StatusOr<std::shared_ptr<const SharedMemoryView>> Open(const SharedMemoryName& name);

  absl::Span<const float> floats() const {
    return absl::MakeConstSpan(mapping_.floats(), mapping_.elements());
  }

  // After having read it: whether all that was read is of `generation`.
  bool IsStill(uint64_t generation) const;

 private:
  SharedMemoryView(void* address, uint64_t elements) : mapping_(address, elements) {}

  const SharedMapping mapping_;
};

}  // namespace sluice

#endif  // SLUICE_COMMON_TENSOR_SHARED_MEMORY_H_
