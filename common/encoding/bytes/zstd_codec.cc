#include "common/encoding/bytes/zstd_codec.h"

#include <glog/logging.h>
#define ZSTD_STATIC_LINKING_ONLY  // for the name of a parameter
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

// One context per thread, because making one takes longer than compressing a chunk.
ZSTD_CCtx* Compressing() {
  thread_local const std::unique_ptr<ZSTD_CCtx, FreeContext> context(ZSTD_createCCtx());
  return CHECK_NOTNULL(context.get());
}

// If a newer library does not know one of the parameters, frames are larger but still valid.
ZSTD_CCtx* MakeByFrequency() {
  ZSTD_CCtx* const context = CHECK_NOTNULL(ZSTD_createCCtx());
  ZSTD_CCtx_setParameter(context, ZSTD_c_strategy, ZSTD_fast);
  ZSTD_CCtx_setParameter(context, ZSTD_c_minMatch, 7);
  ZSTD_CCtx_setParameter(context, ZSTD_c_hashLog, 6);
  ZSTD_CCtx_setParameter(context, ZSTD_c_targetLength,
                         64);  // larger means that it looks at fewer bytes
  ZSTD_CCtx_setParameter(context, ZSTD_c_literalCompressionMode, ZSTD_ps_enable);
  return context;
}

ZSTD_CCtx* CompressingByFrequency() {
  thread_local const std::unique_ptr<ZSTD_CCtx, FreeContext> context(MakeByFrequency());
  return context.get();
}

size_t Compress(absl::string_view bytes, int level, absl::Span<char> to) {
  if (level == kZstdByFrequency) {
    return ZSTD_compress2(CompressingByFrequency(), to.data(), to.size(), bytes.data(),
                          bytes.size());
  }
  return ZSTD_compressCCtx(Compressing(), to.data(), to.size(), bytes.data(), bytes.size(), level);
}

ZSTD_DCtx* Decompressing() {
  thread_local const std::unique_ptr<ZSTD_DCtx, FreeContext> context(ZSTD_createDCtx());
  return CHECK_NOTNULL(context.get());
}

}  // namespace

absl::optional<size_t> ZstdCompress(absl::string_view bytes, int level, absl::Span<char> to) {
  const size_t size = Compress(bytes, level, to);
  if (ZSTD_isError(size) != 0) return absl::nullopt;
  return size;
}

absl::optional<uint64_t> ZstdSize(absl::string_view frame) {
  // The library would also accept old formats, skippable frames and several frames in a row.
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
