#include "common/tensor/shared_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <limits>
#include <new>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/file_descriptor.h"
#include "common/base/random.h"

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

namespace sluice {

struct SharedMapping::Header {
  uint64_t cookie;
  std::atomic<uint64_t> generation;
};

namespace {

constexpr uint64_t kHeaderBytes = 4096;  // the floats begin on a page
constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_FUTURE_WRITE;
static_assert(std::atomic<uint64_t>::is_always_lock_free, "it is shared between processes");

uint64_t BytesOf(uint64_t elements) { return kHeaderBytes + elements * sizeof(float); }

absl::Status FailedTo(absl::string_view what) {
  return absl::UnavailableError(absl::StrCat("cannot ", what, ": ", strerror(errno)));
}

absl::Status CheckFile(int fd, const SharedMemoryName& name) {
  if (name.elements > (std::numeric_limits<uint64_t>::max() - kHeaderBytes) / sizeof(float)) {
    return absl::UnavailableError(
        "the peer's memory has more elements than fit into an address space");
  }
  struct stat info = {};
  if (fstat(fd, &info) != 0) return FailedTo("read the size of the peer's memory");
  // Only memory files have seals.
  const int seals = fcntl(fd, F_GET_SEALS);
  const bool sealed = seals >= 0 && (seals & kSeals) == kSeals;
  const bool large_enough = static_cast<uint64_t>(info.st_size) >= BytesOf(name.elements);
  if (sealed && large_enough && info.st_uid == geteuid()) return absl::OkStatus();
  return absl::UnavailableError(
      "the peer's memory is smaller than its name says, not sealed, or another user's");
}

}  // namespace

SharedMapping::~SharedMapping() { munmap(address_, BytesOf(elements_)); }

float* SharedMapping::floats() const {
  return reinterpret_cast<float*>(static_cast<char*>(address_) + kHeaderBytes);
}

// ---- The owner's side ----

absl::StatusOr<std::shared_ptr<SharedMemory>> SharedMemory::Create(uint64_t elements) {
  FileDescriptor file(memfd_create("sluice", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!file.ok()) return FailedTo("make shared memory");
  fchmod(file.get(), S_IRUSR | S_IWUSR);
  // Reserve the memory now, as an error; otherwise a later write would end the process by a signal.
  errno = posix_fallocate(file.get(), 0, static_cast<off_t>(BytesOf(elements)));
  if (errno != 0) return FailedTo("reserve shared memory");
  void* const address = mmap(nullptr, BytesOf(elements), PROT_READ | PROT_WRITE,
                             MAP_SHARED | MAP_POPULATE, file.get(), 0);
  if (address == MAP_FAILED) return FailedTo("map shared memory");
  SharedMemoryName name;
  name.pid = static_cast<uint32_t>(getpid());
  name.fd = static_cast<uint32_t>(file.get());
  name.cookie = RandomNonce().value();
  name.elements = elements;
  new (address) SharedMapping::Header{name.cookie, {0}};
  std::shared_ptr<SharedMemory> memory(new SharedMemory(std::move(file), address, name));
  if (fcntl(memory->file_.get(), F_ADD_SEALS, kSeals) != 0) return FailedTo("seal shared memory");
  return memory;
}

SharedMemory::SharedMemory(FileDescriptor file, void* address, const SharedMemoryName& name)
    : file_(std::move(file)), mapping_(address, name.elements), name_(name) {}

absl::optional<uint64_t> SharedMemory::IndexOf(absl::Span<const float> part) const {
  const absl::Span<const float> all = floats();
  if (part.data() < all.data() || part.data() > all.data() + all.size()) return absl::nullopt;
  const auto index = static_cast<uint64_t>(part.data() - all.data());
  if (part.size() > all.size() - index) return absl::nullopt;
  return index;
}

void SharedMemory::StartGeneration() {
  mapping_.header()->generation.fetch_add(1, std::memory_order_relaxed);
  // Readers must see the new generation before they see what is written next.
  std::atomic_thread_fence(std::memory_order_release);
}

uint64_t SharedMemory::generation() const {
  return mapping_.header()->generation.load(std::memory_order_relaxed);
}

// ---- A reader's side ----

absl::StatusOr<std::shared_ptr<const SharedMemoryView>> SharedMemoryView::Open(
    const SharedMemoryName& name) {
  const std::string path = absl::StrCat("/proc/", name.pid, "/fd/", name.fd);
  const FileDescriptor file(open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY));
  if (!file.ok()) return FailedTo("open the peer's memory");
  const absl::Status sound = CheckFile(file.get(), name);
  if (!sound.ok()) return sound;
  void* const address =
      mmap(nullptr, BytesOf(name.elements), PROT_READ, MAP_SHARED | MAP_POPULATE, file.get(), 0);
  if (address == MAP_FAILED) return FailedTo("map the peer's memory");
  std::shared_ptr<const SharedMemoryView> view(new SharedMemoryView(address, name.elements));
  if (view->mapping_.header()->cookie == name.cookie) return view;
  return absl::UnavailableError("the peer's memory is not the one that it named");
}

bool SharedMemoryView::IsStill(uint64_t generation) const {
  // The reads before must not be reordered after this one.
  std::atomic_thread_fence(std::memory_order_acquire);
  return mapping_.header()->generation.load(std::memory_order_relaxed) == generation;
}

}  // namespace sluice
