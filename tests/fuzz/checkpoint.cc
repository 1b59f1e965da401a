// Files that are taken for checkpoints, of one server or of several: refused, or read as a state
// that is written, and read again, as the same. Checksums keep what is changed at random out, so
// the target puts those that fit in, unless it is told not to.
#include <glog/logging.h>

#include <string>

#include "common/checkpoint/reading/checkpoint_file.h"
#include "common/checkpoint/reading/checkpoint_reader.h"
#include "common/tensor/tensor_chunk.h"
#include "server/durable/checkpoint/checkpoint_format.h"
#include "tests/fuzz/input.h"
#include "tests/fuzz/oracles/checkpoint_check.h"
#include "tests/fuzz/refusal.h"
#include "tests/fuzz/sealed.h"
#include "tests/fuzz/target.h"
#include "tests/testing/durable/faulty_files.h"

namespace sluice {
namespace {

constexpr char kPath[] = "d/checkpoint";

// What programs on the worker's side read is what a server reads.
void CheckParameters(FaultyFiles& files, const ShardCheckpoint& expected) {
  const auto reader = CheckpointReader::Open(files, kPath);
  CHECK(reader.ok()) << reader.status();
  CHECK(reader->layout().ranges() == expected.layout->ranges());
  FloatBuffer values(reader->layout().size());
  const absl::Status read = reader->ReadParameters(values.span());
  // A server reads more slots from one file than from several.
  if (!read.ok()) return CheckRefusal(read, {absl::StatusCode::kDataLoss});
  CHECK(BytesOf(values.span()) == BytesOf(expected.parameters->values.span()));
}

}  // namespace

void Try(absl::string_view bytes) {
  Input input(bytes);
  const bool sealed = input.Byte() % 8 != 0;
  const std::string given(input.Rest());
  FaultyFiles files;
  CHECK((*files.Create(kPath))->Append(sealed ? Sealed(given) : given).ok());
  const auto contents = ReadContents(**files.Open(kPath));
  if (!contents.ok()) CheckRefusal(contents.status(), {absl::StatusCode::kDataLoss});
  const auto state = ReadCheckpointState(**files.Open(kPath));
  CHECK(contents.ok() || !state.ok());
  if (!state.ok()) return CheckRefusal(state.status(), {absl::StatusCode::kDataLoss});
  if (!state->stripes.empty()) return CheckStripedComesBack(*state);
  const auto checkpoint = ReadCheckpoint(**files.Open(kPath));
  if (!checkpoint.ok()) return CheckRefusal(checkpoint.status(), {absl::StatusCode::kDataLoss});
  CHECK(checkpoint->parameters->values.size() == checkpoint->layout->size());
  CheckParameters(files, *checkpoint);
  CheckComesBack(*checkpoint);
}

}  // namespace sluice
