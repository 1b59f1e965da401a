#include "common/zstd_codec.h"

#include <glog/logging.h>
#include <zstd.h>

#include <memory>

#include "absl/strings/match.h"

namespace sluice {
namespace {

constexpr absl::string_view kMagic = "\x28\xb5\x2f\xfd";

struct FreeContext {
  void operator()(ZSTD_CCtx* context) const { ZSTD_freeCCtx(context); }
  void operator()(ZSTD_DCtx* context) const { ZSTD_freeDCtx(context); }
};

// A thread's own, since to make one costs more than to compress a chunk.
ZSTD_CCtx* Compressing() {
  thread_local const std::unique_ptr<ZSTD_CCtx, FreeContext> context(ZSTD_createCCtx());
  return CHECK_NOTNULL(context.get());
}

ZSTD_DCtx* Decompressing() {
  thread_local const std::unique_ptr<ZSTD_DCtx, FreeContext> context(ZSTD_createDCtx());
  return CHECK_NOTNULL(context.get());
}

}  // namespace

bool ZstdCompress(absl::string_view bytes, int level, size_t most, std::string* to) {
  const size_t before = to->size();
  to->resize(before + most);
  const size_t size =
      ZSTD_compressCCtx(Compressing(), &(*to)[before], most, bytes.data(), bytes.size(), level);
  const bool fits = ZSTD_isError(size) == 0;
  to->resize(before + (fits ? size : 0));
  return fits;
}

absl::optional<uint64_t> ZstdSize(absl::string_view frame) {
  // zstd also reads what it wrote before its format was settled, frames to be skipped, and several
  // frames in a row.
  if (!absl::StartsWith(frame, kMagic)) return absl::nullopt;
  if (ZSTD_findFrameCompressedSize(frame.data(), frame.size()) != frame.size()) {
    return absl::nullopt;
  }
  const unsigned long long size = ZSTD_getFrameContentSize(frame.data(), frame.size());
  if (size == ZSTD_CONTENTSIZE_ERROR || size == ZSTD_CONTENTSIZE_UNKNOWN) return absl::nullopt;
  return size;
}

bool ZstdDecompress(absl::string_view frame, absl::Span<char> to) {
  const size_t size =
      ZSTD_decompressDCtx(Decompressing(), to.data(), to.size(), frame.data(), frame.size());
  return ZSTD_isError(size) == 0 && size == to.size();
}

}  // namespace sluice
