#include "server/durable/durable_flags.h"

#include <CLI/CLI.hpp>

namespace sluice {

void AddDurableFlags(CLI::App& app, DurableOptions& options) {
  CLI::App& group = *app.add_option_group("Checkpoints", "What outlives the server");
  CLI::Option* const directory = group.add_option(
      "--checkpoint-dir", options.directory,
      "directory for checkpoints; a server that finds some there goes on where they end");
  group
      .add_option("--checkpoint-every", options.checkpoint_every,
                  "steps between two checkpoints; 0: only of the first and the last step, and when "
                  "Admin.SaveCheckpoint asks for one")
      ->needs(directory)
      ->capture_default_str();
  group.add_option("--keep-checkpoints", options.keep_checkpoints, "how many are kept, the newest")
      ->needs(directory)
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
}

}  // namespace sluice
