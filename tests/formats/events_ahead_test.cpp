// Events that several threads parsed ahead, against one parser: the same events, notes, and numbers of
// strings, up to where the list is not regular.
#include "trace/formats/chrome/events_ahead.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>

#include "tests/support/trace_text.h"
#include "trace/formats/importer.h"

namespace trainprof {
namespace {

class TextSource : public ByteSource {
 public:
  TextSource(std::string_view text, size_t piece) : text_(text), piece_(piece) {}

  size_t Read(char* out, size_t capacity) override {
    const size_t count = text_.copy(out, std::min(capacity, piece_), at_);
    at_ += count;
    return count;
  }
  std::string damage() const override { return ""; }
  uint64_t file_bytes_read() const override { return at_; }

 private:
  std::string_view text_;
  size_t piece_;
  size_t at_ = 0;
};

struct Seen {
  ChromeFields fields;
  std::vector<Arg> args;
  std::string raw;
  uint64_t offset = 0;
  std::vector<Note> notes;

  bool operator==(const Seen&) const = default;
};

class Texts {
 public:
  explicit Texts(uint64_t seed) : random_(seed) {}

  size_t Below(size_t n) { return static_cast<size_t>(random_() % n); }

  // With what looks like events within, and what has to be repaired.
  std::string Event() {
    const size_t number = Below(1000);
    std::string args = fmt::format(R"("device": {}, "stream": {})", Below(3), Below(9));
    switch (Below(12)) {
      case 0:
        args += R"(, "x": [{"ph":"X","name":"inner"}, {"name": "y"}])";
        break;
      case 1:
        args += R"(, "x": "},{\"ph\":\"X\"", "y": "a, {")";
        break;
      case 2:
        args += R"(, "device": 7, "v": NaN)";
        break;
      case 3:
        args += fmt::format(R"(, "key {}": "value {}")", Below(50), Below(500));
        break;
      case 4:
        args +=
            R"(, "bad": "\q", "Call stack": "train.py(7): step;main", "Opened at": "model.py(9): forward")";
        break;
      default:
        break;
    }
    const char* const space = Below(4) == 0 ? "\n  " : "";
    return fmt::format(
        R"({{{}"ph": "X", "cat": "kernel", "name": "kernel {}", "pid": {}, "tid": "stream {}", "ts": {}.{:03}, "dur": {}, "args": {{{}}}{}}})",
        space, number, Below(3), Below(4), 1000 + Below(100000), Below(1000), Below(50), args,
        space);
  }

  // `odd`: how often, in a thousand, the list itself is not regular.
  std::string List(size_t events, size_t odd) {
    std::string text;
    for (size_t i = 0; i < events; ++i) {
      text += Event();
      if (Below(1000) >= odd) {
        text += Below(3) == 0 ? " ,\n" : ",";
        continue;
      }
      static constexpr const char* kOdd[] = {
          "", ",,", ", 7,", ", garbage },", ", {\"ph\": },", ", \"text\",", ", {},"};
      text += kOdd[Below(std::size(kOdd))];
    }
    return text;
  }

 private:
  std::mt19937_64 random_;
};

// What one parser makes of the first `count` events of a regular list.
std::vector<Seen> OneByOne(std::string_view text, size_t count, TraceBuilder& builder) {
  std::string padded(text);
  padded.append(64, '\0');
  ChromeEventParser parser(builder);
  ChromeEvent event;
  std::vector<Seen> seen;
  const char* p = padded.data();
  const char* const end = p + text.size();
  while (seen.size() < count) {
    while (*p != '{') ++p;
    const char* const begin = p;
    EXPECT_EQ(parser.Parse(p, end, event), json::Scan::kOk);
    std::vector<Note> notes;
    parser.AppendNotes(notes);
    seen.push_back({event, event.args, std::string(begin, p),
                    static_cast<uint64_t>(begin - padded.data()), notes});
  }
  return seen;
}

TEST(EventsAhead, AreThoseOfOneParser) {
  size_t all = 0;
  size_t irregular = 0;
  for (uint64_t seed = 0; seed < 600; ++seed) {
    Texts texts(seed);
    const std::string text = texts.List(texts.Below(120), seed % 3 == 0 ? 20 : 0);
    const size_t head = std::min(text.size(), texts.Below(300));
    TextSource source(std::string_view(text).substr(head), 1 + texts.Below(500));
    TraceBuilder builder;
    const ChromeEventParser known(builder);  // whoever asks has one
    EventsAhead ahead(source, builder, 1 + texts.Below(4), 600 + texts.Below(3000));
    std::vector<Seen> seen;
    const auto visit = [&](const EventsAhead::Parsed& parsed) {
      seen.push_back({parsed.event,
                      parsed.event.args,
                      std::string(parsed.raw),
                      parsed.offset,
                      {parsed.notes.begin(), parsed.notes.end()}});
    };
    const size_t most = texts.Below(8) == 0 ? texts.Below(5) : SIZE_MAX;
    size_t asked = 0;
    const auto go_on = [&](const EventsAhead::Reached& reached) {
      EXPECT_LE(seen.empty() ? 0 : seen.back().offset + seen.back().raw.size(), reached.next);
      EXPECT_LT(reached.next, reached.read_to);
      EXPECT_EQ(reached.read_to, head + reached.file_bytes);  // what is in `head` was read before
      return asked++ < most;
    };
    const EventsAhead::Rest rest = ahead.Run(text.substr(0, head), 0, visit, go_on);
    // What is left is the text's own end, and what was read of it.
    ASSERT_LE(rest.offset + rest.bytes.size(), text.size());
    EXPECT_EQ(rest.bytes, text.substr(rest.offset, rest.bytes.size()));
    EXPECT_EQ(rest.offset + rest.bytes.size(), head + source.file_bytes_read());
    TraceBuilder by_one;
    const std::vector<Seen> expected = OneByOne(text, seen.size(), by_one);
    ASSERT_EQ(seen.size(), expected.size());
    for (size_t i = 0; i < seen.size(); ++i) {
      ASSERT_TRUE(seen[i] == expected[i]) << "seed " << seed << ", event " << i;
    }
    if (!seen.empty()) {
      EXPECT_GE(rest.offset, seen.back().offset + seen.back().raw.size());
    }
    const StringTable& strings = builder.trace().strings;
    ASSERT_EQ(strings.size(), by_one.trace().strings.size()) << "seed " << seed;
    for (uint32_t id = 0; id < strings.size(); ++id) {
      ASSERT_EQ(strings.View(StringId{id}), by_one.trace().strings.View(StringId{id}));
    }
    all += seen.size();
    irregular += rest.is_irregular ? 1 : 0;
  }
  EXPECT_GT(all, 10'000u);
  EXPECT_GT(irregular, 50u);
}

TEST(EventsAhead, AnErrorOfTheCallerEndsIt) {
  Texts texts(1);
  const std::string text = texts.List(500, 0);
  TextSource source(text, 1000);
  TraceBuilder builder;
  EventsAhead ahead(source, builder, 3, 2000);
  const auto nothing = [](const EventsAhead::Parsed&) {};
  EXPECT_THROW((void)ahead.Run("", 0, nothing,
                               [](const EventsAhead::Reached& reached) {
                                 if (reached.next > 20'000) throw std::runtime_error("called off");
                                 return true;
                               }),
               std::runtime_error);
}

// Whichever thread was reading.
TEST(EventsAhead, AnErrorOfTheSourceIsTheCallers) {
  class Failing : public TextSource {
   public:
    using TextSource::TextSource;
    size_t Read(char* out, size_t capacity) override {
      if (file_bytes_read() > 50'000) throw std::bad_alloc();
      return TextSource::Read(out, capacity);
    }
  };
  Texts texts(1);
  const std::string text = texts.List(500, 0);
  for (const size_t threads : {1, 2, 4}) {
    for (int round = 0; round < 50; ++round) {
      Failing source(text, 1000);
      TraceBuilder builder;
      EventsAhead ahead(source, builder, threads, 2000);
      const auto visit = [](const EventsAhead::Parsed&) {};
      const auto go_on = [](const EventsAhead::Reached&) { return true; };
      EXPECT_THROW((void)ahead.Run("", 0, visit, go_on), std::bad_alloc);
    }
  }
}

// All that a trace holds, a line each; strings by their numbers.
std::string Everything(const Trace& trace) {
  std::string all = fmt::format("{} strings, extent {} {}\n", trace.strings.size(),
                                trace.extent.begin.ns, trace.extent.end.ns);
  for (const QualityItem& item : trace.quality.items()) {
    all += fmt::format("{} {} {}\n", item.kind, item.count, item.detail);
  }
  ForEachTable(trace, [&](Table number, const EventColumns& table) {
    for (uint32_t row = 0; row < table.size(); ++row) {
      all += fmt::format("{} {} {} {} {}", static_cast<int>(number), Index(table.track[row]),
                         table.begin[row].ns, table.end(row).ns, Index(table.name[row]));
      trace.args.ForEach(table.args[row], [&](const Arg& arg) {
        all += fmt::format(" {}={},{},{},{}", Index(arg.key), static_cast<int>(arg.value.type),
                           Index(arg.value.text), arg.value.integer, arg.value.real);
      });
      all += "\n";
    }
  });
  return all;
}

// Files large enough that they are read ahead, whole ones and such as are not regular somewhere, or everywhere.
TEST(EventsAhead, AFileIsTheSameOnAnyNumberOfThreads) {
  for (const size_t odd : {0, 0, 1, 1, 1, 200}) {
    static uint64_t seed = 0;
    Texts texts(++seed);
    std::string text = R"({"schemaVersion": 1, "traceEvents": [)" + texts.List(25'000, odd);
    if (odd == 0) text += texts.Event();
    text += R"(], "displayTimeUnit": "ms"})";
    if (seed == 2) text.resize(text.size() / 2);
    const TemporaryFile file("trace.json", text);
    const auto with = [&](size_t threads) {
      ImportOptions options;
      options.threads = threads;
      const Result<Trace> trace = ImportTrace(file.path(), options);
      return trace.ok() ? Everything(trace.value()) : trace.error();
    };
    const std::string expected = with(1);
    EXPECT_GT(expected.size(), 600'000u);
    for (const size_t threads : {2, 4}) {
      const std::string got = with(threads);
      EXPECT_TRUE(got == expected) << FirstDifference(expected, got);
    }
  }
}

}  // namespace
}  // namespace trainprof
