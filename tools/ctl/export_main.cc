// sluicectl_export CHECKPOINT OUT: writes the model's tensors of a checkpoint to a file that
// PyTorch's torch.load() opens. `sluicectl checkpoint export` runs it. The exit codes are those of
// sluicectl.

#include <CLI/CLI.hpp>
#include <iostream>
#include <string>

#include "common/base/command_line.h"
#include "common/base/progress_line.h"
#include "common/checkpoint/reading/checkpoint_reader.h"
#include "common/storage/file_system.h"
#include "common/tensor/float_buffer.h"
#include "worker/torch/state_dict.h"
#include "worker/torch/torch_version.h"

namespace sluice {
namespace {

absl::Status Export(const std::string& path, const std::string& out,
                    const ProgressOutput& progress) {
  const auto checkpoint = CheckpointReader::Open(RealFileSystem(), path);
  if (!checkpoint.ok()) return checkpoint.status();
  FloatBuffer values(checkpoint->layout().size());
  const absl::Status read = checkpoint->ReadParameters(values.span(), progress);
  if (!read.ok()) return read;
  const auto constants = checkpoint->ReadConstants();
  if (!constants.ok()) return constants.status();
  return SaveStateDict(checkpoint->layout(), values.span(), *constants, out);
}

int Main(int argc, char** argv) {
  CLI::App app("Writes the model's tensors of a checkpoint to a file for PyTorch's torch.load().",
               "sluicectl_export");
  std::string file;
  std::string out;
  app.add_option("checkpoint", file, "a checkpoint: its file, or the servers' --checkpoint-dir")
      ->required();
  app.add_option("out", out, "the file to write, for example model.pt")->required();
  bool quiet = false;
  app.add_flag("--quiet", quiet, "do not say on stderr how much of a large file is read");
  AddVersionFlag(app, {TorchVersion()});
  const absl::optional<int> exit_code = ExitCodeOfUsage(app, argc, argv);
  if (exit_code.has_value()) return *exit_code;
  const absl::Status exported =
      Export(file, out, quiet ? ProgressOutput() : ProgressOutput::OnStderr());
  if (exported.ok()) return 0;
  std::cerr << CalledAs("sluicectl") << ": " << exported.message() << "\n";
  return 1;
}

}  // namespace
}  // namespace sluice

int main(int argc, char** argv) { return sluice::Main(argc, argv); }
