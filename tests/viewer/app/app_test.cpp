#include "viewer/app/app.h"

#include <gtest/gtest.h>

#include <fstream>
#include <functional>

#include "tests/viewer/open_job.h"
#include "tests/viewer/text_finder.h"
#include "viewer/app/imgui_compat.h"
#include "viewer/state/actions.h"

namespace trainprof::testing {
namespace {

namespace fs = std::filesystem;

// The whole window without a display: an ImGui context without a backend.
class WholeWindow {
 public:
  explicit WholeWindow(State state, Goal goal = {}) : app_(state.settings, goal) {
    ImGui::CreateContext();
    ImGuiIO& io = ImGui::GetIO();
    io.IniFilename = nullptr;
    io.BackendFlags |= ImGuiBackendFlags_RendererHasVtxOffset;
    io.DisplaySize = {1280, 720};
    io.DeltaTime = 0.05f;
#if IMGUI_VERSION_NUM < 18700
    io.KeyMap[ImGuiKey_Escape] = keys::kEscape;
#endif
    app_.state() = std::move(state);
    Frames(3);
  }
  ~WholeWindow() { ImGui::DestroyContext(); }

  float display_scale = 1;

  App& app() { return app_; }
  State& state() { return app_.state(); }

  void Frames(int count = 1) {
    for (int i = 0; i < count; ++i) {
      if (app_.Prepare(display_scale)) {
        unsigned char* pixels = nullptr;
        int width = 0;
        int height = 0;
        ImGui::GetIO().Fonts->GetTexDataAsAlpha8(&pixels, &width, &height);
      }
      ImGui::NewFrame();
      app_.Frame();
      ImGui::Render();
    }
  }

  void Press(Key key, bool ctrl = false, bool shift = false) {
    Set(key, ctrl, shift, true);
    Frames();
    Set(key, false, false, false);
    Frames();
  }
  void Press(char letter, bool ctrl = false, bool shift = false) {
    Press(static_cast<Key>(letter - 'A' + 1), ctrl, shift);
  }
  void Move(ImVec2 to) {
    ImGuiIO& io = ImGui::GetIO();
#if IMGUI_VERSION_NUM < 18700
    io.MousePos = to;
#else
    io.AddMousePosEvent(to.x, to.y);
#endif
    Frames(2);
  }
  void Type(char c) {
    ImGui::GetIO().AddInputCharacter(static_cast<unsigned>(c));
    Frames();
  }

 private:
  static void Set(Key key, bool ctrl, bool shift, bool down) {
    ImGuiIO& io = ImGui::GetIO();
#if IMGUI_VERSION_NUM < 18700
    io.KeysDown[ImGuiKeyOf(key)] = down;
    io.KeyCtrl = ctrl;
    io.KeyShift = shift;
#else
    io.AddKeyEvent(ImGuiMod_Ctrl, ctrl);
    io.AddKeyEvent(ImGuiMod_Shift, shift);
    io.AddKeyEvent(ImGuiKeyOf(key), down);
#endif
  }

  App app_;
};

class AppTest : public ::testing::Test {
 protected:
  OpenJob job_;
  WholeWindow window_{std::move(job_.state())};
  State& state_ = window_.state();
};

TEST_F(AppTest, WAndSZoomAndAAndDMove) {
  ASSERT_TRUE(state_.HasLines());
  ShowStep(state_, 4);
  const Interval before = state_.view;
  window_.Press('W');
  const Interval closer = state_.view;
  EXPECT_LT(closer.Length().ns, before.Length().ns);
  window_.Press('D');
  EXPECT_GT(state_.view.begin, closer.begin);
  EXPECT_EQ(state_.view.Length(), closer.Length());
  window_.Press('A');
  window_.Press('S');
  EXPECT_GT(state_.view.Length().ns, closer.Length().ns);
}

TEST_F(AppTest, NGoesThroughThePlacesOfAFindingBothWays) {
  OpenFindingNumber(state_, 1);
  ASSERT_TRUE(state_.finding);
  window_.Press('N');
  EXPECT_EQ(state_.evidence, 1u);
  window_.Press('N', false, true);
  EXPECT_EQ(state_.evidence, 0u);
  window_.Press(Key::kBackspace);
  EXPECT_EQ(state_.evidence, 0u);
}

TEST_F(AppTest, NOpensTheFirstFindingOfAFreshFile) {
  ASSERT_FALSE(state_.finding);
  window_.Press('N');
  EXPECT_EQ(state_.finding, (FindingRef{0, 0}));
  EXPECT_EQ(state_.evidence, 0u);
}

TEST_F(AppTest, DigitsOpenFindings) {
  window_.Type('1');
  EXPECT_EQ(state_.finding, (FindingRef{0, 0}));
  window_.Type('9');
  EXPECT_NE(state_.message.find("no finding 9"), std::string::npos) << state_.message;
}

// Everything that a mouse reaches: a track and its events, a finding, a tab, a row of its table.
TEST_F(AppTest, NoMouseIsNeeded) {
  window_.Press(Key::kDown);
  ASSERT_TRUE(state_.keys.shown && state_.keys.line);
  const uint32_t first = *state_.keys.line;
  window_.Press(Key::kDown);
  EXPECT_NE(*state_.keys.line, first);
  EXPECT_EQ(state_.lines().lines()[*state_.keys.line].kind, LineKind::kThread);
  window_.Press(Key::kEnter);
  ASSERT_TRUE(state_.selected);
  EXPECT_EQ(state_.lines().LineOf(*state_.selected), *state_.keys.line);
  window_.Press('C');
  EXPECT_TRUE(state_.collapsed.contains(*state_.keys.line));
  const Interval before = state_.view;
  window_.Press(Key::kRight);
  EXPECT_GT(state_.view.begin, before.begin);
  window_.Press(Key::kLeft);

  window_.Press(Key::kTab);
  ASSERT_EQ(state_.keys.pane, KeyPane::kFindings);
  ASSERT_FALSE(state_.finding);
  window_.Press(Key::kEnter);
  EXPECT_EQ(state_.finding, (FindingRef{0, 0}));
  window_.Press(Key::kEnter);
  EXPECT_FALSE(state_.finding);

  window_.Press(Key::kTab);
  ASSERT_EQ(state_.keys.pane, KeyPane::kTables);
  window_.Press(Key::kEnter);
  ASSERT_TRUE(state_.selected);
  EXPECT_EQ(state_.lines().NameOf(*state_.selected), "gemm_kernel");
  window_.Press(Key::kRight);
  EXPECT_EQ(state_.tab, Tab::kOps);
  window_.Press(Key::kPageDown);
  EXPECT_GT(state_.keys.row, 0u);
  window_.Press(Key::kUp);
  window_.Press(Key::kEnter);
  EXPECT_EQ(state_.selected->table, Table::kRanges);
  window_.Press(Key::kPageUp, true);
  EXPECT_EQ(state_.tab, Tab::kKernels);
  window_.Press(Key::kTab, false, true);
  EXPECT_EQ(state_.keys.pane, KeyPane::kFindings);
  window_.Press('L', true);
  EXPECT_EQ(std::string(ImGui::GetClipboardText()), ViewLink(state_));
  window_.Move({600, 300});
  window_.Move({620, 300});
  EXPECT_FALSE(state_.keys.shown) << "the mouse has it";
}

TEST_F(AppTest, PagesScrollTheTracks) {
  ImGui::GetIO().DisplaySize = {1280, 400};
  window_.Frames(3);
  window_.Press(Key::kPageDown);
  EXPECT_GT(state_.scroll, 0);
  window_.Press(Key::kPageUp);
  EXPECT_EQ(state_.scroll, 0);
}

TEST_F(AppTest, BackspaceShowsTheViewBefore) {
  ShowStep(state_, 3);
  const Interval third = state_.view;
  ShowStep(state_, 5);
  const Interval fifth = state_.view;
  window_.Press(Key::kBackspace);
  EXPECT_EQ(state_.view, third);
  window_.Press(Key::kBackspace, false, true);
  EXPECT_EQ(state_.view, fifth);
}

TEST_F(AppTest, PunctuationFollowsEventsAndLaunches) {
  window_.Type(',');
  EXPECT_EQ(state_.message, "No event is selected");
  state_.message.clear();
  window_.Type('[');
  EXPECT_EQ(state_.message, "No event is selected");
  RunSearch(state_, "gemm_kernel");
  ShowHit(state_, 1);
  ASSERT_TRUE(state_.selected);
  const EventRef first = *state_.selected;
  window_.Type('.');
  EXPECT_NE(*state_.selected, first);
  window_.Type(',');
  EXPECT_EQ(*state_.selected, first);
  window_.Type('[');
  EXPECT_EQ(state_.selected->table, Table::kApi) << "the call that launched it";
  window_.Type(']');
  EXPECT_EQ(*state_.selected, first);
}

TEST_F(AppTest, FZoomsToTheSelectedEventAndHomeShowsEverything) {
  RunSearch(state_, "gemm_kernel");
  ShowHit(state_, 1);
  ASSERT_TRUE(state_.selected);
  window_.Press('F');
  const Duration kernel = Nanoseconds(4'000'000);
  EXPECT_GE(state_.view.Length(), kernel);
  EXPECT_LT(state_.view.Length().ns, 2 * kernel.ns);
  window_.Press(Key::kHome);
  EXPECT_GE(state_.view.Length(), state_.lines().extent().Length());
}

TEST_F(AppTest, GAsksWhereToGo) {
  window_.Press('G');
  ASSERT_TRUE(state_.go_to_open);
  window_.Frames(2);
  EXPECT_TRUE(ShowsText("Go to"));
  window_.Press(Key::kEscape);
  EXPECT_FALSE(state_.go_to_open);
}

TEST_F(AppTest, BGoesFromBookmarkToBookmark) {
  window_.Press('B');
  EXPECT_NE(state_.message, "");
  ShowStep(state_, 2);
  window_.Press('M');
  const Interval second = state_.view;
  ShowStep(state_, 8);
  window_.Press('M');
  ASSERT_EQ(state_.bookmarks.size(), 2u);
  const TraceTime first_mark = state_.bookmarks[0].at;
  window_.Press('B', false, true);
  EXPECT_TRUE(state_.view.Contains(first_mark));
  EXPECT_EQ(state_.view.Length(), second.Length());
  window_.Press('B');
  EXPECT_TRUE(state_.view.Contains(state_.bookmarks[1].at));
  EXPECT_FALSE(state_.view.Contains(first_mark));
}

TEST_F(AppTest, CFoldsTheTrackUnderTheMouse) {
  window_.Press('C');
  EXPECT_NE(state_.message, "") << "the mouse is over no track";
  const auto track = FindText("GPU 0", 1);  // the first is the ribbon's
  ASSERT_TRUE(track);
  window_.Move({800, track->middle().y});
  ASSERT_TRUE(state_.hovered_line);
  const uint32_t line = *state_.hovered_line;
  window_.Press('C');
  EXPECT_TRUE(state_.collapsed.contains(line));
  window_.Press('C');
  EXPECT_FALSE(state_.collapsed.contains(line));
}

TEST_F(AppTest, CtrlRReadsTheFileAgain) {
  const std::weak_ptr<Document> before = state_.document;
  const fs::path path = state_.document->path();
  window_.Press('R', true);
  WaitForAll(state_);
  EXPECT_NE(before.lock(), state_.document);
  EXPECT_EQ(state_.document->path(), path);
  EXPECT_TRUE(state_.HasLines());
}

TEST_F(AppTest, F3GoesFromHitToHit) {
  window_.Press(Key::kF3);
  EXPECT_EQ(state_.message, "Nothing is searched for");
  RunSearch(state_, "gemm_kernel");
  window_.Press(Key::kF3);
  ASSERT_TRUE(state_.selected);
  const EventRef first = *state_.selected;
  window_.Press(Key::kF3);
  EXPECT_NE(*state_.selected, first);
  window_.Press(Key::kF3, false, true);
  EXPECT_EQ(*state_.selected, first);
}

TEST_F(AppTest, MMakesABookmarkAndTakesItAway) {
  window_.Press('M');
  ASSERT_EQ(state_.bookmarks.size(), 1u);
  window_.Press('M');
  EXPECT_TRUE(state_.bookmarks.empty());
}

TEST_F(AppTest, PPinsTheTrackOfTheSelectedEvent) {
  window_.Press('P');
  EXPECT_NE(state_.message, "");
  RunSearch(state_, "gemm_kernel");
  ShowHit(state_, 1);
  ASSERT_TRUE(state_.selected);
  window_.Press('P');
  EXPECT_TRUE(state_.pinned.contains(state_.lines().LineOf(*state_.selected)));
}

TEST_F(AppTest, KeysWithCtrlAskAndSwitch) {
  window_.Press('O', true);
  EXPECT_TRUE(state_.open_prompt);
  state_.open_prompt = false;
  window_.Frames(2);
  window_.Type('?');
  EXPECT_TRUE(state_.help_open);
  window_.Press(Key::kEscape);
  EXPECT_FALSE(state_.help_open);
  window_.Press('T');
  EXPECT_EQ(state_.settings.theme, ThemeName::kLight);
  EXPECT_EQ(window_.app().theme().name, ThemeName::kLight);
  window_.Press('Q', true);
  EXPECT_TRUE(state_.quit);
}

TEST_F(AppTest, WhileATextIsWrittenLettersAreText) {
  window_.Press('F', true);
  window_.Frames(3);
  ASSERT_TRUE(ImGui::GetIO().WantTextInput) << "Ctrl+F goes to the search";
  const Interval before = state_.view;
  window_.Press('W');
  window_.Press('T');
  EXPECT_EQ(state_.view, before);
  EXPECT_EQ(state_.settings.theme, ThemeName::kDark);
}

TEST_F(AppTest, WhileASearchIsWrittenF3GoesOn) {
  RunSearch(state_, "gemm_kernel");
  ShowHit(state_, 1);
  ASSERT_TRUE(state_.selected);
  const EventRef first = *state_.selected;
  window_.Press('F', true);
  window_.Frames(3);
  ASSERT_TRUE(ImGui::GetIO().WantTextInput);
  window_.Press(Key::kF3);
  EXPECT_NE(*state_.selected, first);
  window_.Press(Key::kF3, false, true);
  EXPECT_EQ(*state_.selected, first);
}

TEST(App, AGoalIsShownOnceAllIsLoaded) {
  OpenJob job;
  State state = std::move(job.state());
  WholeWindow window(std::move(state), {.step = 5, .finding = 1});
  EXPECT_EQ(window.app().goal_error(), "");
  EXPECT_TRUE(window.state().finding);
  EXPECT_EQ(StepInView(window.state()), 5);
}

TEST(App, AGoalThatIsNotThereSaysSo) {
  OpenJob job;
  WholeWindow window(std::move(job.state()), {.step = 500, .finding = {}});
  EXPECT_NE(window.app().goal_error().find("no step 500"), std::string::npos);
}

TEST(App, FollowsTheScaleOfItsDisplayAndOfItsUser) {
  WholeWindow window{State{}};
  const float size = ImGui::GetFontSize();
  window.display_scale = 2;
  window.Frames(2);
  EXPECT_EQ(window.app().theme().scale, 2);
  EXPECT_EQ(ImGui::GetFontSize(), 2 * size);
  window.state().settings.scale = 1.5f;
  window.Frames(2);
  EXPECT_EQ(ImGui::GetFontSize(), 1.5f * size);
}

TEST(App, OpensWhatIsDroppedOnIt) {
  const ScratchFolder folder;
  const fs::path path = WriteJob(folder.path(), {kLoaderBoundScript});
  WholeWindow window{State{}};
  window.app().Drop({});
  EXPECT_EQ(window.state().document, nullptr);
  window.app().Drop(std::vector{path});
  WaitForAll(window.state());
  window.Frames(2);
  EXPECT_TRUE(window.state().HasLines());
  EXPECT_EQ(window.state().settings.recent, std::vector{path});
  EXPECT_EQ(window.state().message, "");
}

TEST(App, OpensTheFirstOfSeveralThatAreDroppedAndSaysSo) {
  const ScratchFolder folder;
  const fs::path path = WriteJob(folder.path(), {kLoaderBoundScript});
  OpenJob before;
  WholeWindow window(std::move(before.state()));
  SelectRange(window.state(), window.state().lines().extent());
  window.app().Drop(std::vector{path, folder / "other.json", folder / "third.json"});
  EXPECT_EQ(window.state().document->path(), path);
  EXPECT_NE(window.state().message.find("first of 3"), std::string::npos);
  EXPECT_FALSE(window.state().range) << "it was of the job that was open before";
}

TEST(App, SaysWhyWhatWasDroppedCannotBeOpened) {
  const ScratchFolder folder;
  std::ofstream(folder / "notes.txt") << "no trace";
  WholeWindow window{State{}};
  window.app().Drop(std::vector{folder / "notes.txt"});
  WaitForAll(window.state());
  window.Frames(2);
  EXPECT_TRUE(ShowsText("This could not be opened"));
  EXPECT_TRUE(ShowsText("not a trace that trainprof knows"));
}

// Of six ranks, whatever of them is there.
TEST(App, MayEndAtAnyTimeWhileItLoads) {
  const ScratchFolder folder;
  WriteJob(folder.path(), std::vector(6, kLoaderBoundScript));
  for (int frames = 0; frames < 12; ++frames) {
    WholeWindow window{State{}};
    window.app().Drop(std::vector{folder.path()});
    window.Frames(frames);
    window.Press('Q', true);
    EXPECT_TRUE(window.state().quit);
  }
}

TEST(App, OfATraceWithoutEventsEveryKeyIsHarmless) {
  const ScratchFolder folder;
  std::ofstream(folder / "empty.json") << R"({"traceEvents": []})";
  WholeWindow window{State{}};
  window.app().Drop(std::vector{folder / "empty.json"});
  WaitForAll(window.state());
  window.Frames(3);
  EXPECT_TRUE(ShowsText("there is no event in this trace"));
  for (const char letter : std::string("WASDFGNPCMBT")) {
    window.Press(letter);
    window.Press(Key::kEscape);
  }
  for (const char c : std::string(",.[]??")) window.Type(c);
  for (const Key key :
       {Key::kHome, Key::kBackspace, Key::kF3, Key::kTab, Key::kUp, Key::kDown, Key::kEnter,
        Key::kPageUp, Key::kPageDown, Key::kTab, Key::kDown, Key::kEnter, Key::kPageDown, Key::kTab,
        Key::kDown, Key::kEnter, Key::kPageDown, Key::kLeft, Key::kRight})
    window.Press(key);
  EXPECT_TRUE(ShowsText("there is no event in this trace"));
}

TEST(App, StartsWithNothingOpen) {
  WholeWindow window{State{}};
  EXPECT_TRUE(window.app().Idle());
  window.Press('W');
  window.Press('N');
  window.Press('F');
  EXPECT_GT(ImGui::GetDrawData()->TotalVtxCount, 0);
}

}  // namespace
}  // namespace trainprof::testing
