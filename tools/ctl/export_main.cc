// sluicectl_export CHECKPOINT OUT: writes the model's tensors of a checkpoint to a file that
// PyTorch's torch.load() opens. `sluicectl checkpoint export` runs it. The exit codes are those of
// sluicectl.

#include <CLI/CLI.hpp>
#include <cstdint>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "common/base/command_line.h"
#include "common/base/progress_line.h"
#include "common/checkpoint/reading/checkpoint_reader.h"
#include "common/storage/file_system.h"
#include "common/tensor/float_buffer.h"
#include "common/tensor/layout.h"
#include "tools/ctl/render/text.h"
#include "worker/torch/state_dict.h"
#include "worker/torch/torch_version.h"

namespace sluice {
namespace {

struct ExportFlags {
  std::string file;
  std::string out;
  bool json = false;
  bool quiet = false;
};

// What was written, as a line.
std::string ExportedText(const Layout& layout, const ExportFlags& flags) {
  const uint64_t tensors = layout.ranges().size() + layout.constants().size();
  std::error_code error;
  const uint64_t bytes = std::filesystem::file_size(flags.out, error);
  if (flags.json) {
    using Json = nlohmann::ordered_json;
    const Json json = {{"file", flags.out}, {"tensors", tensors}, {"bytes", error ? 0 : bytes}};
    return absl::StrCat(json.dump(-1, ' ', true, Json::error_handler_t::replace), "\n");
  }
  return absl::StrCat("wrote ", Printable(flags.out), ": ", CountText(tensors, "tensor"),
                      error ? "" : absl::StrCat(", ", BytesText(bytes)), "\n");
}

absl::Status Export(const ExportFlags& flags) {
  const ProgressOutput progress = flags.quiet ? ProgressOutput() : ProgressOutput::OnStderr();
  const auto checkpoint = CheckpointReader::Open(RealFileSystem(), flags.file);
  if (!checkpoint.ok()) return checkpoint.status();
  FloatBuffer values(checkpoint->layout().size());
  const absl::Status read = checkpoint->ReadParameters(values.span(), progress);
  if (!read.ok()) return read;
  const auto constants = checkpoint->ReadConstants();
  if (!constants.ok()) return constants.status();
  const absl::Status saved =
      SaveStateDict(checkpoint->layout(), values.span(), *constants, flags.out);
  if (!saved.ok()) return saved;
  if (flags.json || !flags.quiet) std::cout << ExportedText(checkpoint->layout(), flags);
  std::cout.flush();
  return std::cout.good() ? absl::OkStatus()
                          : absl::DataLossError("could not write all of the output to stdout");
}

int Main(int argc, char** argv) {
  CLI::App app("Writes the model's tensors of a checkpoint to a file for PyTorch's torch.load().",
               "sluicectl_export");
  ExportFlags flags;
  app.add_option("checkpoint", flags.file,
                 "a checkpoint: its file, or the servers' --checkpoint-dir")
      ->required();
  app.add_option("out", flags.out, "the file to write, for example model.pt")->required();
  app.add_flag("--json", flags.json, "print what was written as JSON");
  app.add_flag("--quiet", flags.quiet, "print nothing about what was done; errors are printed");
  AddVersionFlag(app, {TorchVersion()});
  const absl::optional<int> exit_code = ExitCodeOfUsage(app, argc, argv);
  if (exit_code.has_value()) return *exit_code;
  const absl::Status exported = Export(flags);
  if (exported.ok()) return 0;
  std::cerr << CalledAs("sluicectl") << ": " << exported.message() << "\n";
  return 1;
}

}  // namespace
}  // namespace sluice

int main(int argc, char** argv) { return sluice::Main(argc, argv); }
