#include "tests/fuzz/oracles/checkpoint_check.h"

#include <glog/logging.h>

#include <string>

#include "server/durable/checkpoint/checkpoint_format.h"
#include "tests/testing/durable/faulty_files.h"

namespace sluice {
namespace {

constexpr char kPath[] = "d/checkpoint";

void Write(const ShardCheckpoint& checkpoint, FaultyFiles& files) {
  const auto file = files.Create(kPath);
  const absl::Status written = WriteCheckpoint(checkpoint, **file);
  CHECK(written.ok()) << written;
}

}  // namespace

void CheckComesBack(const ShardCheckpoint& checkpoint) {
  FaultyFiles files;
  Write(checkpoint, files);
  const std::string bytes = files.BytesOf(kPath);
  const auto read = ReadCheckpoint(**files.Open(kPath));
  CHECK(read.ok()) << read.status();
  Write(*read, files);
  CHECK(files.BytesOf(kPath) == bytes);
}

}  // namespace sluice
