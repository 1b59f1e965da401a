#include "server/durable/checkpoint/checkpoint_format.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/clock.h"
#include "common/base/little_endian.h"
#include "common/encoding/checksum.h"
#include "common/storage/safetensors.h"
#include "common/tensor/tensor_chunk.h"
#include "server/durable/format/saved_state.h"

namespace sluice {
namespace {

constexpr char kStateKey[] = "sluice";
constexpr char kChecksumName[] = "sluice:checksum";
constexpr uint64_t kChecksumBytes = 8;
// How much is read or written at once.
constexpr uint64_t kPiece = 1 << 20;

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

// The tensors in the file of a checkpoint.
std::vector<SafeTensor> TensorsOf(const ShardCheckpoint& checkpoint) {
  std::vector<SafeTensor> tensors;
  AddTensors(*checkpoint.layout, "", &tensors);
  for (const SlotCheckpoint& slot : checkpoint.slots) {
    AddTensors(*checkpoint.layout, absl::StrCat("sluice:slot:", slot.name, ":"), &tensors);
  }
  const uint64_t end = tensors.empty() ? 0 : tensors.back().end;
  tensors.push_back({kChecksumName, "U8", {kChecksumBytes}, end, end + kChecksumBytes});
  return tensors;
}

bool Same(const std::vector<SafeTensor>& a, const std::vector<SafeTensor>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const SafeTensor& x, const SafeTensor& y) {
                      return x.name == y.name && x.dtype == y.dtype && x.shape == y.shape &&
                             x.begin == y.begin && x.end == y.end;
                    });
}

absl::Status TooLong(uint64_t header, uint64_t most) {
  return absl::ResourceExhaustedError(
      absl::StrCat("the checkpoint's header would have ", header, " bytes, and no more than ", most,
                   " can be read again; give the model's tensors shorter names"));
}

// Writes a file, and computes the checksum of what was written.
class Writer {
 public:
  explicit Writer(WritableFile& file) : file_(file) {}

  absl::Status Write(absl::string_view bytes) {
    for (; !bytes.empty(); bytes.remove_prefix(std::min(kPiece, bytes.size()))) {
      const absl::string_view piece = bytes.substr(0, kPiece);
      sum_.Add(piece);
      const absl::Status appended = file_.Append(piece);
      if (!appended.ok()) return appended;
    }
    return absl::OkStatus();
  }

  absl::Status WriteChecksum() { return file_.Append(LittleEndian64(sum_.Get())); }

 private:
  WritableFile& file_;
  Checksummer sum_;
};

// Reads a file from its beginning to its end, and computes the checksum of what was read.
class Reader {
 public:
  Reader(const ReadableFile& file, const ReadListener& listener)
      : file_(file), listener_(listener) {}

  absl::Status Read(absl::Span<char> to) {
    for (; !to.empty(); to.remove_prefix(std::min<size_t>(kPiece, to.size()))) {
      const absl::Span<char> piece = to.subspan(0, kPiece);
      const absl::Status read = file_.Read(offset_, piece);
      if (!read.ok()) return read;
      sum_.Add({piece.data(), piece.size()});
      offset_ += piece.size();
      if (listener_ != nullptr) listener_(offset_);
    }
    return absl::OkStatus();
  }

  absl::StatusOr<std::string> ReadText(uint64_t size) {
    if (size > file_.size() - offset_) {
      return absl::DataLossError(absl::StrCat("it is cut at byte ", file_.size()));
    }
    std::string text(size, '\0');
    const absl::Status read = Read(absl::MakeSpan(text));
    if (!read.ok()) return read;
    return text;
  }

  absl::Status CheckChecksum() {
    const uint64_t computed = sum_.Get();
    const auto stored = ReadText(kChecksumBytes);
    if (!stored.ok()) return stored.status();
    if (FromLittleEndian64(*stored) == computed) return absl::OkStatus();
    return absl::DataLossError(
        "its checksum does not match: bytes have changed since it was saved");
  }

  uint64_t offset() const { return offset_; }

 private:
  const ReadableFile& file_;
  const ReadListener& listener_;
  Checksummer sum_;
  uint64_t offset_ = 0;
};

absl::Status ReadFloats(Reader& reader, absl::Span<float> values) {
  return reader.Read(
      absl::MakeSpan(reinterpret_cast<char*>(values.data()), values.size() * sizeof(float)));
}

// A checkpoint without values, whose tensors match those of the file.
absl::StatusOr<ShardCheckpoint> ReadHeader(const ReadableFile& file, Reader& reader) {
  const auto prefix = reader.ReadText(kSafeTensorsPrefix);
  if (!prefix.ok()) return prefix.status();
  const auto length = DecodeSafeTensorsPrefix(*prefix, file.size());
  if (!length.ok()) return length.status();
  const auto json = reader.ReadText(*length);
  if (!json.ok()) return json.status();
  const auto header = DecodeSafeTensorsJson(*json, file.size() - reader.offset());
  if (!header.ok()) return header.status();
  const auto state = header->metadata.find(kStateKey);
  if (state == header->metadata.end()) {
    return absl::DataLossError("it holds tensors, but no server's state");
  }
  auto checkpoint = DecodeSavedState(state->second);
  if (!checkpoint.ok()) return checkpoint.status();
  if (!Same(header->tensors, TensorsOf(*checkpoint))) {
    return absl::DataLossError("its tensors are not those of the layout in its state");
  }
  return checkpoint;
}

}  // namespace

absl::Status WriteCheckpoint(const ShardCheckpoint& checkpoint, WritableFile& file,
                             uint64_t most_header) {
  SafeTensorsHeader header;
  header.metadata[kStateKey] = EncodeSavedState(checkpoint);
  header.metadata["format"] = "pt";  // other readers of safetensors look for this
  header.tensors = TensorsOf(checkpoint);
  const std::string encoded = EncodeSafeTensorsHeader(header);
  if (encoded.size() - kSafeTensorsPrefix > most_header)
    return TooLong(encoded.size(), most_header);
  Writer writer(file);
  absl::Status written = writer.Write(encoded);
  if (written.ok()) written = writer.Write(BytesOf(checkpoint.parameters->values.span()));
  for (const SlotCheckpoint& slot : checkpoint.slots) {
    if (written.ok()) written = writer.Write(BytesOf(slot.values.span()));
  }
  return written.ok() ? writer.WriteChecksum() : written;
}

absl::StatusOr<ShardCheckpoint> ReadCheckpoint(const ReadableFile& file,
                                               const ReadListener& listener) {
  Reader reader(file, listener);
  auto checkpoint = ReadHeader(file, reader);
  if (!checkpoint.ok()) return checkpoint.status();
  // The header's lengths were compared with the file's, so these sizes are safe.
  const uint64_t size = checkpoint->layout->size();
  const auto parameters = std::make_shared<Snapshot>();
  parameters->step = checkpoint->step;
  parameters->values = FloatBuffer(size);
  absl::Status read = ReadFloats(reader, parameters->values.span());
  checkpoint->parameters = parameters;
  for (SlotCheckpoint& slot : checkpoint->slots) {
    slot.values = FloatBuffer(size);
    if (read.ok()) read = ReadFloats(reader, slot.values.span());
  }
  if (read.ok()) read = reader.CheckChecksum();
  if (!read.ok()) return read;
  return checkpoint;
}

absl::StatusOr<ShardCheckpoint> ReadCheckpoint(const ReadableFile& file, const std::string& path,
                                               const ProgressOutput& output) {
  ProgressLine progress(absl::StrCat("reading ", path), file.size(), output, RealClock());
  return ReadCheckpoint(file, [&](uint64_t bytes) { progress.Reach(bytes); });
}

}  // namespace sluice
