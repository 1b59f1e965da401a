// What a worker makes sure of before it reads an archive of LibTorch that another worker has sent.

#ifndef SLUICE_WORKER_TORCH_MODEL_ARCHIVE_H_
#define SLUICE_WORKER_TORCH_MODEL_ARCHIVE_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace sluice {

// LibTorch runs functions of an archive while it reads it. What torch::serialize::OutputArchive
// writes has none. INVALID_ARGUMENT if this archive has one, or is none.
absl::Status CheckHasNoCode(absl::string_view archive);

}  // namespace sluice

#endif  // SLUICE_WORKER_TORCH_MODEL_ARCHIVE_H_
