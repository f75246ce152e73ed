#include <gtest/gtest.h>
#include <string.h>

#include <fstream>
#include <random>

#include "tests/support/sanitized.h"
#include "tests/support/scratch_folder.h"
#include "trace/recording/files/host_encoder.h"
#include "trace/recording/read/host_counters.h"

namespace trainprof::testing {
namespace {

using namespace recording;
namespace fs = std::filesystem;

constexpr int64_t kBaseNs = 1'000'000'000'000;
constexpr int64_t kTenth = 100'000'000;

HostHeader Header() {
  HostHeader header{};
  header.magic = kHostMagic;
  header.version = kHostVersion;
  header.ticks_per_second = 100;
  header.rank = -1;
  header.pid = 77;
  header.cores = 4;
  strcpy(header.host, "node1");
  strcpy(header.boot_id, "boot");
  header.check = CheckOf(&header, offsetof(HostHeader, check));
  return header;
}

// The frames of a file that a test writes, and its name in the run directory.
class Writer {
 public:
  explicit Writer(const HostHeader& header = Header()) {
    Append({reinterpret_cast<const char*>(&header), sizeof header});
  }
  void Append(std::span<const char> bytes) {
    for (const char byte : bytes) bytes_.push_back(byte);  // insert() makes GCC 12 see an overflow
  }
  fs::path WriteTo(const ScratchFolder& folder, const char* name = "host-77-1.tph") const {
    WriteBytes(folder / name, bytes_);
    return folder / name;
  }
  std::vector<char> frames() const { return {bytes_.begin() + sizeof(HostHeader), bytes_.end()}; }

 private:
  std::vector<char> bytes_;
};

// What a decoder said, a line an item.
class Listing : public HostSink {
 public:
  void OnDefine(uint32_t id, const HostEntity& entity) override {
    text += "define " + std::to_string(id) + " kind " +
            std::to_string(static_cast<int>(entity.kind)) + " " + std::to_string(entity.number) +
            " of " + std::to_string(entity.parent) + " " + entity.text + "\n";
  }
  void OnValues(uint32_t id, int64_t time, std::span<const Value> values) override {
    text += std::to_string(time) + " " + std::to_string(id) + ":";
    for (const Value& value : values) {
      text += " " + std::to_string(value.metric) + "=" + std::to_string(value.value);
    }
    text += "\n";
  }
  void OnEnd(uint32_t id) override { text += "end " + std::to_string(id) + "\n"; }
  void OnFact(std::string_view key, std::string_view value) override {
    text += std::string(key) + " is " + std::string(value) + "\n";
  }
  std::string text;
};

TEST(HostFrames, SayWhatWasObserved) {
  HostEncoder encoder(0);
  Writer writer;
  const uint32_t disk = encoder.Add({HostEntityKind::kDisk, 0, 0, 0, "vda"});
  const uint32_t process = encoder.Add({HostEntityKind::kProcess, 12, 1, 99, "py (x)"});
  encoder.Observe(disk, DiskMetric::kBusy, 5);
  encoder.Fact("NVML", "absent");
  writer.Append(encoder.TakeFrame(1000));
  encoder.Observe(disk, DiskMetric::kBusy, 5);
  encoder.Observe(disk, DiskMetric::kRead, 7);
  encoder.Observe(process, ProcessMetric::kUser, UINT64_MAX);
  writer.Append(encoder.TakeFrame(1100));
  encoder.Rename(process, "sh");
  encoder.End(disk);
  writer.Append(encoder.TakeFrame(1200));
  EXPECT_TRUE(encoder.TakeFrame(1300).empty());
  Listing listing;
  EXPECT_EQ(DecodeHostFrames(writer.frames(), listing), 0);
  EXPECT_EQ(listing.text,
            "NVML is absent\n"
            "define 0 kind 3 0 of 0 vda\n"
            "1000 0: 2=5\n"
            "define 1 kind 4 12 of 1 py (x)\n"
            "1100 0: 0=7 2=5\n"
            "1100 1: 0=18446744073709551615\n"
            "end 0\n"
            "define 1 kind 4 12 of 1 sh\n");
}

// A twin of the encoder's input in the listing's words.
TEST(HostFrames, RandomSamplesComeBackEqual) {
  for (uint32_t seed = 0; seed < Rounds(8u); ++seed) {
    std::mt19937_64 random(seed);
    HostEncoder encoder(static_cast<uint8_t>(seed % 2));
    Writer writer;
    Listing expected;
    struct Known {
      uint32_t encoder_id;
      uint32_t id;
      bool is_new;
      HostEntity what;
    };
    std::vector<Known> known;
    std::vector<uint32_t> ended;
    uint32_t next = 0;
    int64_t now = static_cast<int64_t>(random() >> 20);
    for (int frame = 0; frame < 2300; ++frame) {
      if (random() % 50 == 0 || known.empty()) {
        HostEntity what{random() % 3 == 0 ? HostEntityKind::kCores : HostEntityKind::kProcess,
                        static_cast<int64_t>(random()), static_cast<int64_t>(random() % 9),
                        random() >> random() % 64, std::string(random() % 30, 'a')};
        known.push_back({encoder.Add(what), 0, true, what});
      }
      if (random() % 80 == 0 && known.size() > 1) {
        const auto gone = known.begin() + static_cast<ptrdiff_t>(random() % known.size());
        if (!gone->is_new) ended.push_back(gone->id);
        encoder.End(gone->encoder_id);
        known.erase(gone);
      }
      now += static_cast<int64_t>(random() % 1'000'000'000);
      // The reader learns of ends first; in a key frame only after all that is left was said.
      const bool is_key = frame % 1000 == 0;
      if (!is_key) {
        for (const uint32_t id : ended) expected.OnEnd(id);
      }
      for (Known& each : known) {
        if (each.is_new) {
          each.id = next++;
          each.is_new = false;
          expected.OnDefine(each.id, each.what);
        }
        const uint32_t metrics = each.what.kind == HostEntityKind::kCores ? 300 : 20;
        std::vector<HostSink::Value> values;
        for (uint32_t m = 0; m < metrics; ++m) {
          if (random() % 4 == 0) values.push_back({m, random() >> random() % 64});
        }
        for (const auto& value : values) {
          encoder.Observe(each.encoder_id, value.metric, value.value);
        }
        if (!values.empty()) expected.OnValues(each.id, now, values);
      }
      if (is_key) {
        for (const uint32_t id : ended) expected.OnEnd(id);
      }
      ended.clear();
      writer.Append(encoder.TakeFrame(now));
    }
    Listing listing;
    ASSERT_EQ(DecodeHostFrames(writer.frames(), listing), 0);
    ASSERT_TRUE(listing.text == expected.text) << "seed " << seed;
  }
}

// Ten seconds of a machine, a disk and a process; frames long enough to be damaged anywhere.
Writer SmallFile() {
  HostEncoder encoder(0);
  HostEncoder gpu(1);
  Writer writer;
  const uint32_t machine = encoder.Add({HostEntityKind::kMachine, 0, 0, 0, ""});
  const uint32_t disk = encoder.Add({HostEntityKind::kDisk, 0, 0, 0, "vda"});
  const uint32_t process = encoder.Add({HostEntityKind::kProcess, 500, 1, 9, "python"});
  const uint32_t device = gpu.Add({HostEntityKind::kGpu, 0, 0, 0, "GPU-1 H100"});
  for (int i = 0; i <= 100; ++i) {
    const auto n = static_cast<uint64_t>(i);
    const int64_t now = kBaseNs + i * kTenth;
    encoder.Observe(machine, MachineMetric::kUser, 20 * n);
    encoder.Observe(machine, MachineMetric::kRunning, i < 50 ? 2 : 3);
    encoder.Observe(disk, DiskMetric::kBusy, 50 * n);
    encoder.Observe(process, ProcessMetric::kUser, 10 * n);
    encoder.Observe(process, ProcessMetric::kResident, 3 << 20);
    writer.Append(encoder.TakeFrame(now));
    gpu.Observe(device, GpuMetric::kUtilisation, n);
    gpu.Observe(device, GpuMetric::kThrottle, i < 20 ? 4 : 0);
    writer.Append(gpu.TakeFrame(now + 1));
  }
  return writer;
}

std::vector<HostAudience> OneRank() { return {{"boot\n", 0, {{500, 9}}}}; }

Trace Read(const ScratchFolder& folder, const std::vector<HostAudience>& audiences,
           size_t audience = 0) {
  TraceBuilder builder;
  HostSamples(folder.path(), audiences).AddTo(audience, kBaseNs, builder);
  return std::move(builder).Build();
}

// "pid name time: key=value ..." a row, of the counters whose name holds `filter`.
std::string Counters(const Trace& trace, std::string_view filter = "") {
  std::string text;
  for (size_t row = 0; row < trace.counters.size(); ++row) {
    const std::string name(trace.Text(trace.counters.name[row]));
    if (name.find(filter) == std::string::npos) continue;
    const Track& track = trace.tracks[Index(trace.counters.track[row])];
    text += std::to_string(trace.processes[Index(track.process)].pid) + " " + name + " " +
            std::to_string(trace.counters.begin[row].ns / 1'000'000) + ":";
    trace.args.ForEach(trace.counters.args[row], [&](const Arg& arg) {
      const bool real = arg.value.type == ArgValue::Type::kDouble;
      const double value = real ? arg.value.real : static_cast<double>(arg.value.integer);
      char number[32];
      snprintf(number, sizeof number, "%g", value);
      text += " " + std::string(trace.Text(arg.key)) + "=" + number;
    });
    text += "\n";
  }
  return text;
}

// The name of a device without one, on a machine of which NVML says these facts.
std::string NameGiven(const std::vector<std::pair<std::string, std::string>>& facts) {
  const ScratchFolder folder;
  HostEncoder encoder(0);
  for (const auto& [name, text] : facts) encoder.Fact(name, text);
  Writer writer;
  writer.Append(encoder.TakeFrame(kBaseNs));
  writer.WriteTo(folder);
  TraceBuilder builder;
  builder.FindOrAddDevice(0);
  builder.device(builder.FindOrAddDevice(1)).name = builder.Intern("H200");
  HostSamples(folder.path(), OneRank()).AddTo(0, kBaseNs, builder);
  const Trace trace = std::move(builder).Build();
  EXPECT_EQ(trace.Text(trace.devices[1].name), "H200");
  return std::string(trace.Text(trace.devices[0].name));
}

TEST(HostFacts, NameADeviceThatCuptiDoesNotName) {
  EXPECT_EQ(NameGiven({{"GPU 0", "GPU-1 NVIDIA H100, MIG mode"}, {"GPU 0 power", "GPU-x what"}}),
            "NVIDIA H100");
  EXPECT_EQ(NameGiven({{"GPU 0", "GPU-1 NVIDIA H100"}, {"GPU 1", "GPU-2 NVIDIA H100, MIG mode"}}),
            "NVIDIA H100");
  EXPECT_EQ(NameGiven({{"GPU 0", "GPU-1 NVIDIA H100"}, {"GPU 1", "GPU-2 NVIDIA A100"}}), "");
  EXPECT_EQ(NameGiven({{"GPU 0", "not sampled: NVML does not give it"}, {"NVML", "2"}}), "");
}

TEST(HostCounters, TotalsBecomeRatesFromTheSampleTheyBeginAt) {
  const ScratchFolder folder;
  SmallFile().WriteTo(folder);
  const Trace trace = Read(folder, OneRank());
  // 20 ticks in a tenth of a second on 4 cores; said once, and once more where it ends.
  EXPECT_EQ(Counters(trace, "CPU % of all"),
            "77 CPU % of all cores 0: user=50\n77 CPU % of all cores 10000: user=50\n");
  EXPECT_EQ(Counters(trace, "CPU % of one"),
            "500 CPU % of one core 0: user=100\n500 CPU % of one core 10000: user=100\n");
  EXPECT_EQ(Counters(trace, "Disk vda busy"),
            "77 Disk vda busy % 0: busy=50\n77 Disk vda busy % 10000: busy=50\n");
  EXPECT_EQ(Counters(trace, "Run queue"),
            "77 Run queue 0: running=2\n77 Run queue 5000: running=3\n"
            "77 Run queue 10000: running=3\n");
  EXPECT_NE(Counters(trace, "GPU 0 throttled").find("0: SW power cap=1 HW slowdown=0"),
            std::string::npos);
  EXPECT_EQ(trace.Text(trace.processes[0].name), "host node1");
  EXPECT_TRUE(trace.quality.items().empty());
}

TEST(HostCounters, ShrunkTotalsAreSetBackAndThoseOf32BitsWrap) {
  const ScratchFolder folder;
  HostEncoder encoder(0);
  Writer writer;
  const uint32_t disk = encoder.Add({HostEntityKind::kDisk, 0, 0, 0, "vda"});
  const uint64_t busy[] = {0xFFFFFFFF - 49, 0, 50, 20, 70};
  for (int i = 0; i < 5; ++i) {
    encoder.Observe(disk, DiskMetric::kBusy, busy[i]);
    writer.Append(encoder.TakeFrame(kBaseNs + i * kTenth));
  }
  writer.WriteTo(folder);
  // The third interval went back and says nothing; the fourth is like those before.
  EXPECT_EQ(Counters(Read(folder, OneRank())),
            "77 Disk vda busy % 0: busy=50\n77 Disk vda busy % 400: busy=50\n");
}

// A last sample soon after the one before: a step of 10 ms in 19 ms would read as 53 %.
TEST(HostCounters, CpuTimesOverLessThanTheirStepsSayNothing) {
  const ScratchFolder folder;
  HostEncoder encoder(0);
  Writer writer;
  const uint32_t process = encoder.Add({HostEntityKind::kProcess, 500, 1, 9, "python"});
  for (const uint64_t ms : {0, 100, 119}) {
    encoder.Observe(process, ProcessMetric::kUser, ms / 10);
    writer.Append(encoder.TakeFrame(kBaseNs + static_cast<int64_t>(ms) * 1'000'000));
  }
  writer.WriteTo(folder);
  EXPECT_EQ(Counters(Read(folder, OneRank())),
            "500 CPU % of one core 0: user=100\n500 CPU % of one core 100: user=100\n");
}

TEST(HostCounters, AnEndedProcessGoesToZero) {
  const ScratchFolder folder;
  HostEncoder encoder(0);
  Writer writer;
  const uint32_t process = encoder.Add({HostEntityKind::kProcess, 500, 1, 9, "python"});
  for (uint64_t i = 0; i < 3; ++i) {
    encoder.Observe(process, ProcessMetric::kUser, 10 * i);
    encoder.Observe(process, ProcessMetric::kThreads, 4);
    writer.Append(encoder.TakeFrame(kBaseNs + static_cast<int64_t>(i) * kTenth));
  }
  encoder.End(process);
  writer.Append(encoder.TakeFrame(kBaseNs + 3 * kTenth));
  writer.WriteTo(folder);
  EXPECT_EQ(Counters(Read(folder, OneRank())),
            "500 Threads 0: threads=4\n500 CPU % of one core 0: user=100\n"
            "500 CPU % of one core 200: user=0\n500 Threads 200: threads=0\n");
}

TEST(HostCounters, EachRankGetsItsProcessesAndTheLowestTheMachine) {
  const ScratchFolder folder;
  HostEncoder encoder(0);
  Writer writer;
  std::vector<uint32_t> ids = {encoder.Add({HostEntityKind::kMachine, 0, 0, 0, ""})};
  // torchrun, its two ranks, the second one's loader worker.
  const HostEntity processes[] = {{HostEntityKind::kProcess, 10, 1, 1, "torchrun"},
                                  {HostEntityKind::kProcess, 20, 10, 2, "python"},
                                  {HostEntityKind::kProcess, 21, 10, 3, "python"},
                                  {HostEntityKind::kProcess, 30, 21, 4, "pt_data_worker"}};
  for (const HostEntity& process : processes) ids.push_back(encoder.Add(process));
  for (uint64_t i = 0; i < 2; ++i) {
    for (const uint32_t id : ids) encoder.Observe(id, 5, 1000 + i);
    writer.Append(encoder.TakeFrame(kBaseNs + static_cast<int64_t>(i) * kTenth));
  }
  writer.WriteTo(folder);
  const std::vector<HostAudience> audiences = {
      {"boot", 3, {{21, 3}}}, {"boot", 1, {{20, 2}}}, {"other", 0, {{21, 3}}}};
  const auto pids = [&](size_t audience) {
    std::string text;
    for (const Process& process : Read(folder, audiences, audience).processes) {
      text += std::to_string(process.pid) + " ";
    }
    return text;
  };
  EXPECT_EQ(pids(0), "21 30 ");
  EXPECT_EQ(pids(1), "77 10 20 ");
  EXPECT_EQ(pids(2), "");
}

TEST(HostFile, SealedReadsAsRawDid) {
  const ScratchFolder folder;
  const fs::path path = SmallFile().WriteTo(folder);
  const std::string raw = Counters(Read(folder, OneRank()));
  const auto raw_bytes = fs::file_size(path);
  ASSERT_TRUE(SealHostFile(path).ok());
  EXPECT_FALSE(fs::exists(path));
  ASSERT_EQ(HostFilesIn(folder.path()).size(), 1u);
  EXPECT_LT(fs::file_size(HostFilesIn(folder.path())[0]), raw_bytes / 3);
  EXPECT_EQ(Counters(Read(folder, OneRank())), raw);
}

TEST(HostFile, OfARunThatRecordedNothingElseADamagedOneHidesNoOther) {
  const ScratchFolder folder;
  SmallFile().WriteTo(folder);
  const std::string whole = Counters(Read(folder, OneRank()));
  WriteBytes(folder / "host-1-1.tph", {'x'});
  TraceBuilder builder;
  const HostSamples alone = HostSamples::Alone(folder.path());
  ASSERT_NE(alone.first(), nullptr);
  alone.AddTo(0, kBaseNs, builder);
  EXPECT_EQ(Counters(std::move(builder).Build()), whole);
}

TEST(HostFile, ATornTailIsNoDamage) {
  const ScratchFolder folder;
  const std::vector<char> bytes = ReadBytes(SmallFile().WriteTo(folder));
  Listing whole;
  DecodeHostFrames({bytes.data() + sizeof(HostHeader), bytes.size() - sizeof(HostHeader)}, whole);
  for (size_t size = sizeof(HostHeader); size < bytes.size(); size += 7) {
    Listing listing;
    EXPECT_EQ(
        DecodeHostFrames({bytes.data() + sizeof(HostHeader), size - sizeof(HostHeader)}, listing),
        0);
    ASSERT_TRUE(whole.text.starts_with(listing.text)) << size;
  }
}

TEST(HostFile, DamageCostsUpToTheNextKeyFrameAndIsCounted) {
  HostEncoder encoder(0);
  Writer writer;
  const uint32_t disk = encoder.Add({HostEntityKind::kDisk, 0, 0, 0, "vda"});
  for (uint64_t i = 0; i < 1500; ++i) {
    encoder.Observe(disk, DiskMetric::kBusy, 50 * i);
    writer.Append(encoder.TakeFrame(kBaseNs + static_cast<int64_t>(i) * kTenth));
  }
  std::vector<char> frames = writer.frames();
  frames[frames.size() / 3] ^= 1;
  Listing listing;
  EXPECT_EQ(DecodeHostFrames(frames, listing), 1);
  const auto lines = std::count(listing.text.begin(), listing.text.end(), '\n');
  EXPECT_NEAR(static_cast<double>(lines), 500 + 500, 20);
}

TEST(HostFile, ANewerVersionIsRefusedWithAMessage) {
  const ScratchFolder folder;
  HostHeader header = Header();
  header.version = kHostVersion + 1;
  header.check = CheckOf(&header, offsetof(HostHeader, check));
  const auto file = ReadHostFile(Writer(header).WriteTo(folder));
  ASSERT_FALSE(file.ok());
  EXPECT_NE(file.error().find("version 2"), std::string::npos);
  EXPECT_EQ(Read(folder, OneRank()).quality.CountOf("unreadable_host_file"), 1);
}

// Whatever the bytes: no crash, no hang, and no more rows than were written.
TEST(HostFile, DamagedFilesAreSurvived) {
  const ScratchFolder folder;
  const fs::path raw = SmallFile().WriteTo(folder);
  const std::vector<char> raw_bytes = ReadBytes(raw);
  ASSERT_TRUE(SealHostFile(raw).ok());
  const fs::path sealed = HostFilesIn(folder.path())[0];
  const std::vector<char> sealed_bytes = ReadBytes(sealed);
  std::mt19937_64 random(1);
  for (int i = 0; i < 800; ++i) {
    const bool is_raw = i % 2 == 0;
    std::vector<char> bytes = is_raw ? raw_bytes : sealed_bytes;
    testing::Damage(bytes, random);
    fs::remove(raw);
    fs::remove(sealed);
    WriteBytes(is_raw ? raw : sealed, bytes);
    const Trace trace = Read(folder, OneRank());
    ASSERT_LE(trace.counters.size(), 2000u);
  }
}

// Payloads with good checks and any words inside.
TEST(HostFile, HostilePayloadsAreSurvived) {
  std::mt19937_64 random(2);
  for (int i = 0; i < 1000; ++i) {
    std::vector<char> frames;
    for (int f = 0; f < 4; ++f) {
      std::vector<char> payload(8 * (1 + random() % 12));
      for (char& byte : payload) {
        byte = static_cast<char>(random() % 3 == 0 ? random() : random() % 6);
      }
      HostFrameHeader header{};
      header.magic = HostFrameHeader::kMagic;
      header.kind = f == 0 ? HostFrameHeader::kKey : HostFrameHeader::kDelta;
      header.stream = static_cast<uint8_t>(random() % 2);
      header.bytes = static_cast<uint32_t>(payload.size());
      header.check = FrameCheck(header, payload.data());
      frames.insert(frames.end(), reinterpret_cast<char*>(&header),
                    reinterpret_cast<char*>(&header) + sizeof header);
      frames.insert(frames.end(), payload.begin(), payload.end());
    }
    Writer writer;
    writer.Append(frames);
    const ScratchFolder folder;
    writer.WriteTo(folder);
    EXPECT_LE(Read(folder, OneRank()).counters.size(), 5000u);
  }
}

// 8 MiB of headers that each claim 4 MiB: checking all of them would take hours.
TEST(HostFile, ClaimsThatOverlapCostNoSquare) {
  HostFrameHeader header{};
  header.magic = HostFrameHeader::kMagic;
  header.kind = HostFrameHeader::kKey;
  header.bytes = kMostFrameBytes;
  header.check = 12345;
  std::vector<char> frames(8 << 20);
  for (size_t at = 0; at + sizeof header <= frames.size(); at += sizeof header) {
    memcpy(frames.data() + at, &header, sizeof header);
  }
  Listing listing;
  EXPECT_EQ(DecodeHostFrames(frames, listing), 0);
  EXPECT_EQ(listing.text, "");
}

TEST(HostCounters, ALongRunIsThinnedWithoutLosingItsMeans) {
  const ScratchFolder folder;
  HostEncoder encoder(0);
  Writer writer;
  const uint32_t disk = encoder.Add({HostEntityKind::kDisk, 0, 0, 0, "vda"});
  uint64_t busy = 0;
  constexpr int64_t kSamples = 600'000;
  for (int64_t i = 0; i < kSamples; ++i) {
    busy += static_cast<uint64_t>(i % 2) * 100;
    encoder.Observe(disk, DiskMetric::kBusy, busy);
    writer.Append(encoder.TakeFrame(kBaseNs + i * kTenth));
  }
  writer.WriteTo(folder);
  const Trace trace = Read(folder, OneRank());
  EXPECT_EQ(trace.quality.CountOf("thinned_host_samples"), 1);
  // Every second sample: the mean of one interval at 100 % and one at 0.
  EXPECT_EQ(trace.counters.size(), 2u) << Counters(trace).substr(0, 500);
  EXPECT_NE(Counters(trace).find("busy=50"), std::string::npos);
}

}  // namespace
}  // namespace trainprof::testing
