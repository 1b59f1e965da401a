#include "server/durable/save_checkpoint.h"

#include <utility>

namespace sluice {

void SaveCheckpoint(Shard& shard, DurableDirectory& directory, SaveCallback done) {
  shard.TakeImage([&directory, done = std::move(done)](const auto& image) {
    if (image.ok()) {
      directory.Save(*image, done);
    } else {
      done(image.status());
    }
  });
}

}  // namespace sluice
