// Recordings that were made to harm who opens them: links out, pipes and devices in the place of
// files, directories that claim what is not there. And recordings in folders where others write.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zstd.h>

#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>

#include "tests/support/sanitized.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/segment_writer.h"
#include "trace/formats/io/memory_limit.h"
#include "trace/recording/files/host_file.h"
#include "trace/recording/files/recorded_files.h"
#include "trace/recording/files/recorded_json.h"
#include "trace/recording/files/run_directory.h"
#include "trace/recording/read/reader.h"
#include "trace/recording/seal/sealer.h"
#include "trace/recording/segments/segment_liveness.h"

namespace trainprof::testing {
namespace {

namespace fs = std::filesystem;
using namespace recording;

fs::path WriteSegment(const fs::path& folder, int pid = SegmentWriter::kDeadPid) {
  SegmentWriter writer(folder, pid);
  writer.BeginWriter(0, 100);
  for (uint64_t i = 0; i < 100; ++i) {
    writer.Push("step", 1000 * i + 10);
    writer.Pop(1000 * i + 900);
  }
  writer.Finish();
  return writer.path();
}

// A run of two ranks.
void WriteRun(const fs::path& run) {
  ASSERT_TRUE(CreateRun(run, {}).ok());
  WriteSegment(run / "rank-00000");
  WriteSegment(run / "rank-00001");
}

struct Special {
  const char* what;
  bool (*put)(const fs::path& path, const fs::path& elsewhere);
};

const Special kSpecials[] = {
    {"a pipe", [](const fs::path& p, const fs::path&) { return mkfifo(p.c_str(), 0666) == 0; }},
    {"a socket",
     [](const fs::path& p, const fs::path&) { return mknod(p.c_str(), S_IFSOCK | 0600, 0) == 0; }},
    {"a device",
     [](const fs::path& p, const fs::path&) {
       return mknod(p.c_str(), S_IFCHR | 0666, makedev(1, 5)) == 0;  // zero
     }},
    {"a link", [](const fs::path& p,
                  const fs::path& target) { return symlink(target.c_str(), p.c_str()) == 0; }},
    {"a link",
     [](const fs::path& p, const fs::path&) { return symlink("/dev/zero", p.c_str()) == 0; }},
    {"a link",
     [](const fs::path& p, const fs::path&) { return symlink("/proc/self/fd/0", p.c_str()) == 0; }},
};

// False, and no failure, only for a device where we may make none.
bool Put(const Special& special, const fs::path& path, const fs::path& elsewhere) {
  const bool done = special.put(path, elsewhere);
  const bool may_fail = special.what == std::string_view("a device") && errno == EPERM;
  EXPECT_TRUE(done || may_fail) << special.what << ": " << strerror(errno);
  return done;
}

TEST(Crafted, SpecialFilesAreDamageAndNeverOpened) {
  const ScratchFolder scratch;
  const fs::path elsewhere = WriteSegment(scratch / "elsewhere");
  const fs::path run = scratch / "run";
  for (const char* name : {"rank-00000/5-5.tps", "rank-00000/5-5.tpz", "rank-00000", "run.ctl",
                           "clock.tpc", "host-5-5.tph", "host-5-5.tphz"}) {
    for (const Special& special : kSpecials) {
      fs::remove_all(run);
      WriteRun(run);
      fs::remove_all(run / name);
      if (!Put(special, run / name, elsewhere)) continue;
      SCOPED_TRACE(std::string(name) + ": " + special.what);
      const auto ranks = ReadRecording(run);
      ASSERT_TRUE(ranks.ok()) << ranks.error();
      EXPECT_EQ(ranks.value().back().trace.ranges.size(), 100u);
      std::string said;
      for (const RankTrace& rank : ranks.value()) {
        for (const QualityItem& item : rank.trace.quality.items()) said += item.detail + "\n";
      }
      EXPECT_NE(said.find(special.what), std::string::npos) << said;
      EXPECT_FALSE(IsStillRecorded(run));
    }
  }
}

TEST(Crafted, SpecialSymbolsFilesAreSaid) {
  for (const Special& special : kSpecials) {
    const ScratchFolder scratch;
    SegmentWriter writer(scratch / "pid-1");
    writer.BeginWriter(0, 100);
    writer.Stack(1, {0x1000});
    writer.CallStack(1, 5, CallDomain::kRuntime);
    writer.Finish();
    fs::path symbols = writer.path();
    symbols.replace_extension(".symbols.json");
    if (!Put(special, symbols, writer.path())) continue;
    const auto ranks = ReadRecording(scratch.path());
    ASSERT_TRUE(ranks.ok()) << ranks.error();
    EXPECT_EQ(ranks.value()[0].trace.quality.CountOf("unreadable_file"), 1) << special.what;
  }
}

TEST(Crafted, AFileThatMayNotBeReadIsSaid) {
  if (geteuid() == 0) GTEST_SKIP() << "root may read all files";
  const ScratchFolder scratch;
  WriteRun(scratch / "run");
  fs::permissions(scratch / "run" / "rank-00000", fs::perms::none);
  const auto ranks = ReadRecording(scratch / "run");
  ASSERT_TRUE(ranks.ok()) << ranks.error();
  EXPECT_EQ(ranks.value()[0].trace.quality.CountOf("unreadable_segment"), 1);
  fs::permissions(scratch / "run" / "rank-00000", fs::perms::owner_all);
}

// What the user names may be a link, as `latest` is; what lies in a recording may not.
TEST(Crafted, TheUsersOwnLinksAreFollowed) {
  const ScratchFolder scratch;
  WriteRun(scratch / "run");
  for (const char* target : {"run", "run/rank-00001", "run/rank-00001/1073741808-1.tps"}) {
    fs::remove(scratch / "latest");
    fs::create_symlink(scratch / target, scratch / "latest");
    EXPECT_TRUE(LooksLikeRecording(scratch / "latest")) << target;
    const auto ranks = ReadRecording(scratch / "latest");
    ASSERT_TRUE(ranks.ok()) << ranks.error();
    EXPECT_EQ(ranks.value().back().trace.ranges.size(), 100u);
  }
}

// Sealing replaces names, and writes to nothing that another user has put there.
TEST(Crafted, SealingWritesThroughNoLink) {
  const ScratchFolder scratch;
  const fs::path run = scratch / "run";
  WriteRun(run);
  const fs::path victim = scratch / "victim";
  std::ofstream(victim) << "mine";
  const std::string stem = std::to_string(SegmentWriter::kDeadPid) + "-1";
  const std::string folder = "rank-00000/" + stem;
  for (const std::string& name :
       {folder + ".tpz.tmp", folder + ".tpz", folder + ".symbols.json.tmp",
        std::string("manifest.json.tmp"), std::string("manifest.json")}) {
    fs::remove(run / name);
    fs::create_symlink(victim, run / name);
  }
  fs::create_directory_symlink(scratch / "elsewhere", run / "rank-00002");
  WriteSegment(scratch / "elsewhere");
  ASSERT_TRUE(SealRecording(run, {}, InAnHour()).ok());
  EXPECT_EQ(ReadBytes(victim), (std::vector<char>{'m', 'i', 'n', 'e'}));
  EXPECT_TRUE(fs::exists(scratch / "elsewhere" / (stem + ".tps")));
  EXPECT_FALSE(fs::is_symlink(run / "manifest.json"));
}

TEST(Crafted, ARawSegmentBesideASealedOneOfAnotherIdentityIsKept) {
  const ScratchFolder scratch;
  const fs::path run = scratch / "run";
  ASSERT_TRUE(CreateRun(run, {}).ok());
  const fs::path raw = WriteSegment(run / "pid-1");
  ASSERT_TRUE(SealRecording(run, {}, InAnHour()).ok());
  ASSERT_FALSE(fs::exists(raw));
  const fs::path other = WriteSegment(scratch / "other", SegmentWriter::kDeadPid - 1);
  fs::copy_file(other, raw);
  ASSERT_TRUE(SealRecording(run, {}, InAnHour()).ok());
  EXPECT_TRUE(fs::exists(raw));
}

// A sealed segment whose directory a test may change; Write() puts the checks right.
class Sealed {
 public:
  explicit Sealed(const fs::path& run) {
    WriteSegment(run / "pid-1");
    (void)SealRecording(run, {}, InAnHour()).ok();
    path_ = fs::directory_iterator(run / "pid-1")->path();
    bytes_ = ReadBytes(path_);
    memcpy(&head, bytes_.data() + sizeof(SegmentHeader), sizeof head);
    const char* table = bytes_.data() + sizeof(SegmentHeader) + sizeof head;
    chunks.resize(head.chunks);
    memcpy(chunks.data(), table, chunks.size() * sizeof(SealedChunk));
    info.assign(table + chunks.size() * sizeof(SealedChunk), head.info_bytes);
    const size_t begin =
        sizeof(SegmentHeader) + sizeof head + head.chunks * sizeof(SealedChunk) + head.info_bytes;
    payload.assign(bytes_.begin() + static_cast<ptrdiff_t>(begin), bytes_.end());
  }

  // Where the payloads begin with so many chunks.
  uint64_t PayloadAt(size_t count) const {
    return sizeof(SegmentHeader) + sizeof head + count * sizeof(SealedChunk) + info.size();
  }

  void Write() {
    std::vector<char> directory(chunks.size() * sizeof(SealedChunk));
    memcpy(directory.data(), chunks.data(), directory.size());
    directory.insert(directory.end(), info.begin(), info.end());
    head.chunks = static_cast<uint32_t>(chunks.size());
    head.check = CheckOf(directory.data(), directory.size());
    std::string file(bytes_.data(), sizeof(SegmentHeader));
    file.append(reinterpret_cast<const char*>(&head), sizeof head);
    file.append(directory.data(), directory.size());
    file.append(payload.data(), payload.size());
    WriteBytes(path_, {file.begin(), file.end()});
  }

  SealedHeader head{};
  std::vector<SealedChunk> chunks;
  std::string info;
  std::vector<char> payload;

 private:
  fs::path path_;
  std::vector<char> bytes_;
};

std::vector<char> Compressed(const std::vector<uint64_t>& words) {
  std::vector<char> packed(ZSTD_compressBound(words.size() * 8));
  packed.resize(ZSTD_compress(packed.data(), packed.size(), words.data(), words.size() * 8, 1));
  return packed;
}

// 98 KB took 4 GB: a thousand entries of one frame that grows to 16 MiB.
TEST(Crafted, ChunksThatShareBytesAreDamage) {
  const ScratchFolder scratch;
  Sealed sealed(scratch.path());
  std::vector<uint64_t> words(2 << 20);
  for (size_t i = 0; i + 2 <= words.size(); i += 2) {
    words[i] = PackHead(RecordType::kMark, 2, 0, 0);
    words[i + 1] = 1000;
  }
  sealed.payload = Compressed(words);
  SealedChunk chunk = sealed.chunks.at(0);
  chunk.file_offset = sealed.PayloadAt(1000);
  chunk.compressed_bytes = static_cast<uint32_t>(sealed.payload.size());
  chunk.payload_bytes = static_cast<uint32_t>(words.size() * 8);
  sealed.chunks.assign(1000, chunk);
  for (uint32_t i = 0; i < 1000; ++i) sealed.chunks[i].sequence = i;
  sealed.Write();
  const uint64_t before = ResidentMemoryBytes();
  const auto ranks = ReadRecording(scratch.path());
  ASSERT_FALSE(ranks.ok());
  EXPECT_NE(ranks.error().find("overlap"), std::string::npos) << ranks.error();
  EXPECT_LT(ResidentMemoryBytes(), before + (64 << 20));
}

TEST(Crafted, AFileThatClaimsFarMoreThanItHasRoomForIsDamage) {
  const ScratchFolder scratch;
  Sealed sealed(scratch.path());
  const std::vector<char> frame = Compressed(std::vector<uint64_t>(8 << 20));  // 64 MiB of zeros
  const SealedChunk first = sealed.chunks.at(0);
  sealed.chunks.clear();
  sealed.payload.clear();
  constexpr size_t kChunks = 40;
  for (uint32_t i = 0; i < kChunks; ++i) {
    SealedChunk& chunk = sealed.chunks.emplace_back(first);
    chunk.file_offset = sealed.PayloadAt(kChunks) + sealed.payload.size();
    chunk.compressed_bytes = static_cast<uint32_t>(frame.size());
    chunk.payload_bytes = 64 << 20;
    chunk.sequence = i;
    sealed.payload.insert(sealed.payload.end(), frame.begin(), frame.end());
  }
  sealed.Write();
  const auto ranks = ReadRecording(scratch.path());
  ASSERT_FALSE(ranks.ok());
  EXPECT_NE(ranks.error().find("claims to hold 2560 MiB"), std::string::npos) << ranks.error();
}

// 20 GB of holes took as much memory as its directory claimed to be long.
TEST(Crafted, ADirectoryThatLiesInAHoleIsDamage) {
  const ScratchFolder scratch;
  const Sealed sealed(scratch.path());
  const fs::path path = SegmentsIn(RankFoldersIn(scratch.path())[0].path)[0];
  std::vector<char> bytes = ReadBytes(path);
  const uint32_t chunks = 8 << 20;
  memcpy(bytes.data() + sizeof(SegmentHeader), &chunks, sizeof chunks);
  WriteBytes(path, bytes);
  fs::resize_file(path, uint64_t{1} << 30);
  const auto ranks = ReadRecording(scratch.path());
  ASSERT_FALSE(ranks.ok());
  EXPECT_NE(ranks.error().find("claims to hold 512 MiB"), std::string::npos) << ranks.error();
}

TEST(Crafted, JsonThatIsNestedDeeplyIsDamage) {
  EXPECT_TRUE(ParseRecorded("[[[[[[[[1]]]]]]]]").is_array());
  EXPECT_TRUE(ParseRecorded(std::string(1 << 20, '[')).is_discarded());
  EXPECT_TRUE(ParseRecorded(std::string(100, '[') + std::string(100, ']')).is_discarded());
}

TEST(Crafted, HostSamplesThatGrowTooMuchAreDamage) {
  const ScratchFolder scratch;
  WriteSegment(scratch / "pid-1");
  HostHeader header{};
  header.magic = kSealedHostMagic;
  header.version = kHostVersion;
  header.check = CheckOf(&header, offsetof(HostHeader, check));
  std::vector<char> file(reinterpret_cast<char*>(&header),
                         reinterpret_cast<char*>(&header) + sizeof header);
  const std::vector<char> frame = Compressed(std::vector<uint64_t>(12 << 20));  // 96 MiB
  file.insert(file.end(), frame.begin(), frame.end());
  const fs::path path = scratch / "host-7-7.tphz";
  WriteBytes(path, file);
  const auto read = ReadHostFile(path);
  ASSERT_TRUE(read.ok()) << read.error();
  EXPECT_LT(read.value().frames.size(), 8u << 20);
  EXPECT_FALSE(read.value().whole);
  const auto ranks = ReadRecording(scratch.path());
  ASSERT_TRUE(ranks.ok()) << ranks.error();
  EXPECT_EQ(ranks.value()[0].trace.quality.CountOf("damaged_host_samples"), 1);
}

// Where memory ends reading does, with a message; never the program.
TEST(Crafted, TooLittleMemoryIsAnError) {
  if (kIsSanitized) GTEST_SKIP() << "sanitizers reserve terabytes, which no limit may cut";
  const ScratchFolder scratch;
  SegmentWriter writer(scratch / "pid-1");
  for (uint32_t w = 0; w < 8; ++w) {
    writer.BeginWriter(w, 100 + w);
    for (uint64_t i = 1; i < 200'000; ++i) writer.Push("open", i);
  }
  writer.Finish();
  const pid_t reader = fork();
  if (reader == 0) {
    const uint64_t most = ResidentMemoryBytes() + (uint64_t{64} << 20);
    const rlimit limit = {most, most};
    setrlimit(RLIMIT_AS, &limit);
    const auto ranks = ReadRecording(scratch.path());
    _exit(!ranks.ok() && ranks.error().find("memory") != std::string::npos ? 0 : 1);
  }
  int status = -1;
  waitpid(reader, &status, 0);
  EXPECT_EQ(status, 0);
}

// A raw file claims it with holes.
TEST(Crafted, ChunksInHolesAreDamage) {
  const ScratchFolder scratch;
  const fs::path path = WriteSegment(scratch / "pid-1");
  std::vector<char> bytes = ReadBytes(path);
  ChunkHeader chunk{};
  memcpy(static_cast<void*>(&chunk), bytes.data() + kChunkAlignment, sizeof chunk);
  const int fd = open(path.c_str(), O_WRONLY);
  uint64_t offset = (bytes.size() + kChunkAlignment - 1) / kChunkAlignment * kChunkAlignment;
  for (uint32_t i = 1; i <= 40; ++i) {
    chunk.file_offset = offset;
    chunk.size_bytes = kMaxChunkBytes;
    chunk.kind = ChunkKind::kCallRows;
    chunk.row_bytes = sizeof(CallRow);
    chunk.sequence = i;
    chunk.committed = kMaxChunkBytes - sizeof chunk;
    chunk.static_check = CheckOf(&chunk, offsetof(ChunkHeader, static_check));
    ASSERT_EQ(pwrite(fd, static_cast<void*>(&chunk), sizeof chunk, static_cast<off_t>(offset)),
              static_cast<ssize_t>(sizeof chunk));
    offset += kMaxChunkBytes;
  }
  ASSERT_EQ(ftruncate(fd, static_cast<off_t>(offset)), 0);
  close(fd);
  const auto ranks = ReadRecording(scratch.path());
  ASSERT_FALSE(ranks.ok());
  EXPECT_NE(ranks.error().find("claims to hold"), std::string::npos) << ranks.error();
}

// Damage that no check finds: directories and records that were changed with care.
TEST(Crafted, DirectoriesAndRecordsOfAnyKindAreSurvived) {
  std::mt19937_64 random(11);
  int readable = 0;
  const ScratchFolder scratch;
  const Sealed whole(scratch.path());
  for (int i = 0; i < Rounds(3000); ++i) {
    Sealed sealed = whole;
    std::vector<uint64_t> words(64 + random() % 512);
    for (uint64_t& word : words) word = random() >> random() % 64;
    for (size_t at = 0; at < words.size();) {
      const size_t length = 1 + random() % 12;
      const auto type = static_cast<RecordType>(random() % 26);
      words[at] = PackHead(type, static_cast<uint32_t>(length), random() % 4096,
                           static_cast<uint32_t>(random() >> random() % 64));
      at += length;
    }
    sealed.payload = Compressed(words);
    SealedChunk& chunk = sealed.chunks.at(0);
    chunk.compressed_bytes = static_cast<uint32_t>(sealed.payload.size());
    chunk.payload_bytes = static_cast<uint32_t>(words.size() * 8);
    chunk.kind = static_cast<ChunkKind>(1 + random() % 3);
    chunk.row_bytes =
        static_cast<uint16_t>(chunk.kind == ChunkKind::kRecords    ? 0
                              : chunk.kind == ChunkKind::kCallRows ? sizeof(CallRow)
                                                                   : sizeof(DeviceRow));
    if (random() % 4 == 0) {
      auto* const fields = reinterpret_cast<unsigned char*>(sealed.chunks.data());
      fields[random() % sizeof(SealedChunk)] = static_cast<unsigned char>(random());
    }
    if (random() % 4 == 0) sealed.info[random() % sealed.info.size()] = static_cast<char>(random());
    sealed.Write();
    const auto ranks = ReadRecording(scratch.path());
    (void)SummarizeRecording(scratch.path()).ok();
    readable += ranks.ok() ? 1 : 0;
  }
  EXPECT_GT(readable, Rounds(2000));
}

std::string OurBoot() {
  std::string boot;
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id") >> std::ws, boot);
  return boot;
}

bool MayBeAliveWith(const std::string& name, const std::string& boot, bool open_for_writing) {
  const ScratchFolder scratch;
  SegmentWriter writer(scratch / "pid-1");
  strcpy(writer.header().boot_id, boot.c_str());
  gethostname(writer.header().host, sizeof writer.header().host - 1);
  writer.Finish();
  const fs::path path = writer.path().parent_path() / name;
  fs::rename(writer.path(), path);
  const int fd = open_for_writing ? open(path.c_str(), O_RDWR | O_CLOEXEC) : -1;
  const bool alive = MayBeAlive(path);
  if (fd >= 0) close(fd);
  return alive;
}

TEST(Crafted, WhatMayBeWrittenElsewhereIsAlive) {
  const std::string here = OurBoot();
  EXPECT_FALSE(MayBeAliveWith("7-1.tps", here, false));
  EXPECT_TRUE(MayBeAliveWith("7-1.tps", here, true));
  // Another container's: its processes are not in our /proc.
  EXPECT_TRUE(MayBeAliveWith("7-1-00000001.tps", here, true));
  // Another host of the same name, or this one before it was booted.
  EXPECT_TRUE(MayBeAliveWith("7-1.tps", "f0000000-0000-0000-0000-000000000000", false));
}

// It is asked before a segment is read, and what is none now may be one by then: eight ranks in one
// folder lost what the last of them recorded while the first was sealing.
TEST(Crafted, WhatIsNoSegmentYetMayBeAlive) {
  const ScratchFolder scratch;
  const fs::path path = scratch.path() / "7-1.tps";
  WriteBytes(path, {});
  EXPECT_TRUE(MayBeAlive(path));
  WriteBytes(path, std::vector<char>(4096));
  EXPECT_TRUE(MayBeAlive(path));
}

}  // namespace
}  // namespace trainprof::testing
