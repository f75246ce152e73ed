// The byte layout of a segment: what one process recorded (see FORMAT.md, which must agree).
// Free of the C++ runtime: the in-process library includes it. All integers are little-endian.
//
// A segment is a header followed by chunks at multiples of SegmentHeader::header_bytes. A chunk
// belongs to one writer (one thread at a time) and holds records, or rows of a fixed size.
// A record is whole when ChunkHeader::committed covers it: that store is the last of its write.
#pragma once

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "trace/recording/wire/layout.h"

namespace trainprof::recording {

static_assert(std::endian::native == std::endian::little, "segments are little-endian");

inline constexpr uint32_t kFormatVersion = 2;  // 2: chunks that are drained (DrainedHeader)
inline constexpr uint64_t kSegmentMagic = 0x31544D4745535054;  // "TPSEGMT1"
inline constexpr uint64_t kChunkMagic = 0x314B4E5548435054;    // "TPCHUNK1"
inline constexpr uint64_t kSealedMagic = 0x31444C4145535054;   // "TPSEALD1"

// Chunks start at multiples of this, or of the page size where that is larger.
inline constexpr uint32_t kChunkAlignment = 16 * 1024;
inline constexpr uint32_t kMaxChunkBytes = 64 * 1024 * 1024;  // no writer makes a larger one
// A string's bytes beyond this are cut off (SegmentHeader::truncated_strings counts them).
inline constexpr uint32_t kMaxStringBytes = 4096;

struct SegmentHeader {
  // Written once, before `magic`.
  uint64_t magic;  // kSegmentMagic, or kSealedMagic
  uint32_t version;
  uint32_t header_bytes;  // where the first chunk begins; the chunk alignment of this segment
  uint64_t identity;      // differs between any two segments; every chunk repeats it
  ClockKind clock_kind;
  int32_t rank;  // -1: no rank variable was set
  int32_t pid;
  int32_t parent_pid;
  uint64_t process_start;  // /proc/PID/stat field 22: tells a re-used pid from this process
  ClockSample opened;
  char host[64];
  char boot_id[40];       // of the kernel: the same host after a reboot is another clock
  char options[256];      // TRAINPROF_OPTIONS
  char command[1024];     // the command line, arguments joined by spaces
  uint64_t static_check;  // CheckOf(everything above)

  // Written while recording.
  std::atomic<uint64_t> next_offset;              // where the next chunk will be claimed
  std::atomic<uint64_t> first_detail_drop_ticks;  // 0: none
  std::atomic<uint64_t> first_drop_ticks;         // 0: none
  // Of threads that had no chunk to count in (ChunkHeader has the same two).
  std::atomic<uint64_t> dropped_detail;
  std::atomic<uint64_t> dropped_all;
  std::atomic<uint64_t> dropped_reentrant;   // NVTX calls from a signal handler inside one of ours
  std::atomic<uint64_t> dropped_too_deep;    // pushes beyond kMaxDepth open ranges
  std::atomic<uint64_t> truncated_strings;   // definitions whose text was cut
  std::atomic<uint64_t> unmatched_pops;      // pops without a push: the program's own mistake
  std::atomic<uint64_t> cut_by_window;       // ranges that began before the window and ended in it
  std::atomic<uint64_t> overflowed_domains;  // domains beyond kMaxDomains, all recorded as the last
  std::atomic<uint32_t> failed;              // 1: recording stopped, `failure` says why
  std::atomic<uint32_t> clean_exit;          // 1: the process went through exit()
  ClockSample closed;                        // valid when clean_exit
  char failure[240];
  // Chunks that were handed over to be drained, and whether anybody does that (DrainedHeader).
  std::atomic<uint32_t> handed_over;
  std::atomic<uint32_t> is_drained;  // by the supervisor
  // `header_bytes` and the sizes of the chunks whose headers are whole: what a file has less of was
  // cut off or wiped, however its process ended. 0: recorded before this was counted.
  std::atomic<uint64_t> whole_bytes;
};
static_assert(sizeof(SegmentHeader) == 1856);
static_assert(offsetof(SegmentHeader, static_check) == 1464);
static_assert(sizeof(SegmentHeader) <= kChunkAlignment);

// Who may write into a chunk (DrainedHeader).
enum class ChunkState : uint32_t {
  kWritten = 0,     // its writer may; also of chunks that are never handed over
  kHandedOver = 1,  // nobody does: the supervisor may drain it
  kDrained = 2,     // what is in it is in the drained file, too: its writer may take it again
  kTaken = 3,       // its writer makes it the next one: nothing is in it
};

enum class ChunkKind : uint16_t {
  kRecords = 1,     // variable-size records, below
  kDeviceRows = 2,  // DeviceRow, rows.h
  kCallRows = 3,    // CallRow, rows.h
};

struct ChunkHeader {
  // Written once, before `magic`.
  uint64_t magic;
  uint64_t identity;
  uint64_t file_offset;
  uint32_t size_bytes;  // with this header
  ChunkKind kind;
  uint16_t row_bytes;     // rows only: later versions may append columns
  uint32_t writer;        // number of the writer in this process, from 0
  uint32_t sequence;      // number of the chunk of this writer, from 0
  ClockSample opened;     // when the chunk was claimed
  uint64_t static_check;  // CheckOf(everything above)

  // Written while recording.
  std::atomic<uint64_t> committed;  // payload bytes that are whole
  std::atomic<uint64_t> dropped_detail;
  std::atomic<uint64_t> dropped_all;
  std::atomic<ChunkState> state;
  uint32_t reserved_word;
  uint64_t reserved[2];
};
static_assert(sizeof(ChunkHeader) == 128);
static_assert(offsetof(ChunkHeader, static_check) == 72);

// Records: 8-byte words. Word 0 is (type, words, domain, id), word 1 mostly the ticks. Types from
// kShortPush on are one word: (type, value, ticks since the last record of types 3 to 7 or of a
// short type in the same chunk; the first of a chunk is never short).
enum class RecordType : uint8_t {
  kNone = 0,
  kString = 1,       // id := text. word 1: length | kStringTruncated; then the bytes, zero-padded
  kThread = 2,       // the writer belongs to this thread from here. ticks, tid, 16 bytes of name
  kPush = 3,         // ticks [, attributes]
  kPop = 4,          // ticks
  kStart = 5,        // ticks, range id [, attributes]
  kEnd = 6,          // ticks, range id
  kMark = 7,         // ticks [, attributes]
  kDomain = 8,       // domain := the name `id`. word 1 is 0
  kCategory = 9,     // category word 1 of the domain := the name `id`
  kThreadName = 10,  // thread word 1 (tid) := the name `id`
  kGapBegin = 11,    // ticks: nothing is recorded from here on purpose; `domain` is a GapReason
  kGapEnd = 12,      // ticks
  kClock = 13,       // ClockSample
  kFact = 14,     // what the collector found: key `id`; word 1 the value's string id. Last one wins
  kDevice = 15,   // DeviceFacts; `id` is the device's name
  kContext = 16,  // word 1: context | device << 32; word 2: its null stream, 0 unknown
  // word 1: context | stream << 32; word 2: priority (signed); word 3: CUpti_ActivityStreamFlag,
  // which older recordings lack
  kStream = 17,
  kModule = 18,  // a mapped file with code, path `id`: ModuleFacts
  kStack = 19,   // `id` := these frames, innermost first. From word 1: return addresses
  kCallStack =
      20,  // ticks; word 2: correlation | CallDomain << 32: the call's stack is `id`; word 3:
           // the text of the interpreter's own stack, 0: none
  // Payload schemas of NVTX's extension, as NCCL has: word 1: the schema's number in this domain;
  // `id` its name; word 2: static bytes | packing << 32 | schema type << 48. Then each entry:
  // type | flags << 48 (NVTX's numbers); offset | array or union detail << 32; name's id
  kPayloadSchema = 21,
  kPayload = 22,  // of the next event of this writer. word 1: schema; word 2: bytes; then those
  // An enumeration that schemas' entries have as a type: word 1: its number; `id` its name; word 2:
  // bytes of a value. Then each entry: value; name's id | is a flag << 32
  kPayloadEnum = 23,
  // A range that is written when it has ended. word 1: ticks at which it was written; words 2 and 3:
  // its begin and end in ns of CLOCK_MONOTONIC; word 4: id of the text of its stack, 0: none. A line
  // a frame, innermost first: "LINE FUNCTION FILE"
  kRange = 24,
  // What the writer's thread, which steps, had used by then. word 1: ticks; word 2: ns of the CPU, in
  // us; word 3: how often it gave the CPU up | how often it was taken << 32
  kThreadTime = 25,
  // Where ranges named `id` are opened, as this thread saw first. word 1: id of the stack's frames, 0:
  // none | id of the text of the interpreter's own stack, 0: none << 32
  kNameStack = 26,
  kShortPush = 128,  // value: the id; the default domain, no attributes
  kShortPop = 129,   // value: the domain
};

enum class GapReason : uint16_t {
  kWindow = 1,
  kDevice = 2,  // host events go on, device rows and calls pause
  kLent = 3,    // the same, since another tool in the process has CUPTI
};

inline constexpr uint32_t kMaxDomains = 4095;  // domain 0 is NVTX's default domain
// Of ranges that are operators of torch, and calls of modules, whose names begin so (--ops).
inline constexpr char kOperatorDomain[] = "torch.operators";
inline constexpr char kModulePrefix[] = "nn.Module: ";
// Of marks that say what the process or a device holds, with a payload in bytes (--memory).
inline constexpr char kMemoryDomain[] = "torch.memory";
inline constexpr uint64_t kStringTruncated = uint64_t{1} << 63;

struct RecordHead {
  RecordType type;
  uint32_t words;   // of the whole record, < 4096
  uint32_t domain;  // <= kMaxDomains
  uint32_t id;      // of a string; 0: the empty string
};

constexpr uint64_t PackHead(RecordType type, uint32_t words, uint32_t domain, uint32_t id) {
  return static_cast<uint64_t>(type) | static_cast<uint64_t>(words) << 8 |
         static_cast<uint64_t>(domain) << 20 | static_cast<uint64_t>(id) << 32;
}
constexpr RecordHead UnpackHead(uint64_t word) {
  return {static_cast<RecordType>(word & 0xFF), static_cast<uint32_t>(word >> 8) & 0xFFF,
          static_cast<uint32_t>(word >> 20) & 0xFFF, static_cast<uint32_t>(word >> 32)};
}

constexpr int kShortValueBits = 20;
constexpr int kShortTicksBits = 36;  // 14 to 68 s
constexpr uint32_t PackShort(RecordType type, uint32_t value) {
  return static_cast<uint32_t>(type) | value << 8;
}
constexpr uint64_t WithTicks(uint32_t short_record, uint64_t ticks_since) {
  return short_record | ticks_since << (8 + kShortValueBits);
}
constexpr bool IsShort(uint64_t word) { return (word & 0x80) != 0; }
constexpr uint32_t ShortValue(uint64_t word) {
  return static_cast<uint32_t>(word >> 8) & ((1u << kShortValueBits) - 1);
}
constexpr uint64_t ShortTicks(uint64_t word) { return word >> (8 + kShortValueBits); }

// Attributes: one word (payload type, colour type, category), then the colour and the payload
// where their types are not 0. The types are NVTX's own numbers.
constexpr uint64_t PackAttributes(uint8_t payload_type, uint8_t color_type, uint32_t category) {
  return payload_type | static_cast<uint64_t>(color_type) << 8 |
         static_cast<uint64_t>(category) << 32;
}

// The words of a kDevice record after the head.
struct DeviceFacts {
  uint32_t ordinal;
  uint32_t multiprocessors;
  uint32_t compute_major;
  uint32_t compute_minor;
  uint64_t memory_bytes;
  uint64_t memory_bytes_per_second;
  uint32_t clock_khz;
  uint32_t warps_per_multiprocessor;
  uint32_t blocks_per_multiprocessor;
  uint32_t registers_per_multiprocessor;
  uint32_t shared_bytes_per_multiprocessor;
  uint32_t shared_bytes_per_block;
  uint32_t copy_engines;
  uint32_t flags;  // 1: a MIG slice
  char uuid[16];
};
static_assert(sizeof(DeviceFacts) == 80);

// The words of a kModule record after the head: code addresses [begin, end) lie in the file at
// address - begin + file_offset.
struct ModuleFacts {
  uint64_t begin;
  uint64_t end;
  uint64_t file_offset;
  uint64_t load_bias;  // address - load_bias is the address in the file's own symbol table
  uint32_t build_id_bytes;
  unsigned char build_id[20];
};
static_assert(sizeof(ModuleFacts) == 56);

enum class PayloadType : uint8_t {
  kNone = 0,
  kUint64 = 1,
  kInt64 = 2,
  kDouble = 3,
  kUint32 = 4,
  kInt32 = 5,
  kFloat = 6,
};

// A sealed segment: the SegmentHeader (magic kSealedMagic, next_offset the size of the raw file),
// a SealedHeader, `chunks` SealedChunks, `info_bytes` of JSON, then the payloads.
struct SealedHeader {
  uint32_t chunks;
  uint32_t info_bytes;  // JSON at the end of the directory: events, threads (see FORMAT.md)
  uint64_t check;       // CheckOf the directory: SealedChunks and JSON
};
static_assert(sizeof(SealedHeader) == 16);

struct SealedChunk {
  uint64_t file_offset;       // of the compressed payload in the sealed file
  uint32_t compressed_bytes;  // a zstd frame with its own checksum
  uint32_t payload_bytes;     // committed bytes, before compression
  ChunkKind kind;
  uint16_t row_bytes;
  uint32_t writer;
  uint32_t sequence;
  uint32_t encoding;  // of the payload before compression: ChunkEncoding (row_codec.h)
  ClockSample opened;
};
static_assert(sizeof(SealedChunk) == 64);

// SEGMENT.drained: what the supervisor has taken out of the chunks of a living process's segment, so
// that their room serves again: a DrainedHeader, then for each chunk a DrainedChunk and its payload, as
// in a sealed segment, zero-padded to 8 bytes. A chunk is whole here before it is kDrained there: what
// a kill tears is there still. A chunk that is in both is one.
inline constexpr char kDrainedSuffix[] = ".drained";
inline constexpr uint64_t kDrainedMagic = 0x314E494152445054;       // "TPDRAIN1"
inline constexpr uint64_t kDrainedChunkMagic = 0x314B4E4843445054;  // "TPDCHNK1"

struct DrainedHeader {
  uint64_t magic;
  uint64_t identity;  // of the segment
};
static_assert(sizeof(DrainedHeader) == 16);

struct DrainedChunk {
  uint64_t magic;
  SealedChunk chunk;  // file_offset: of the payload in this file
  uint64_t dropped_detail;
  uint64_t dropped_all;
  uint64_t check;  // CheckOf(everything above)
};
static_assert(sizeof(DrainedChunk) == 96);

// Finds accidental damage. FNV-1a over 64-bit words, `bytes` a multiple of 8.
inline uint64_t CheckOf(const void* data, size_t bytes) {
  uint64_t hash = 0xCBF29CE484222325;
  const auto* p = static_cast<const unsigned char*>(data);
  for (size_t i = 0; i + 8 <= bytes; i += 8) {
    uint64_t word;
    __builtin_memcpy(&word, p + i, 8);
    hash = (hash ^ word) * 0x100000001B3;
    hash ^= hash >> 29;
  }
  return hash;
}

}  // namespace trainprof::recording
