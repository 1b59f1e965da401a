// The header of a safetensors file: what is read of it covers the file's data, and is written, and
// read again, as the same.
#include "common/storage/safetensors.h"

#include <glog/logging.h>

#include <string>
#include <tuple>

#include "tests/fuzz/input.h"
#include "tests/fuzz/refusal.h"
#include "tests/fuzz/target.h"

namespace sluice {
namespace {

auto FieldsOf(const SafeTensor& tensor) {
  return std::tie(tensor.name, tensor.dtype, tensor.shape, tensor.begin, tensor.end);
}

void CheckCovers(const SafeTensorsHeader& header, uint64_t data_size) {
  uint64_t end = 0;
  for (const SafeTensor& tensor : header.tensors) {
    CHECK(tensor.begin == end && tensor.end >= end);
    end = tensor.end;
  }
  CHECK(end == data_size);
}

void CheckSame(const SafeTensorsHeader& a, const SafeTensorsHeader& b) {
  CHECK(a.metadata == b.metadata);
  CHECK(a.tensors.size() == b.tensors.size());
  for (size_t i = 0; i < a.tensors.size(); ++i) {
    CHECK(FieldsOf(a.tensors[i]) == FieldsOf(b.tensors[i])) << a.tensors[i].name;
  }
}

}  // namespace

void Try(absl::string_view bytes) {
  Input input(bytes);
  const uint64_t data_size = input.Number();
  const auto header = DecodeSafeTensorsJson(input.Rest(), data_size);
  if (!header.ok()) return CheckRefusal(header.status(), {absl::StatusCode::kDataLoss});
  CheckCovers(*header, data_size);

  const std::string written = EncodeSafeTensorsHeader(*header);
  CHECK(written.size() % 64 == 0);
  const auto length = DecodeSafeTensorsPrefix(written, written.size() + data_size);
  CHECK(length.ok() && *length == written.size() - kSafeTensorsPrefix);
  const auto again =
      DecodeSafeTensorsJson(absl::string_view(written).substr(kSafeTensorsPrefix), data_size);
  CHECK(again.ok()) << again.status();
  CheckSame(*header, *again);
}

}  // namespace sluice
