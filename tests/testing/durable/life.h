// One incarnation of a server that uses a directory. It begins with DurableDirectory::Open() and
// ends as in a crash: without a last checkpoint.

#ifndef SLUICE_TESTS_TESTING_DURABLE_LIFE_H_
#define SLUICE_TESTS_TESTING_DURABLE_LIFE_H_

#include <functional>
#include <memory>
#include <utility>

#include "gtest/gtest.h"
#include "server/durable/directory.h"
#include "server/durable/recovery.h"
#include "tests/testing/shard/shard_world.h"
#include "tests/testing/status.h"

namespace sluice {

// `files` outlives it. `fatal` is that of Recover(). The world's workers have that model.
class Life {
 public:
  Life(const DurableOptions& options, FileSystem& files, ShardOptions shard = Sync(1),
       std::function<void(const absl::Status&)> fatal = nullptr,
       const Layout& layout = ParametersOnly(3), const OptimizerOptions& optimizer = PlainSgd()) {
    auto directory = DurableDirectory::Open(options, files);
    EXPECT_THAT(directory, IsOk());
    directory_ = *std::move(directory);
    shard.incarnation = directory_->incarnation();
    world_ = std::make_unique<ShardWorld>(shard, layout, optimizer);
    EXPECT_THAT(Recover(*directory_, world_->shard(), std::move(fatal)), IsOk());
  }

  ShardWorld& world() { return *world_; }
  DurableDirectory& directory() { return *directory_; }

 private:
  std::unique_ptr<ShardWorld> world_;
  std::unique_ptr<DurableDirectory> directory_;  // ends first
};

}  // namespace sluice

#endif  // SLUICE_TESTS_TESTING_DURABLE_LIFE_H_
