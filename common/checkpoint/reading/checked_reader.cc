#include "common/checkpoint/reading/checked_reader.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/little_endian.h"
#include "common/tensor/float_buffer.h"

namespace sluice {
namespace {

void AddTensors(const Layout& layout, const std::string& prefix, std::vector<SafeTensor>* tensors) {
  for (const LayoutRange& range : layout.ranges()) {
    SafeTensor tensor;
    tensor.name = absl::StrCat(prefix, range.name);
    tensor.dtype = "F32";
    tensor.shape.assign(range.shape.begin(), range.shape.end());
    tensor.begin = tensors->empty() ? 0 : tensors->back().end;
    tensor.end = tensor.begin + range.length * sizeof(float);
    tensors->push_back(std::move(tensor));
  }
}

}  // namespace

std::vector<SafeTensor> CheckedTensors(const Layout& layout,
                                       const std::vector<std::string>& slots) {
  std::vector<SafeTensor> tensors;
  AddTensors(layout, "", &tensors);
  for (const std::string& slot : slots) {
    AddTensors(layout, absl::StrCat("sluice:slot:", slot, ":"), &tensors);
  }
  const uint64_t end = tensors.empty() ? 0 : tensors.back().end;
  tensors.push_back({kChecksumName, "U8", {kChecksumBytes}, end, end + kChecksumBytes});
  return tensors;
}

bool SameTensors(const std::vector<SafeTensor>& a, const std::vector<SafeTensor>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const SafeTensor& x, const SafeTensor& y) {
                      return x.name == y.name && x.dtype == y.dtype && x.shape == y.shape &&
                             x.begin == y.begin && x.end == y.end;
                    });
}

absl::StatusOr<SafeTensorsHeader> CheckedReader::ReadHeader() {
  const auto prefix = ReadText(kSafeTensorsPrefix);
  if (!prefix.ok()) return prefix.status();
  const auto length = DecodeSafeTensorsPrefix(*prefix, file_.size());
  if (!length.ok()) return length.status();
  const auto json = ReadText(*length);
  if (!json.ok()) return json.status();
  return DecodeSafeTensorsJson(*json, file_.size() - offset_);
}

absl::Status CheckedReader::Read(absl::Span<char> to) {
  for (; !to.empty(); to.remove_prefix(std::min<size_t>(kFilePiece, to.size()))) {
    const absl::Span<char> piece = to.subspan(0, kFilePiece);
    const absl::Status read = file_.Read(offset_, piece);
    if (!read.ok()) return read;
    sum_.Add({piece.data(), piece.size()});
    offset_ += piece.size();
    if (listener_ != nullptr) listener_(offset_);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> CheckedReader::ReadText(uint64_t size) {
  if (size > file_.size() - offset_) {
    return absl::DataLossError(absl::StrCat("it is cut at byte ", file_.size()));
  }
  std::string text(size, '\0');
  const absl::Status read = Read(absl::MakeSpan(text));
  if (!read.ok()) return read;
  return text;
}

absl::Status CheckedReader::CheckChecksum() {
  const uint64_t computed = sum_.Get();
  const auto stored = ReadText(kChecksumBytes);
  if (!stored.ok()) return stored.status();
  if (FromLittleEndian64(*stored) == computed) return absl::OkStatus();
  return absl::DataLossError("its checksum does not match: bytes have changed since it was saved");
}

absl::Status ReadFloats(CheckedReader& reader, absl::Span<float> values) {
  return reader.Read(
      absl::MakeSpan(reinterpret_cast<char*>(values.data()), values.size() * sizeof(float)));
}

absl::Status ReadPieces(CheckedReader& reader, size_t vectors, uint64_t size,
                        const StripePieces& pieces) {
  FloatBuffer buffer(std::min<uint64_t>(size, kFilePiece / sizeof(float)));
  for (size_t vector = 0; vector < vectors; ++vector) {
    for (uint64_t offset = 0; offset < size;) {
      const uint64_t length = std::min<uint64_t>(size - offset, buffer.size());
      const absl::Span<float> piece = buffer.span().subspan(0, length);
      const absl::Status read = ReadFloats(reader, piece);
      if (!read.ok()) return read;
      pieces(vector, offset, piece);
      offset += length;
    }
  }
  return absl::OkStatus();
}

}  // namespace sluice
