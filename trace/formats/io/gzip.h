// The gzip format: by isa-l, which is several times as fast, where the build found it, and by zlib.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

namespace trainprof {

enum class GzipLibrary : uint8_t { kZlib, kIsaL };

// Those of this build, the fastest first.
std::span<const GzipLibrary> GzipLibraries();
std::string_view Name(GzipLibrary library);  // "zlib", "isa-l"

// Makes one member of all that it is given.
class GzipEncoder {
 public:
  virtual ~GzipEncoder() = default;

  // Takes from the front of `bytes`, which get shorter, and fills `out`; returns how much of it. `is_last`: they
  // end with `bytes`, all of it. Less than all of `out`: there is no more to come of what was given.
  virtual size_t Encode(std::string_view& bytes, bool is_last, std::span<char> out) = 0;
};

// Inflates one member after the other.
class GzipDecoder {
 public:
  enum class State { kGoesOn, kMemberEnded, kDamaged };

  virtual ~GzipDecoder() = default;

  // Takes from the front of `bytes`, which get shorter, and fills `out`: with so many as `written` says. Behind a
  // member's end it goes on with Begin(), behind damage() not at all.
  virtual State Decode(std::string_view& bytes, std::span<char> out, size_t& written) = 0;
  virtual void Begin() = 0;
  virtual std::string_view damage() const = 0;  // "incorrect data check"
};

// Null: there is no memory for it.
std::unique_ptr<GzipEncoder> MakeGzipEncoder(GzipLibrary library = GzipLibraries().front());
std::unique_ptr<GzipDecoder> MakeGzipDecoder(GzipLibrary library = GzipLibraries().front());

}  // namespace trainprof
