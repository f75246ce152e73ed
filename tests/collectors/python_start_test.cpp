// Why a Python process lacks our hooks, by what /proc shows of it.
#include "collectors/stacks/python_start.h"

#include <gtest/gtest.h>

#include "tests/support/scratch_folder.h"

namespace trainprof::testing {
namespace {

// A process as /proc shows it: words with a zero behind each, as `|` here.
class Process {
 public:
  Process(std::string command, std::string environment,
          const char* executable = "/opt/python3.11") {
    Write("cmdline", std::move(command));
    Write("environ", std::move(environment));
    std::filesystem::create_symlink(executable, folder_ / "exe");
  }
  void Map(const std::string& path) {
    Write("maps", "7f00-7f01 r-xp 00000000 08:01 12   " + path + "\n");
  }
  std::string Why(bool may_be_loaded = true) const {
    return WhyNoHooks(folder_.path(), may_be_loaded).value_or("");
  }

 private:
  void Write(const char* file, std::string text) const {
    for (char& c : text) c = c == '|' ? '\0' : c;
    WriteBytes(folder_ / file, {text.begin(), text.end()});
  }
  ScratchFolder folder_;
};

constexpr char kWhole[] =
    "HOME=/me|TRAINPROF_DIR=/run|TRAINPROF_PYTHON=/lib/trainprof-python|PYTHONPATH=/a:/lib/trainprof-python:/b|";

TEST(PythonStart, HidesNoHooksAsARule) {
  EXPECT_EQ(Process("python|train.py|", kWhole).Why(), "");
  EXPECT_EQ(Process("/env/bin/python3.11|-u|train.py|-S|", kWhole).Why(), "");
  EXPECT_EQ(Process("", "").Why(), "");  // it is ending
}

TEST(PythonStart, ByAnOptionHidesThem) {
  EXPECT_EQ(Process("python|-uS|train.py|", kWhole).Why(),
            "Python's -S keeps them out: start it without");
  EXPECT_EQ(
      Process("python|-I|train.py|", kWhole).Why(),
      "Python's -I keeps them out: start it without, or install trainprof there (pip install trainprof)");
}

TEST(PythonStart, WithoutOurEnvironmentHidesThem) {
  EXPECT_NE(Process("python|train.py|", "").Why().find("was emptied"), std::string::npos);
  EXPECT_NE(Process("python|train.py|", "HOME=/me|PATH=/bin|").Why().find("was emptied"),
            std::string::npos);
  EXPECT_NE(Process("python|train.py|",
                    "TRAINPROF_DIR=/run|TRAINPROF_PYTHON=/lib/trainprof-python|PYTHONPATH=/mine|")
                .Why()
                .find("PYTHONPATH was replaced"),
            std::string::npos);
}

TEST(PythonStart, IsUnknownWhereTheProcessWroteItsTitleOverIt) {
  EXPECT_EQ(Process("ray::worker|", "|||||").Why(), "");
  EXPECT_EQ(Process("ray::worker|", "d::worker|||PATH=/bin|").Why(), "");
}

TEST(PythonStart, InAnotherProgramHidesThemUnlessOurLibraryIsThere) {
  Process frozen("./train|", kWhole, "/me/train");
  frozen.Map("/usr/lib/libc.so.6");
  EXPECT_EQ(frozen.Why(false), "");
  EXPECT_NE(frozen.Why(true).find("the Python in train imports no sitecustomize"),
            std::string::npos);
  frozen.Map("/env/lib/libtrainprof_injection.so");
  EXPECT_EQ(frozen.Why(true), "");
}

}  // namespace
}  // namespace trainprof::testing
