#include "trace/recording/seal/chunk_packer.h"

#include <zstd.h>

#include "trace/recording/seal/row_order.h"

namespace trainprof::recording {

struct ChunkPacker::Compressor {
  Compressor() : context(ZSTD_createCCtx()) {}
  Compressor(const Compressor&) = delete;
  Compressor& operator=(const Compressor&) = delete;
  ~Compressor() { ZSTD_freeCCtx(context); }

  ZSTD_CCtx* const context;
};

ChunkPacker::ChunkPacker() : compressor_(std::make_unique<Compressor>()) {}
ChunkPacker::~ChunkPacker() = default;

std::span<const char> ChunkPacker::Pack(const Chunk& chunk, std::vector<uint64_t>& words, int level,
                                        ChunkEncoding* encoding) {
  ZSTD_CCtx* context = compressor_->context;
  if (context == nullptr) return {};
  ZSTD_CCtx_setParameter(context, ZSTD_c_compressionLevel, level);
  ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 1);
  *encoding = ChunkEncoding::kPlain;
  if (chunk.kind != ChunkKind::kRecords && HasColumns(chunk.row_bytes)) {
    *encoding = ChunkEncoding::kPlanes;
    GroupByTrack(chunk, words);
    words = PackRows(words, chunk.row_bytes);
  }
  packed_.resize(ZSTD_compressBound(words.size() * 8));
  const size_t n =
      ZSTD_compress2(context, packed_.data(), packed_.size(), words.data(), words.size() * 8);
  if (ZSTD_isError(n)) return {};
  return {packed_.data(), n};
}

}  // namespace trainprof::recording
