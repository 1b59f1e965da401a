#include "server/durable/checkpoint/checked_writer.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/little_endian.h"
#include "common/checkpoint/reading/checked_reader.h"

namespace sluice {
namespace {

absl::Status TooLong(uint64_t header, uint64_t most) {
  return absl::ResourceExhaustedError(
      absl::StrCat("the checkpoint's header would have ", header, " bytes, and no more than ", most,
                   " can be read again; give the model's tensors shorter names"));
}

}  // namespace

absl::Status CheckedWriter::WriteHeader(const SafeTensorsHeader& header, uint64_t most) {
  const std::string encoded = EncodeSafeTensorsHeader(header);
  if (encoded.size() - kSafeTensorsPrefix > most) return TooLong(encoded.size(), most);
  return Write(encoded);
}

absl::Status CheckedWriter::Write(absl::string_view bytes) {
  for (; !bytes.empty(); bytes.remove_prefix(std::min(kFilePiece, bytes.size()))) {
    const absl::string_view piece = bytes.substr(0, kFilePiece);
    sum_.Add(piece);
    const absl::Status appended = file_.Append(piece);
    if (!appended.ok()) return appended;
  }
  return absl::OkStatus();
}

absl::Status CheckedWriter::WriteChecksum() { return Write(LittleEndian64(sum_.Get())); }

}  // namespace sluice
