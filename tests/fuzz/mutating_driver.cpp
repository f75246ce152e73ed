// A main() for fuzz targets where the compiler has no libFuzzer: mutates the seeds at random for
// FUZZ_SECONDS (default 1), FUZZ_SEED gives another sequence. The input at work is kept in
// fuzz-last-input, to look at after a crash.
//
// usage: <target> SEED_FILE_OR_FOLDER...
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <string_view>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

constexpr std::string_view kTokens[] = {"{",
                                        "}",
                                        "[",
                                        "]",
                                        ",",
                                        ":",
                                        "\"",
                                        "\\",
                                        "\\u",
                                        "\\ud83d",
                                        "1e999",
                                        "-",
                                        "NaN",
                                        "N/A",
                                        "\n",
                                        "\xFF",
                                        "null",
                                        "true",
                                        "0.5",
                                        "\"ph\":",
                                        "\"X\"",
                                        "\"ts\":",
                                        "\"ts\":0",
                                        "\"dur\":-1",
                                        "\"args\":{",
                                        "\"pid\":\"a\"",
                                        "9223372036854775807",
                                        "4000000000000000"};

std::vector<std::string> Seeds(int argc, char** argv) {
  std::vector<std::string> seeds;
  const auto add = [&](const std::filesystem::path& path) {
    std::ifstream file(path, std::ios::binary);
    seeds.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  };
  for (int i = 1; i < argc; ++i) {
    if (std::filesystem::is_directory(argv[i])) {
      for (const auto& entry : std::filesystem::directory_iterator(argv[i])) add(entry.path());
    } else {
      add(argv[i]);
    }
  }
  return seeds;
}

class Mutator {
 public:
  Mutator(std::vector<std::string> seeds, uint32_t seed)
      : seeds_(std::move(seeds)), random_(seed) {}

  std::string Next() {
    std::string text = seeds_[Below(seeds_.size())];
    for (size_t edits = 1 + Below(6); edits > 0; --edits) Edit(text);
    return text;
  }

 private:
  size_t Below(size_t n) { return n == 0 ? 0 : random_() % n; }

  void Edit(std::string& text) {
    const size_t at = Below(text.size());
    const std::string_view token = kTokens[Below(std::size(kTokens))];
    const std::string& other = seeds_[Below(seeds_.size())];
    switch (Below(6)) {
      case 0:
        text.erase(at, Below(30));
        break;
      case 1:
        text.insert(at, token);
        break;
      case 2:
        text.replace(at, Below(8), token);
        break;
      case 3:
        if (!text.empty()) text[at] = static_cast<char>(random_());
        break;
      case 4: {
        const size_t from = Below(other.size());
        text.insert(at, other, from, Below(200));
        break;
      }
      default:
        text.resize(at);
    }
  }

  std::vector<std::string> seeds_;
  std::mt19937 random_;
};

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> seeds = Seeds(argc, argv);
  if (seeds.empty()) {
    std::fprintf(stderr, "usage: %s SEED_FILE_OR_FOLDER...\n", argv[0]);
    return 2;
  }
  const char* wanted = std::getenv("FUZZ_SECONDS");
  const double seconds = wanted != nullptr ? std::atof(wanted) : 1.0;
  const char* seed = std::getenv("FUZZ_SEED");
  Mutator mutator(std::move(seeds), seed != nullptr ? static_cast<uint32_t>(std::atoi(seed)) : 1);
  const auto start = std::chrono::steady_clock::now();
  long runs = 0;
  double passed = 0;
  for (; passed < seconds; ++runs) {
    const std::string input = mutator.Next();
    std::ofstream("fuzz-last-input", std::ios::binary) << input;
    LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(input.data()), input.size());
    passed = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }
  std::remove("fuzz-last-input");
  std::printf("%ld inputs in %.1f s\n", runs, passed);
  return 0;
}
