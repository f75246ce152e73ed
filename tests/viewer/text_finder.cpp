#include "tests/viewer/text_finder.h"

#include <cmath>
#include <vector>

namespace trainprof::testing {
namespace {

// A rectangle with a piece of a texture: a glyph, or a filled rectangle.
struct Quad {
  ImVec2 min;
  ImVec2 max;
  ImVec2 uv;
  ImVec4 clip;
};

std::vector<Quad> QuadsOf(const ImDrawList& list) {
  std::vector<Quad> quads;
  for (const ImDrawCmd& command : list.CmdBuffer) {
    for (unsigned i = 0; i + 6 <= command.ElemCount; i += 6) {
      const ImDrawIdx* const index = list.IdxBuffer.Data + command.IdxOffset + i;
      const ImDrawVert* const vertex = list.VtxBuffer.Data + command.VtxOffset;
      const bool is_quad = index[3] == index[0] && index[4] == index[2];
      if (!is_quad) {
        i -= 3;  // a triangle of some shape
        continue;
      }
      const ImDrawVert& first = vertex[index[0]];
      quads.push_back({first.pos, vertex[index[2]].pos, first.uv, command.ClipRect});
    }
  }
  return quads;
}

bool Same(ImVec2 a, ImVec2 b) { return std::abs(a.x - b.x) < 1e-6F && std::abs(a.y - b.y) < 1e-6F; }

bool InClip(const Quad& quad) {
  const ImVec2 middle{(quad.min.x + quad.max.x) / 2, (quad.min.y + quad.max.y) / 2};
  return middle.x >= quad.clip.x && middle.x <= quad.clip.z && middle.y >= quad.clip.y &&
         middle.y <= quad.clip.w;
}

// The corners in the atlas of the text's glyphs; blanks are not drawn.
std::vector<ImVec2> GlyphsOf(ImFont& font, std::string_view text) {
  std::vector<ImVec2> glyphs;
  for (const char c : text) {
    const ImFontGlyph* const glyph = GlyphOf(font, static_cast<ImWchar>(c));
    if (glyph != nullptr && glyph->Visible) glyphs.push_back({glyph->U0, glyph->V0});
  }
  return glyphs;
}

bool StandsAt(const std::vector<Quad>& quads, size_t at, const std::vector<ImVec2>& glyphs) {
  if (at + glyphs.size() > quads.size()) return false;
  for (size_t g = 0; g < glyphs.size(); ++g) {
    if (!Same(quads[at + g].uv, glyphs[g])) return false;
  }
  return true;
}

}  // namespace

std::optional<FoundText> FindText(std::string_view text, int nth) {
  const ImDrawData* const data = ImGui::GetDrawData();
  for (int l = 0; l < data->CmdListsCount; ++l) {
    const std::vector<Quad> quads = QuadsOf(*data->CmdLists[l]);
    for (ImFont* const font : ImGui::GetIO().Fonts->Fonts) {
      const std::vector<ImVec2> glyphs = GlyphsOf(*font, text);
      for (size_t at = 0; at < quads.size(); ++at) {
        if (!StandsAt(quads, at, glyphs)) continue;
        const Quad& first = quads[at];
        const Quad& last = quads[at + glyphs.size() - 1];
        if (!InClip(first) || nth-- > 0) continue;
        return FoundText{first.min, last.max};
      }
    }
  }
  return std::nullopt;
}

int CutGlyphs() {
  int cut = 0;
  const ImDrawData* const data = ImGui::GetDrawData();
  const ImVec2 white = ImGui::GetIO().Fonts->TexUvWhitePixel;
  for (int l = 0; l < data->CmdListsCount; ++l) {
    for (const Quad& quad : QuadsOf(*data->CmdLists[l])) {
      const bool glyph = !Same(quad.uv, white);
      const float middle_x = (quad.min.x + quad.max.x) / 2;
      const float middle_y = (quad.min.y + quad.max.y) / 2;
      const bool on_line = middle_y >= quad.clip.y && middle_y <= quad.clip.w;
      if (glyph && on_line && middle_x > quad.clip.z) ++cut;
    }
  }
  return cut;
}

}  // namespace trainprof::testing
