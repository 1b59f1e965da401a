// Memory that one process writes and other processes of its node read: gradients and parameters go
// this way between a worker and a server on one node.
//
// It is a sealed memory file (memfd_create(2)). Nobody can shrink it, and only its owner can map it
// writable. Other processes of the same user and pid namespace open it as /proc/<pid>/fd/<fd>. It
// has no name in the file system, so nothing is left when the processes have ended.

#ifndef SLUICE_COMMON_TENSOR_SHARED_MEMORY_H_
#define SLUICE_COMMON_TENSOR_SHARED_MEMORY_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "common/base/file_descriptor.h"

namespace sluice {

// Tells another process where the memory is. The random cookie is also in the memory, so another
// file with the same numbers is not mistaken for it.
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

// The owner's side. Any thread may call its methods.
class SharedMemory {
 public:
  // Creates memory for `elements` floats, all 0. UNAVAILABLE if the system does not provide it.
  static absl::StatusOr<std::shared_ptr<SharedMemory>> Create(uint64_t elements);

  const SharedMemoryName& name() const { return name_; }
  absl::Span<float> floats() const {
    return absl::MakeSpan(mapping_.floats(), mapping_.elements());
  }

  // The index of the first float of `part`; absent if `part` does not lie in this memory.
  absl::optional<uint64_t> IndexOf(absl::Span<const float> part) const;

  // Called before the memory is written again while others may read it. Readers then see another
  // generation, and know that what they read may be a mixture.
  void StartGeneration();
  uint64_t generation() const;

 private:
  SharedMemory(FileDescriptor file, void* address, const SharedMemoryName& name);

  const FileDescriptor file_;
  const SharedMapping mapping_;
  const SharedMemoryName name_;
};

// A reader's side. Any thread may call its methods.
class SharedMemoryView {
 public:
  // `name` may come from a peer. UNAVAILABLE if the memory cannot be reached from this process, or
  // is not what `name` says. It cannot shrink, but its owner may write it at any time.
  static absl::StatusOr<std::shared_ptr<const SharedMemoryView>> Open(const SharedMemoryName& name);

  absl::Span<const float> floats() const {
    return absl::MakeConstSpan(mapping_.floats(), mapping_.elements());
  }

  // Called after reading: whether everything that was read is of `generation`.
  bool IsStill(uint64_t generation) const;

 private:
  SharedMemoryView(void* address, uint64_t elements) : mapping_(address, elements) {}

  const SharedMapping mapping_;
};

}  // namespace sluice

#endif  // SLUICE_COMMON_TENSOR_SHARED_MEMORY_H_
