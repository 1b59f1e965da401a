// export CHECKPOINT OUT: writes the model's tensors of a checkpoint to a file that PyTorch's
// torch.load() opens. The exit codes are those of sluicectl.

#include <iostream>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/storage/file_system.h"
#include "server/durable/checkpoint/checkpoint_format.h"
#include "worker/torch/state_dict.h"

namespace sluice {
namespace {

absl::Status Export(const std::string& path, const std::string& out) {
  const auto file = RealFileSystem().Open(path);
  if (!file.ok()) return file.status();
  const auto checkpoint = ReadCheckpoint(**file);
  if (!checkpoint.ok()) {
    return absl::DataLossError(absl::StrCat(path, ": ", checkpoint.status().message()));
  }
  return SaveStateDict(*checkpoint->layout, checkpoint->parameters->values.span(), out);
}

}  // namespace
}  // namespace sluice

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "usage: sluicectl checkpoint export CHECKPOINT OUT\n";
    return 2;
  }
  const absl::Status exported = sluice::Export(argv[1], argv[2]);
  if (exported.ok()) return 0;
  std::cerr << "sluicectl: " << exported.message() << "\n";
  return 1;
}
