// Plain and gzip sources: members one after another, damage, and windows that events straddle.
#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <thread>

#include "tests/support/trace_text.h"
#include "trace/formats/importer.h"
#include "trace/formats/io/byte_source.h"

namespace trainprof {
namespace {

struct Read {
  std::string text;
  std::string damage;
};

// Inflated as it is read, and ahead.
constexpr size_t kThreads[] = {1, 4};

Read ReadSource(const std::string& path, size_t threads) {
  Result<std::unique_ptr<ByteSource>> source = OpenByteSource(path, threads);
  EXPECT_TRUE(source.ok());
  Read read;
  char buffer[1000];
  while (const size_t got = source.value()->Read(buffer, sizeof(buffer)))
    read.text.append(buffer, got);
  read.damage = source.value()->damage();
  return read;
}

// Both ways give the same.
Read ReadSource(std::string_view file_content) {
  const TemporaryFile file("data", file_content);
  Read read = ReadSource(file.path(), kThreads[0]);
  const Read ahead = ReadSource(file.path(), kThreads[1]);
  EXPECT_TRUE(read.text == ahead.text);
  EXPECT_EQ(read.damage, ahead.damage);
  return read;
}

std::string LargeText() {
  std::string text;
  for (int i = 0; text.size() < 5'000'000; ++i)
    text += fmt::format("line {} of a large text\n", i * 7);
  return text;
}

TEST(ByteSource, InflatesMembersThatFollowEachOther) {
  const std::string text = LargeText();
  const Read read =
      ReadSource(Gzip(text.substr(0, 1234567)) + Gzip("") + Gzip(text.substr(1234567)));
  EXPECT_TRUE(read.text == text);
  EXPECT_EQ(read.damage, "");
}

TEST(ByteSource, ZeroPaddingAfterAMemberIsNoDamage) {
  const Read read = ReadSource(Gzip("abc") + std::string(1000, '\0'));
  EXPECT_EQ(read.text, "abc");
  EXPECT_EQ(read.damage, "");
}

TEST(ByteSource, KeepsWhatCameBeforeTheDamage) {
  const std::string text = LargeText();
  const std::string whole = Gzip(text);
  const Read cut = ReadSource(whole.substr(0, whole.size() / 2));
  EXPECT_GT(cut.text.size(), text.size() / 4);
  EXPECT_TRUE(text.starts_with(cut.text));
  EXPECT_NE(cut.damage.find("ends early"), std::string::npos) << cut.damage;
  const Read foreign = ReadSource(Gzip("abc") + "not gzip");
  EXPECT_EQ(foreign.text, "abc");
  EXPECT_NE(foreign.damage.find("not gzip"), std::string::npos) << foreign.damage;
}

TEST(ByteSource, APeekedSourceBeginsWithWhatWasLookedAt) {
  const std::string text = LargeText();
  for (const std::string& content : {text, Gzip(text)}) {
    for (const size_t threads : kThreads) {
      const TemporaryFile file("data", content);
      PeekedSource source(std::move(OpenByteSource(file.path(), threads)).value(), 6);
      EXPECT_EQ(source.head(), "line 0");
      std::string read(text.size() + 1, '\0');
      size_t filled = 0;
      while (const size_t got = source.Read(read.data() + filled, read.size() - filled))
        filled += got;
      read.resize(filled);
      EXPECT_TRUE(read == text);
    }
  }
}

// What a FIFO's reader gets; the writer comes later, in two pieces.
void ExpectThatAFifoIsReadToItsEnd(size_t threads) {
  const std::string text = LargeText();
  for (const std::string& content : {text, Gzip(text)}) {
    const TemporaryFile beside("data");
    const std::string fifo = beside.folder() + "/fifo";
    ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
    std::thread writer([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(120));
      std::ofstream out(fifo, std::ios::binary);
      out << content.substr(0, 1) << std::flush;
      std::this_thread::sleep_for(std::chrono::milliseconds(120));
      out << content.substr(1);
    });
    PeekedSource source(std::move(OpenByteSource(fifo, threads)).value(), 6);
    std::string read(text.size() + 1, '\0');
    size_t filled = 0;
    while (const size_t got = source.Read(read.data() + filled, read.size() - filled))
      filled += got;
    writer.join();
    read.resize(filled);
    EXPECT_TRUE(read == text) << source.damage();
    std::remove(fifo.c_str());
  }
}

TEST(ByteSource, AFifoIsReadToItsEnd) { ExpectThatAFifoIsReadToItsEnd(1); }
TEST(ByteSource, AFifoIsReadAheadToItsEnd) { ExpectThatAFifoIsReadToItsEnd(4); }

void ExpectThatWaitingForAStreamCanBeCancelled(size_t threads) {
  const TemporaryFile beside("data");
  const std::string fifo = beside.folder() + "/fifo";
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  const int no_end = open(fifo.c_str(), O_RDWR);  // a writer that writes little and stays
  for (const std::string& begin : {std::string(), std::string("{"), Gzip("{").substr(0, 12)}) {
    ASSERT_EQ(write(no_end, begin.data(), begin.size()), static_cast<ssize_t>(begin.size()));
    std::atomic<bool> cancel = false;
    std::thread soon([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(200));
      cancel = true;
    });
    const Result<Trace> trace =
        ImportTrace(fifo, {.progress = {}, .cancel = &cancel, .threads = threads});
    soon.join();
    ASSERT_FALSE(trace.ok());
    EXPECT_EQ(trace.error(), fifo + ": cancelled");
  }
  close(no_end);
  std::remove(fifo.c_str());
}

TEST(ByteSource, WaitingForAStreamCanBeCancelled) {
  for (const size_t threads : kThreads) ExpectThatWaitingForAStreamCanBeCancelled(threads);
}

TEST(ByteSource, SaysWhatIsNoTrace) {
  const auto error_of = [](const std::string& path) { return ImportTrace(path).error(); };
  EXPECT_EQ(error_of("/dev/null"), "/dev/null: the file is empty, a trace was expected");
  EXPECT_NE(error_of("/dev/zero").find("not a trace that trainprof knows"), std::string::npos);
  EXPECT_EQ(error_of("/dev/ptmx"), "/dev/ptmx: is a terminal, a trace file was expected");
  const TemporaryFile beside("data");
  const std::string path = beside.folder() + "/socket";
  const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  path.copy(name.sun_path, sizeof name.sun_path - 1);
  ASSERT_EQ(bind(fd, reinterpret_cast<sockaddr*>(&name), sizeof name), 0);
  EXPECT_NE(error_of(path).find("is a socket"), std::string::npos) << error_of(path);
  close(fd);
  std::remove(path.c_str());
}

// A list of events of all lengths, so that window and block ends fall on every place of an event.
std::string ManyEvents(int count) {
  std::string text = "{\"traceEvents\": [";
  for (int i = 0; i < count; ++i) {
    text += fmt::format(
        R"({}{{"ph":"X","name":"event {} {}","pid":1,"tid":1,"ts":{}.{:03},"dur":0.001,"args":{{"l":[[{}, 2], []],"e":"a\nb"}}}})",
        i == 0 ? "" : ",\n", i % 97, std::string(static_cast<size_t>(i % 61), 'x'), i, i % 1000, i);
  }
  return text + "]}";
}

TEST(ByteSource, EventsThatStraddleWindowsAreWhole) {
  constexpr int kEvents = 60000;
  const std::string text = ManyEvents(kEvents);
  for (const std::string& content : {text, Gzip(text)}) {
    const TemporaryFile file("t.json", content);
    const Result<Trace> trace = ImportTrace(file.path());
    ASSERT_TRUE(trace.ok()) << trace.error();
    EXPECT_EQ(trace.value().ranges.size(), static_cast<size_t>(kEvents));
    EXPECT_EQ(QualityText(trace.value()), "");
    for (size_t i = 0; i < trace.value().ranges.size(); ++i) {
      const auto expected = static_cast<int64_t>(i) * 1000 + static_cast<int64_t>(i % 1000);
      ASSERT_EQ(trace.value().ranges.begin[i].ns, expected);
    }
  }
}

TEST(ByteSource, AnEventLargerThanTheWindowIsRead) {
  const std::string text = R"([{"ph":"X","name":"a","pid":1,"tid":1,"ts":1,"dur":1,"args":{"s":")" +
                           std::string(5'000'000, 'y') + R"("}}])";
  const Result<Trace> trace = ImportText(text);
  ASSERT_TRUE(trace.ok()) << trace.error();
  EXPECT_EQ(trace.value().ranges.size(), 1u);
  EXPECT_EQ(QualityText(trace.value()), "");
}

}  // namespace
}  // namespace trainprof
