#include "server/durable/reached_step.h"

#include <glog/logging.h>

#include "absl/types/span.h"
#include "common/base/little_endian.h"

namespace sluice {
namespace {

// When the file has 1 MiB, it is emptied.
constexpr uint64_t kMostNoted = (1 << 20) / sizeof(uint64_t);

}  // namespace

Step ReachedStep::Read() const {
  const auto file = files_.Open(path_);
  if (!file.ok()) return Step();
  const uint64_t noted = (*file)->size() / sizeof(uint64_t);  // the last may be incomplete
  if (noted == 0) return Step();
  std::string bytes(sizeof(uint64_t), '\0');
  const uint64_t last = (noted - 1) * sizeof(uint64_t);
  if (!(*file)->Read(last, absl::MakeSpan(bytes)).ok()) return Step();
  return Step(FromLittleEndian64(bytes));
}

void ReachedStep::Begin(Step step) {
  auto file = files_.Create(path_);
  if (!file.ok()) {
    LOG(WARNING) << file.status().message() << "; steps that are lost will not be counted";
    return;
  }
  file_ = *std::move(file);
  Note(step);
}

void ReachedStep::Note(Step step) {
  if (file_ == nullptr) return;
  absl::Status noted;
  if (noted_ == kMostNoted) {
    noted = file_->Truncate(0);
    noted_ = 0;
  }
  noted.Update(file_->Append(LittleEndian64(step.value())));
  ++noted_;
  LOG_IF_EVERY_N(WARNING, !noted.ok(), 1000) << noted.message();
}

}  // namespace sluice
