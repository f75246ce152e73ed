// Structured payloads of NVTX's extension as arguments of their event, named as the program named
// their fields: NCCL's message sizes, ranks and communicators come this way.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "trace/build/trace_builder.h"
#include "trace/recording/wire/payload_types.h"

namespace trainprof::recording {

class PayloadDecoder {
 public:
  // Both must outlive it.
  PayloadDecoder(const PayloadTypes& types, TraceBuilder& builder)
      : types_(types), builder_(builder) {}

  // Appends what one payload of an event in `domain` says. The work is bounded whatever the bytes
  // and schemas are; what cannot be read is counted in the trace's quality (see FORMAT.md).
  void Decode(uint32_t domain, uint64_t schema, std::string_view bytes, std::vector<Arg>& args);

 private:
  // A structure while it is read.
  struct Scope {
    std::string_view bytes;  // from its beginning
    std::string prefix;      // of its fields' names
    int depth = 0;
    size_t at = 0;                                // where the last field ended
    bool hidden = false;                          // the present field is not to be shown
    std::vector<std::optional<uint64_t>> values;  // of the fields so far: those of integers
  };

  // They leave scope.at behind what they read; false: nobody knows where that ends.
  bool ReadFields(Scope& scope, const PayloadSchema& schema);
  bool ReadField(Scope& scope, const PayloadField& field, const std::string& name);
  bool ReadOne(Scope& scope, uint64_t type, const std::string& name);
  bool ReadArray(Scope& scope, const PayloadField& field, const std::string& name);
  bool ReadNumbers(Scope& scope, uint64_t type, const std::string& name, uint64_t length);
  bool ReadText(Scope& scope, const std::string& name, uint64_t length, uint32_t unit_bytes);
  bool ReadNested(Scope& scope, const PayloadTypeKey& key, const std::string& name);
  bool ReadRepeated(Scope& scope, const PayloadTypeKey& key, const std::string& name,
                    uint64_t length);

  std::optional<uint64_t> LengthOf(const Scope& scope, const PayloadField& field) const;
  uint32_t AlignmentOf(const PayloadField& field);
  uint32_t AlignmentOf(const PayloadTypeKey& key, const PayloadSchema& schema);
  ArgValue NameOf(const PayloadEnum& type, uint64_t value);
  ArgValue NumberOf(uint64_t type, std::string_view bytes);
  bool Take(Scope& scope, uint64_t bytes, std::string_view* out);
  void Add(const Scope& scope, const std::string& name, const ArgValue& value);
  ArgValue TextValue(std::string_view text);
  bool Unread();
  bool Spend();  // false: this payload has taken enough

  const PayloadTypes& types_;
  TraceBuilder& builder_;
  std::map<PayloadTypeKey, uint32_t> alignments_;  // of schemas
  int alignment_depth_ = 0;
  // Of the present payload.
  uint32_t domain_ = 0;
  std::vector<Arg>* args_ = nullptr;
  uint64_t budget_ = 0;
  bool malformed_ = false;
};

}  // namespace trainprof::recording
