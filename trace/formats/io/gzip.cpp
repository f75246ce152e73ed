#include "trace/formats/io/gzip.h"

#include "trace/formats/io/gzip_libraries.h"

namespace trainprof {

#ifdef TRAINPROF_HAS_ISAL

std::span<const GzipLibrary> GzipLibraries() {
  static constexpr GzipLibrary kAll[] = {GzipLibrary::kIsaL, GzipLibrary::kZlib};
  return kAll;
}

std::unique_ptr<GzipEncoder> MakeGzipEncoder(GzipLibrary library) {
  return library == GzipLibrary::kIsaL ? MakeIsalEncoder() : MakeZlibEncoder();
}

std::unique_ptr<GzipDecoder> MakeGzipDecoder(GzipLibrary library) {
  return library == GzipLibrary::kIsaL ? MakeIsalDecoder() : MakeZlibDecoder();
}

#else

std::span<const GzipLibrary> GzipLibraries() {
  static constexpr GzipLibrary kAll[] = {GzipLibrary::kZlib};
  return kAll;
}

std::unique_ptr<GzipEncoder> MakeGzipEncoder(GzipLibrary) { return MakeZlibEncoder(); }
std::unique_ptr<GzipDecoder> MakeGzipDecoder(GzipLibrary) { return MakeZlibDecoder(); }

#endif

std::string_view Name(GzipLibrary library) {
  return library == GzipLibrary::kIsaL ? "isa-l" : "zlib";
}

}  // namespace trainprof
