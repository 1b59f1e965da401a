#include "common/zstd_codec.h"

#include <glog/logging.h>
#include <zstd.h>

#include <memory>

namespace sluice {
namespace {

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
