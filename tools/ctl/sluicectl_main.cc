// sluicectl: shows, verifies and exports the checkpoints that servers wrote.
//
//   sluicectl checkpoint list DIR        lists the checkpoints of a directory, newest first
//   sluicectl checkpoint verify PATH…    reads and checks every byte of files or directories
//   sluicectl checkpoint show FILE       prints all but the values of the tensors, as JSON
//   sluicectl checkpoint export FILE OUT writes the model's tensors for PyTorch's torch.load()
//
// Exit codes: 0 done; 1 a file is damaged or cannot be read; 2 bad command line.

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/command_line.h"
#include "common/storage/file_system.h"
#include "server/durable/checkpoint/checkpoint_format.h"
#include "server/durable/checkpoint/checkpoint_store.h"
#include "server/durable/format/saved_state.h"

namespace sluice {
namespace {

absl::StatusOr<ShardCheckpoint> Read(const std::string& path) {
  const auto file = RealFileSystem().Open(path);
  if (!file.ok()) return file.status();
  return ReadCheckpoint(**file);
}

// Returns the paths of the files, newest first.
absl::StatusOr<std::vector<std::string>> CheckpointsIn(const std::string& directory) {
  const auto names = CheckpointStore(RealFileSystem(), directory, 1).List();
  if (!names.ok()) return names.status();
  std::vector<std::string> paths;
  for (const CheckpointName& name : *names) {
    paths.push_back(absl::StrCat(directory, "/", name.FileName()));
  }
  return paths;
}

int Fail(const absl::Status& status) {
  std::cerr << CalledAs("sluicectl") << ": " << status.message() << "\n";
  return 1;
}

int List(const std::string& directory) {
  const auto names = CheckpointStore(RealFileSystem(), directory, 1).List();
  if (!names.ok()) return Fail(names.status());
  std::cout << absl::StrFormat("%12s %12s %14s  %s\n", "step", "incarnation", "bytes", "file");
  for (const CheckpointName& name : *names) {
    const auto file = RealFileSystem().Open(absl::StrCat(directory, "/", name.FileName()));
    if (!file.ok()) return Fail(file.status());
    std::cout << absl::StrFormat("%12d %12d %14d  %s\n", name.step.value(),
                                 name.incarnation.value(), (*file)->size(), name.FileName());
  }
  return 0;
}

// Returns whether the file is undamaged, and prints the result.
bool VerifyFile(const std::string& path) {
  const auto checkpoint = Read(path);
  if (!checkpoint.ok()) {
    std::cout << path << ": DAMAGED: " << checkpoint.status().message() << "\n";
    return false;
  }
  std::cout << absl::StrFormat("%s: whole: step %d of job %s, %d tensors, %d elements, %d slots\n",
                               path, checkpoint->step.value(), checkpoint->job_id,
                               checkpoint->layout->ranges().size(), checkpoint->layout->size(),
                               checkpoint->slots.size());
  return true;
}

int Verify(const std::vector<std::string>& paths) {
  bool all_whole = true;
  for (const std::string& path : paths) {
    const auto inside = CheckpointsIn(path);
    for (const std::string& file : inside.ok() ? *inside : std::vector<std::string>{path}) {
      all_whole = VerifyFile(file) && all_whole;
    }
  }
  return all_whole ? 0 : 1;
}

int Show(const std::string& path) {
  const auto checkpoint = Read(path);
  if (!checkpoint.ok())
    return Fail(absl::DataLossError(absl::StrCat(path, ": ", checkpoint.status().message())));
  std::cout << nlohmann::json::parse(EncodeSavedState(*checkpoint)).dump(2) << "\n";
  return 0;
}

// Runs the program for this, which lies beside this one: only it needs LibTorch.
int Export(const std::string& file, const std::string& out) {
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  const std::string program = self.parent_path() / "sluicectl_export";
  execl(program.c_str(), CalledAs(program).c_str(), file.c_str(), out.c_str(), nullptr);
  return Fail(absl::NotFoundError(absl::StrCat(program, ": ", strerror(errno))));
}

int Main(int argc, char** argv) {
  CLI::App app("Shows, verifies and exports the checkpoints that servers wrote.", "sluicectl");
  app.require_subcommand(1);
  CLI::App& checkpoint =
      *app.add_subcommand("checkpoint", "works with the checkpoints of a server");
  checkpoint.require_subcommand(1);
  std::string directory;
  std::vector<std::string> paths;
  std::string file;
  CLI::App& list =
      *checkpoint.add_subcommand("list", "lists the checkpoints of a directory, newest first");
  list.add_option("directory", directory, "a server's --checkpoint-dir")->required();
  CLI::App& verify =
      *checkpoint.add_subcommand("verify", "reads and checks every byte of checkpoints");
  verify.add_option("paths", paths, "files, or directories of them")->required();
  CLI::App& show =
      *checkpoint.add_subcommand("show", "prints all but the values of the tensors, as JSON");
  show.add_option("file", file, "a checkpoint")->required();
  CLI::App& exported = *checkpoint.add_subcommand(
      "export", "writes the model's tensors to a file for PyTorch's torch.load()");
  std::string out;
  exported.add_option("file", file, "a checkpoint")->required();
  exported.add_option("out", out, "the file to write, for example model.pt")->required();
  const absl::optional<int> exit_code = ExitCodeOfUsage(app, argc, argv);
  if (exit_code.has_value()) return *exit_code;
  if (list.parsed()) return List(directory);
  if (exported.parsed()) return Export(file, out);
  return verify.parsed() ? Verify(paths) : Show(file);
}

}  // namespace
}  // namespace sluice

int main(int argc, char** argv) { return sluice::Main(argc, argv); }
