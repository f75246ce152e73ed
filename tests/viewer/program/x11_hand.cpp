// What xdotool cannot do to a window: drop files on it as a file manager does (the XDND protocol,
// version 5), and say how fine the display is.
//
//   x11_hand drop WINDOW FILE...   ends once the window has taken the files (absolute paths)
//   x11_hand dpi N                 for programs that start from now on; 96 is a scale of 1
//
// Exit codes: 0 done, 1 the window refused or did not answer in time, 2 usage or no display.
#include <X11/Xatom.h>
#include <X11/Xlib.h>
#include <unistd.h>

#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

namespace {

constexpr unsigned kMostSeconds = 60;
constexpr long kVersion = 5;

class Dropper {
 public:
  Dropper(Display* display, Window target, std::string files)
      : display_(display),
        target_(target),
        files_(std::move(files)),
        own_(XCreateSimpleWindow(display, DefaultRootWindow(display), 0, 0, 1, 1, 0, 0, 0)) {
    XSetSelectionOwner(display_, Named("XdndSelection"), own_, CurrentTime);
  }

  // Whether the window took them.
  bool Drop() {
    const long uri_list = static_cast<long>(Named("text/uri-list"));
    Send("XdndEnter", kVersion << 24, uri_list, 0, 0);
    const long position = (100L << 16) | 100;  // of the screen
    Send("XdndPosition", 0, position, CurrentTime, static_cast<long>(Named("XdndActionCopy")));
    const bool accepted = (WaitFor("XdndStatus").data.l[1] & 1) != 0;
    if (!accepted) return false;
    Send("XdndDrop", 0, CurrentTime, 0, 0);
    // Bit 0 says so as well, but GLFW 3.3 sends how many bytes it read, odd or even.
    return WaitFor("XdndFinished").data.l[1] != 0;
  }

 private:
  Atom Named(const char* name) const { return XInternAtom(display_, name, False); }

  void Send(const char* message, long a, long b, long c, long d) {
    XEvent event{};
    event.xclient = {.type = ClientMessage,
                     .serial = 0,
                     .send_event = True,
                     .display = display_,
                     .window = target_,
                     .message_type = Named(message),
                     .format = 32,
                     .data = {}};
    const long data[] = {static_cast<long>(own_), a, b, c, d};
    for (int i = 0; i < 5; ++i) event.xclient.data.l[i] = data[i];
    XSendEvent(display_, target_, False, NoEventMask, &event);
    XFlush(display_);
  }

  // Hands the files over to whoever asks meanwhile.
  XClientMessageEvent WaitFor(const char* message) {
    while (true) {
      XEvent event{};
      XNextEvent(display_, &event);
      if (event.type == SelectionRequest) HandOver(event.xselectionrequest);
      if (event.type == ClientMessage && event.xclient.message_type == Named(message)) {
        return event.xclient;
      }
    }
  }

  void HandOver(const XSelectionRequestEvent& request) {
    XChangeProperty(display_, request.requestor, request.property, request.target, 8,
                    PropModeReplace, reinterpret_cast<const unsigned char*>(files_.data()),
                    static_cast<int>(files_.size()));
    XEvent event{};
    event.xselection = {.type = SelectionNotify,
                        .serial = 0,
                        .send_event = True,
                        .display = display_,
                        .requestor = request.requestor,
                        .selection = request.selection,
                        .target = request.target,
                        .property = request.property,
                        .time = request.time};
    XSendEvent(display_, request.requestor, False, NoEventMask, &event);
    XFlush(display_);
  }

  Display* display_;
  Window target_;
  std::string files_;
  Window own_;
};

std::string UriOf(std::string_view path) {
  std::string uri = "file://";
  for (const char c : path) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '/') {
      uri += c;
    } else {
      char escaped[4];
      std::snprintf(escaped, sizeof escaped, "%%%02X", static_cast<unsigned char>(c));
      uri += escaped;
    }
  }
  return uri + "\r\n";
}

void SetDpi(Display* display, const std::string& dpi) {
  const std::string resources = "Xft.dpi:\t" + dpi + "\n";
  XChangeProperty(display, DefaultRootWindow(display), XA_RESOURCE_MANAGER, XA_STRING, 8,
                  PropModeReplace, reinterpret_cast<const unsigned char*>(resources.data()),
                  static_cast<int>(resources.size()));
  XSync(display, False);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view command = argc > 1 ? argv[1] : "";
  Display* const display = XOpenDisplay(nullptr);
  if (display == nullptr) {
    std::fputs("x11_hand: no display\n", stderr);
    return 2;
  }
  if (command == "dpi" && argc == 3) {
    SetDpi(display, argv[2]);
    return 0;
  }
  if (command != "drop" || argc < 4) {
    std::fputs("usage: x11_hand drop WINDOW FILE... | x11_hand dpi N\n", stderr);
    return 2;
  }
  alarm(kMostSeconds);
  std::string files;
  for (int i = 3; i < argc; ++i) files += UriOf(argv[i]);
  return Dropper(display, std::strtoul(argv[2], nullptr, 0), files).Drop() ? 0 : 1;
}
