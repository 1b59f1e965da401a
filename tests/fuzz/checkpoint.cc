// Files that are taken for checkpoints, of one server or of several: refused, or read as a state
// that is written, and read again, as the same. Checksums keep what is changed at random out, so
// the target puts those that fit in, unless it is told not to.
#include <glog/logging.h>

#include <string>

#include "common/base/little_endian.h"
#include "common/encoding/checksum.h"
#include "server/durable/checkpoint/checkpoint_format.h"
#include "tests/fuzz/input.h"
#include "tests/fuzz/oracles/checkpoint_check.h"
#include "tests/fuzz/refusal.h"
#include "tests/fuzz/target.h"
#include "tests/testing/durable/faulty_files.h"

namespace sluice {
namespace {

constexpr char kPath[] = "d/checkpoint";
constexpr size_t kChecksumBytes = 8;  // at the end

std::string Sealed(std::string file) {
  if (file.size() < kChecksumBytes) return file;
  file.resize(file.size() - kChecksumBytes);
  return file + LittleEndian64(Checksum(file));
}

}  // namespace

void Try(absl::string_view bytes) {
  Input input(bytes);
  const bool sealed = input.Byte() % 8 != 0;
  const std::string given(input.Rest());
  FaultyFiles files;
  CHECK((*files.Create(kPath))->Append(sealed ? Sealed(given) : given).ok());
  const auto state = ReadCheckpointState(**files.Open(kPath));
  if (!state.ok()) return CheckRefusal(state.status(), {absl::StatusCode::kDataLoss});
  if (!state->stripes.empty()) return CheckStripedComesBack(*state);
  const auto checkpoint = ReadCheckpoint(**files.Open(kPath));
  if (!checkpoint.ok()) return CheckRefusal(checkpoint.status(), {absl::StatusCode::kDataLoss});
  CHECK(checkpoint->parameters->values.size() == checkpoint->layout->size());
  CheckComesBack(*checkpoint);
}

}  // namespace sluice
