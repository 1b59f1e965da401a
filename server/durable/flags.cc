#include "server/durable/flags.h"

#include <CLI/CLI.hpp>
#include <map>
#include <string>

namespace sluice {
namespace {

const std::map<std::string, Durability> kDurabilities = {{"memory", Durability::kMemory},
                                                         {"journal", Durability::kJournal}};

}  // namespace

void AddDurableFlags(CLI::App& app, DurableOptions& options) {
  CLI::App& group = *app.add_option_group("Checkpoints", "What the server saves on disk");
  CLI::Option* const directory = group.add_option(
      "--checkpoint-dir", options.directory,
      "directory for checkpoints; a server that finds checkpoints there continues from them");
  group
      .add_option(
          "--checkpoint-every", options.checkpoint_every,
          "steps between two checkpoints; 0: only the first and the last step are saved, and "
          "those for which Admin.SaveCheckpoint asks")
      ->needs(directory)
      ->capture_default_str();
  group
      .add_option("--durability", options.durability,
                  "memory: a crash loses the steps since the last checkpoint; journal: a push is "
                  "answered when its step is on the disk, and a crash loses nothing that was "
                  "answered")
      ->needs(directory)
      ->transform(CLI::CheckedTransformer(kDurabilities))
      ->default_str("memory");
  group
      .add_option(
          "--keep-checkpoints", options.keep_checkpoints,
          "how many of the newest checkpoints to keep; while training seems to diverge, the "
          "newest from before is kept too")
      ->needs(directory)
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
}

}  // namespace sluice
