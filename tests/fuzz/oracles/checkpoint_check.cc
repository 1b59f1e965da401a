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

std::string StripedBytes(const ShardCheckpoint& state, FaultyFiles& files) {
  const auto file = files.Create(kPath);
  const absl::Status written = WriteStripedCheckpoint(state, state.stripes, **file);
  CHECK(written.ok()) << written;
  return files.BytesOf(kPath);
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

void CheckStripedComesBack(const ShardCheckpoint& state) {
  FaultyFiles files;
  const std::string bytes = StripedBytes(state, files);
  const auto read = ReadCheckpointState(**files.Open(kPath));
  CHECK(read.ok()) << read.status();
  CHECK(StripedBytes(*read, files) == bytes);
}

}  // namespace sluice
