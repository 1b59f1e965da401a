// Opens the libraries of the peers by name, so that Sluice builds without them.
#include <dlfcn.h>
#include <glog/logging.h>

#include <algorithm>
#include <functional>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/encoding/codec.h"
#include "tools/bench/codecs/codec_side.h"

namespace sluice::bench {
namespace {

constexpr int kBloscLevel = 5;
constexpr int kBloscByteShuffle = 1;
constexpr size_t kRoom = 1 << 16;  // beyond the bytes of a chunk, for those that do not shrink

// Returns the bytes written to `to`, which holds `most`; 0 or less if they do not fit.
using Compress = std::function<int(const void* from, size_t bytes, void* to, size_t most)>;
using Decompress = std::function<int(const void* from, size_t bytes, void* to, size_t most)>;

class PeerCodec final : public CodecSide {
 public:
  PeerCodec(absl::Span<const float> values, Compress compress, Decompress decompress)
      : values_(values),
        compress_(std::move(compress)),
        decompress_(std::move(decompress)),
        buffer_(kMostEncoded * sizeof(float) + kRoom, '\0') {}

  uint64_t Encode() override {
    uint64_t bytes = 0;
    for (size_t begin = 0; begin < values_.size(); begin += kMostEncoded) bytes += Chunk(begin);
    return bytes;
  }

  void Keep() override {
    kept_.clear();
    for (size_t begin = 0; begin < values_.size(); begin += kMostEncoded) {
      const size_t bytes = Chunk(begin);
      kept_.push_back(buffer_.substr(0, bytes));
    }
  }

  void Decode(absl::Span<float> values) override {
    for (size_t i = 0; i < kept_.size(); ++i) {
      const absl::Span<float> to = values.subspan(i * kMostEncoded, kMostEncoded);
      const size_t bytes = to.size() * sizeof(float);
      const int got = decompress_(kept_[i].data(), kept_[i].size(), to.data(), bytes);
      CHECK_EQ(got, static_cast<int>(bytes));
    }
  }

 private:
  // Compresses a chunk into the buffer and returns its bytes.
  size_t Chunk(size_t begin) {
    const absl::Span<const float> part = values_.subspan(begin, kMostEncoded);
    const int bytes =
        compress_(part.data(), part.size() * sizeof(float), &buffer_[0], buffer_.size());
    CHECK_GT(bytes, 0);
    return static_cast<size_t>(bytes);
  }

  const absl::Span<const float> values_;
  const Compress compress_;
  const Decompress decompress_;
  std::string buffer_;
  std::vector<std::string> kept_;
};

// Opens a library of the distribution, which stays open.
class Library {
 public:
  static absl::StatusOr<Library> Open(const char* file, absl::string_view package) {
    void* const handle = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    if (handle != nullptr) return Library(handle);
    return absl::NotFoundError(absl::StrCat("no ", file, " here: install the package ", package));
  }

  // A function that every version of the library has.
  template <typename Function>
  Function* Find(const char* name) const {
    return reinterpret_cast<Function*>(CHECK_NOTNULL(dlsym(handle_, name)));
  }

 private:
  explicit Library(void* handle) : handle_(handle) {}

  void* const handle_;
};

using PeerOrError = absl::StatusOr<std::unique_ptr<CodecSide>>;

PeerOrError MakeLz4(absl::Span<const float> values) {
  const auto library = Library::Open("liblz4.so.1", "liblz4-1");
  if (!library.ok()) return library.status();
  auto* const compress = library->Find<int(const char*, char*, int, int)>("LZ4_compress_default");
  auto* const decompress = library->Find<int(const char*, char*, int, int)>("LZ4_decompress_safe");
  const auto adapt = [](auto* function) {
    return [function](const void* from, size_t bytes, void* to, size_t most) {
      return function(static_cast<const char*>(from), static_cast<char*>(to),
                      static_cast<int>(bytes), static_cast<int>(most));
    };
  };
  return std::make_unique<PeerCodec>(values, adapt(compress), adapt(decompress));
}

// Blosc remembers its compressor for the whole process, so each call sets it.
PeerOrError MakeBlosc(const std::string& compressor, absl::Span<const float> values) {
  const auto library = Library::Open("libblosc.so.1", "libblosc1");
  if (!library.ok()) return library.status();
  library->Find<void()>("blosc_init")();
  library->Find<int(int)>("blosc_set_nthreads")(1);
  auto* const choose = library->Find<int(const char*)>("blosc_set_compressor");
  if (choose(compressor.c_str()) < 0) {
    return absl::NotFoundError(absl::StrCat("this libblosc.so.1 is built without ", compressor));
  }
  auto* const compress =
      library->Find<int(int, int, size_t, size_t, const void*, void*, size_t)>("blosc_compress");
  auto* const decompress = library->Find<int(const void*, void*, size_t)>("blosc_decompress");
  return std::make_unique<PeerCodec>(
      values,
      [=](const void* from, size_t bytes, void* to, size_t most) {
        choose(compressor.c_str());
        return compress(kBloscLevel, kBloscByteShuffle, sizeof(float), bytes, from, to, most);
      },
      [=](const void* from, size_t, void* to, size_t most) { return decompress(from, to, most); });
}

}  // namespace

const std::vector<std::string>& PeerCodecs() {
  static const auto* const names =
      new std::vector<std::string>{"blosc:blosclz", "blosc:lz4", "blosc:snappy", "lz4"};
  return *names;
}

PeerOrError MakePeerCodec(const std::string& name, absl::Span<const float> values) {
  absl::string_view compressor = name;
  if (absl::ConsumePrefix(&compressor, "blosc:")) return MakeBlosc(std::string(compressor), values);
  CHECK_EQ(name, "lz4");
  return MakeLz4(values);
}

}  // namespace sluice::bench
