// How far loading has come; why it ended early.
#include "viewer/panes/widgets.h"

namespace trainprof {

void DrawLoading(PaneContext& context) {
  State& state = context.state;
  if (!state.document) return;
  const LoadProgress progress = state.document->progress();
  if (!progress.error.empty()) return TextIn(context.theme.error, progress.error);
  if (progress.done) return;
  Text(progress.text);
  if (TextButton("cancel", "Cancel")) state.document->Cancel();
}

}  // namespace trainprof
