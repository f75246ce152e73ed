// The NVTX injection: NVTX's header loads this library when the program first uses NVTX and
// NVTX_INJECTION64_PATH names it, and calls InitializeInjectionNvtx2, which puts our functions into
// NVTX's tables. Each library that embeds NVTX does so separately: the call may come many times.
#define NVTX_NO_IMPL  // the types alone: this is a tool, not a program that uses NVTX
#include <nvtx3/nvToolsExt.h>

#include "collectors/core/registry.h"
#include "collectors/core/thread_writer.h"
#include "collectors/nvtx/payloads.h"
#include "collectors/nvtx/wide_text.h"
#include "collectors/python/late_start.h"
#include "collectors/python/name_sites.h"

namespace trainprof::collectors {
namespace {

static_assert(NVTX_PAYLOAD_TYPE_UNSIGNED_INT64 ==
              static_cast<int>(recording::PayloadType::kUint64));
static_assert(NVTX_PAYLOAD_TYPE_INT64 == static_cast<int>(recording::PayloadType::kInt64));
static_assert(NVTX_PAYLOAD_TYPE_DOUBLE == static_cast<int>(recording::PayloadType::kDouble));
static_assert(NVTX_PAYLOAD_TYPE_UNSIGNED_INT32 ==
              static_cast<int>(recording::PayloadType::kUint32));
static_assert(NVTX_PAYLOAD_TYPE_INT32 == static_cast<int>(recording::PayloadType::kInt32));
static_assert(NVTX_PAYLOAD_TYPE_FLOAT == static_cast<int>(recording::PayloadType::kFloat));

// Runs `record` with this thread's writer, or gives `otherwise`.
template <class Result, class Record>
Result WithWriter(Result otherwise, Record record) {
  ThreadWriter* writer = ThreadWriter::Enter();
  if (writer == nullptr) [[unlikely]] {
    return otherwise;
  }
  const Result result = record(*writer);
  writer->Leave();
  return result;
}

const Domain* DomainOf(nvtxDomainHandle_t handle) {
  return handle == nullptr ? DefaultDomain() : reinterpret_cast<const Domain*>(handle);
}

// Programs compiled against an older NVTX hand over a shorter structure.
#define TRAINPROF_HAS(event, field) \
  ((event)->size >= offsetof(nvtxEventAttributes_t, field) + sizeof((event)->field))

// A structure of longer than this is none that says what an event is about.
constexpr size_t kMostStructureBytes = 1024;

// The first of the event's structured payloads, of the kind that NCCL gives its sizes and ranks in.
void ReadStructure(const nvtxEventAttributes_t* event, Attributes* result) {
  if (static_cast<uint32_t>(event->payloadType) != kPayloadExtension || event->reserved0 == 0 ||
      event->payload.ullValue == 0) {
    return;
  }
  const auto& data = *reinterpret_cast<const PayloadData*>(event->payload.ullValue);
  if (data.bytes > kMostStructureBytes || data.structure == nullptr) return;
  result->schema = data.schema;
  result->structure = data.structure;
  result->structure_bytes = static_cast<uint32_t>(data.bytes);
}

Attributes AttributesOf(const nvtxEventAttributes_t* event) {
  Attributes result;
  if (TRAINPROF_HAS(event, category)) result.category = event->category;
  if (TRAINPROF_HAS(event, color) && event->colorType == NVTX_COLOR_ARGB) {
    result.color_type = NVTX_COLOR_ARGB;
    result.color = event->color;
  }
  if (!TRAINPROF_HAS(event, payload)) return result;
  switch (event->payloadType) {
    case NVTX_PAYLOAD_TYPE_UNSIGNED_INT64:
    case NVTX_PAYLOAD_TYPE_INT64:
    case NVTX_PAYLOAD_TYPE_DOUBLE:
      result.payload = event->payload.ullValue;
      break;
    case NVTX_PAYLOAD_TYPE_UNSIGNED_INT32:
    case NVTX_PAYLOAD_TYPE_INT32:
    case NVTX_PAYLOAD_TYPE_FLOAT:
      result.payload = event->payload.uiValue;
      break;
    default:
      ReadStructure(event, &result);
      return result;
  }
  result.payload_type = static_cast<uint8_t>(event->payloadType);
  return result;
}

// Calls use(name) with the event's message: a zero-terminated string or a Text.
template <class Use>
auto WithMessage(const nvtxEventAttributes_t* event, Use use) {
  if (TRAINPROF_HAS(event, message)) {
    switch (event->messageType) {
      case NVTX_MESSAGE_TYPE_ASCII:
        if (event->message.ascii != nullptr) return use(event->message.ascii);
        break;
      case NVTX_MESSAGE_TYPE_UNICODE: {
        WideBuffer buffer;
        return use(MakeText(event->message.unicode, &buffer));
      }
      case NVTX_MESSAGE_TYPE_REGISTERED:
        if (event->message.registered != nullptr) {
          return use(*reinterpret_cast<const Text*>(event->message.registered));
        }
        break;
      default:
        break;
    }
  }
  return use(MakeText(""));
}

struct PushOp {
  static int Run(ThreadWriter& w, const Domain* d, const auto& name, const Attributes& a) {
    return w.Push(d, name, a);
  }
  static constexpr int kOtherwise = NVTX_NO_PUSH_POP_TRACKING;
};
struct StartOp {
  static nvtxRangeId_t Run(ThreadWriter& w, const Domain* d, const auto& name,
                           const Attributes& a) {
    return w.Start(d, name, a);
  }
  static constexpr nvtxRangeId_t kOtherwise = 0;
};
struct MarkOp {
  static int Run(ThreadWriter& w, const Domain* d, const auto& name, const Attributes& a) {
    w.Mark(d, name, a);
    return 0;
  }
  static constexpr int kOtherwise = 0;
};

template <class Op>
[[gnu::noinline]] auto RunNarrow(const char* text) {
  return WithWriter(Op::kOtherwise, [&](ThreadWriter& writer) {
    return Op::Run(writer, DefaultDomain(), text, Attributes{});
  });
}

template <class Op>
auto RunWide(const wchar_t* text) {
  return WithWriter(Op::kOtherwise, [&](ThreadWriter& writer) {
    WideBuffer buffer;
    return Op::Run(writer, DefaultDomain(), MakeText(text, &buffer), Attributes{});
  });
}

template <class Op>
auto RunEvent(nvtxDomainHandle_t domain, const nvtxEventAttributes_t* event) {
  return WithWriter(Op::kOtherwise, [&](ThreadWriter& writer) {
    if (event == nullptr) return Op::Run(writer, DomainOf(domain), MakeText(""), Attributes{});
    const Attributes attributes = AttributesOf(event);
    return WithMessage(event, [&](const auto& name) {
      return Op::Run(writer, DomainOf(domain), name, attributes);
    });
  });
}

void NVTX_API MarkA(const char* text) { RunNarrow<MarkOp>(text); }
void NVTX_API MarkW(const wchar_t* text) { RunWide<MarkOp>(text); }
void NVTX_API MarkEx(const nvtxEventAttributes_t* event) { RunEvent<MarkOp>(nullptr, event); }
void NVTX_API DomainMarkEx(nvtxDomainHandle_t domain, const nvtxEventAttributes_t* event) {
  RunEvent<MarkOp>(domain, event);
}

int NVTX_API RangePushA(const char* text) {
  int level;
  if (ThreadWriter::PushPlain(text, &level)) [[likely]] {
    return level;
  }
  return RunNarrow<PushOp>(text);
}
int NVTX_API RangePushW(const wchar_t* text) { return RunWide<PushOp>(text); }
int NVTX_API RangePushEx(const nvtxEventAttributes_t* event) {
  return RunEvent<PushOp>(nullptr, event);
}
int NVTX_API DomainRangePushEx(nvtxDomainHandle_t domain, const nvtxEventAttributes_t* event) {
  return RunEvent<PushOp>(domain, event);
}
[[gnu::noinline]] int NVTX_API DomainRangePop(nvtxDomainHandle_t domain) {
  return WithWriter<int>(NVTX_NO_PUSH_POP_TRACKING,
                         [&](ThreadWriter& writer) { return writer.Pop(DomainOf(domain)); });
}
int NVTX_API RangePop() {
  int level;
  if (ThreadWriter::PopPlain(&level)) [[likely]] {
    return level;
  }
  return DomainRangePop(nullptr);
}

nvtxRangeId_t NVTX_API RangeStartA(const char* text) { return RunNarrow<StartOp>(text); }
nvtxRangeId_t NVTX_API RangeStartW(const wchar_t* text) { return RunWide<StartOp>(text); }
nvtxRangeId_t NVTX_API RangeStartEx(const nvtxEventAttributes_t* event) {
  return RunEvent<StartOp>(nullptr, event);
}
nvtxRangeId_t NVTX_API DomainRangeStartEx(nvtxDomainHandle_t domain,
                                          const nvtxEventAttributes_t* event) {
  return RunEvent<StartOp>(domain, event);
}
void NVTX_API RangeEnd(nvtxRangeId_t id) {
  WithWriter(0, [&](ThreadWriter& writer) {
    writer.End(id);
    return 0;
  });
}
void NVTX_API DomainRangeEnd(nvtxDomainHandle_t, nvtxRangeId_t id) { RangeEnd(id); }

void NameCategory(nvtxDomainHandle_t domain, uint32_t category, const Text& name) {
  WithWriter(0, [&](ThreadWriter& writer) {
    writer.NameCategory(DomainOf(domain), category, name);
    return 0;
  });
}
void NVTX_API DomainNameCategoryA(nvtxDomainHandle_t domain, uint32_t category, const char* name) {
  NameCategory(domain, category, MakeText(name));
}
void NVTX_API DomainNameCategoryW(nvtxDomainHandle_t domain, uint32_t category,
                                  const wchar_t* name) {
  WideBuffer buffer;
  NameCategory(domain, category, MakeText(name, &buffer));
}
void NVTX_API NameCategoryA(uint32_t category, const char* name) {
  DomainNameCategoryA(nullptr, category, name);
}
void NVTX_API NameCategoryW(uint32_t category, const wchar_t* name) {
  DomainNameCategoryW(nullptr, category, name);
}

void NameThread(uint32_t tid, const Text& name) {
  WithWriter(0, [&](ThreadWriter& writer) {
    writer.NameThread(tid, name);
    return 0;
  });
}
void NVTX_API NameOsThreadA(uint32_t tid, const char* name) { NameThread(tid, MakeText(name)); }
void NVTX_API NameOsThreadW(uint32_t tid, const wchar_t* name) {
  WideBuffer buffer;
  NameThread(tid, MakeText(name, &buffer));
}

nvtxDomainHandle_t HandleOf(const Domain* domain) {
  if (domain == DefaultDomain()) return nullptr;
  return reinterpret_cast<nvtxDomainHandle_t>(const_cast<Domain*>(domain));
}
nvtxStringHandle_t HandleOf(const Text* text) {
  return reinterpret_cast<nvtxStringHandle_t>(const_cast<Text*>(text));
}
nvtxDomainHandle_t NVTX_API DomainCreateA(const char* name) {
  return HandleOf(RegisterDomain(MakeText(name)));
}
nvtxDomainHandle_t NVTX_API DomainCreateW(const wchar_t* name) {
  WideBuffer buffer;
  return HandleOf(RegisterDomain(MakeText(name, &buffer)));
}
void NVTX_API DomainDestroy(nvtxDomainHandle_t) {}  // other threads may still be using it
nvtxStringHandle_t NVTX_API DomainRegisterStringA(nvtxDomainHandle_t, const char* text) {
  return HandleOf(RegisterString(MakeText(text)));
}
nvtxStringHandle_t NVTX_API DomainRegisterStringW(nvtxDomainHandle_t, const wchar_t* text) {
  WideBuffer buffer;
  return HandleOf(RegisterString(MakeText(text, &buffer)));
}
// Resources name objects of other libraries (mutexes, streams); nothing of them is recorded.
nvtxResourceHandle_t NVTX_API DomainResourceCreate(nvtxDomainHandle_t, nvtxResourceAttributes_t*) {
  return nullptr;
}
void NVTX_API DomainResourceDestroy(nvtxResourceHandle_t) {}
void NVTX_API Initialize(const void*) {}

struct Slot {
  unsigned id;
  NvtxFunctionPointer function;
};
template <class Function>
NvtxFunctionPointer Erase(Function* function) {
  return reinterpret_cast<NvtxFunctionPointer>(function);
}

// False when this NVTX has no such module.
template <size_t N>
bool FillTable(const NvtxExportTableCallbacks* callbacks, NvtxCallbackModule module,
               const Slot (&slots)[N]) {
  NvtxFunctionTable table = nullptr;
  unsigned size = 0;
  if (callbacks->GetModuleFunctionTable(module, &table, &size) == 0 || table == nullptr) {
    return false;
  }
  for (const Slot& slot : slots) {
    // Older versions have shorter tables.
    if (slot.id < size && table[slot.id] != nullptr) *table[slot.id] = slot.function;
  }
  return true;
}

bool FillCore(const NvtxExportTableCallbacks* callbacks) {
  const Slot slots[] = {
      {NVTX_CBID_CORE_MarkEx, Erase(MarkEx)},
      {NVTX_CBID_CORE_MarkA, Erase(MarkA)},
      {NVTX_CBID_CORE_MarkW, Erase(MarkW)},
      {NVTX_CBID_CORE_RangeStartEx, Erase(RangeStartEx)},
      {NVTX_CBID_CORE_RangeStartA, Erase(RangeStartA)},
      {NVTX_CBID_CORE_RangeStartW, Erase(RangeStartW)},
      {NVTX_CBID_CORE_RangeEnd, Erase(RangeEnd)},
      {NVTX_CBID_CORE_RangePushEx, Erase(RangePushEx)},
      {NVTX_CBID_CORE_RangePushA, Erase(RangePushA)},
      {NVTX_CBID_CORE_RangePushW, Erase(RangePushW)},
      {NVTX_CBID_CORE_RangePop, Erase(RangePop)},
      {NVTX_CBID_CORE_NameCategoryA, Erase(NameCategoryA)},
      {NVTX_CBID_CORE_NameCategoryW, Erase(NameCategoryW)},
      {NVTX_CBID_CORE_NameOsThreadA, Erase(NameOsThreadA)},
      {NVTX_CBID_CORE_NameOsThreadW, Erase(NameOsThreadW)},
  };
  return FillTable(callbacks, NVTX_CB_MODULE_CORE, slots);
}

bool FillCore2(const NvtxExportTableCallbacks* callbacks) {
  const Slot slots[] = {
      {NVTX_CBID_CORE2_DomainMarkEx, Erase(DomainMarkEx)},
      {NVTX_CBID_CORE2_DomainRangeStartEx, Erase(DomainRangeStartEx)},
      {NVTX_CBID_CORE2_DomainRangeEnd, Erase(DomainRangeEnd)},
      {NVTX_CBID_CORE2_DomainRangePushEx, Erase(DomainRangePushEx)},
      {NVTX_CBID_CORE2_DomainRangePop, Erase(DomainRangePop)},
      {NVTX_CBID_CORE2_DomainResourceCreate, Erase(DomainResourceCreate)},
      {NVTX_CBID_CORE2_DomainResourceDestroy, Erase(DomainResourceDestroy)},
      {NVTX_CBID_CORE2_DomainNameCategoryA, Erase(DomainNameCategoryA)},
      {NVTX_CBID_CORE2_DomainNameCategoryW, Erase(DomainNameCategoryW)},
      {NVTX_CBID_CORE2_DomainRegisterStringA, Erase(DomainRegisterStringA)},
      {NVTX_CBID_CORE2_DomainRegisterStringW, Erase(DomainRegisterStringW)},
      {NVTX_CBID_CORE2_DomainCreateA, Erase(DomainCreateA)},
      {NVTX_CBID_CORE2_DomainCreateW, Erase(DomainCreateW)},
      {NVTX_CBID_CORE2_DomainDestroy, Erase(DomainDestroy)},
      {NVTX_CBID_CORE2_Initialize, Erase(Initialize)},
  };
  return FillTable(callbacks, NVTX_CB_MODULE_CORE2, slots);
}

}  // namespace
}  // namespace trainprof::collectors

// 1: injected. 0: the program goes on as if there were no tool.
extern "C" [[gnu::visibility("default")]] int InitializeInjectionNvtx2(
    NvtxGetExportTableFunc_t get_export_table) {
  using namespace trainprof::collectors;
  if (get_export_table == nullptr || !InstallRuntime()) return 0;
  const auto* callbacks =
      static_cast<const NvtxExportTableCallbacks*>(get_export_table(NVTX_ETID_CALLBACKS));
  if (callbacks == nullptr || callbacks->GetModuleFunctionTable == nullptr) return 0;
  StartHooksLate();
  WatchNames();
  const bool core = FillCore(callbacks);
  const bool core2 = FillCore2(callbacks);
  return core || core2 ? 1 : 0;
}
