#include "server/tables/row_memory.h"

#include <glog/logging.h>

#include <algorithm>

namespace sluice {
namespace {

std::unique_ptr<DiskFile> FileOf(const TableMemory& memory) {
  if (memory.disk == nullptr) return nullptr;
  auto file = memory.disk->NewFile();
  if (file.ok()) return *std::move(file);
  LOG(ERROR) << file.status().message() << "; rows stay in memory until the server starts again";
  return nullptr;
}

}  // namespace

RowMemory::RowMemory(const TableMemory& memory, size_t buckets)
    : most_bytes_(memory.most_bytes), buckets_(buckets), file_(FileOf(memory)) {}

void RowMemory::NoteWrite(const absl::Status& written) {
  const uint64_t worked = written.ok() ? ++worked_ : 0;
  if (!written.ok()) worked_ = 0;
  const bool fails = !written.ok() || (!spills() && worked < buckets_);
  const bool failed = failing_.exchange(fails, std::memory_order_relaxed);
  LOG_IF(ERROR, fails && !failed)
      << written.message() << "; rows stay in memory, and pushes that need more are refused, until "
      << "there is room there";
  LOG_IF(WARNING, failed && !fails) << "rows of tables go to --table-dir again";
}

uint64_t RowMemory::ShareOf(uint64_t bytes) const {
  const uint64_t all = std::max<uint64_t>(1, row_bytes.load(std::memory_order_relaxed));
  const uint64_t reserved = most_bytes_ / 8 + index_bytes.load(std::memory_order_relaxed);
  const auto left = static_cast<double>(most_bytes_ - std::min(most_bytes_, reserved));
  const auto part = static_cast<double>(bytes) / static_cast<double>(all);
  return std::max(most_bytes_ / 8 / buckets_, static_cast<uint64_t>(left * part));
}

uint64_t RowMemory::EvenShare() const { return most_bytes_ / 2 / buckets_; }

}  // namespace sluice
