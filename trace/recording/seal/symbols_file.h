// <segment>.symbols.json: what the addresses in a segment's stacks stand for, found on the machine
// that recorded it. FORMAT.md describes it.
#pragma once

#include <chrono>
#include <filesystem>
#include <vector>

#include "trace/base/result.h"
#include "trace/recording/segments/segment_scan.h"
#include "trace/symbols/symbolizer.h"

namespace trainprof::recording {

// One a module of the scan, in its order, with the addresses of all stacks as keys. An address is
// that of the byte before a return address: it lies in the call.
std::vector<ModuleSymbols> AddressesOf(const SegmentScan& scan);

// The module of scan.modules that a return address lies in, and the key there. False: in none.
bool PlaceOf(const SegmentScan& scan, uint64_t return_address, size_t* module, uint64_t* key);

// Fills in what the file beside the segment knows. Without it, or where it is damaged: nothing.
// Returns why it cannot be read where it is there, or "".
std::string ReadSymbols(const std::filesystem::path& segment, std::vector<ModuleSymbols>& modules);

// Symbolises the stacks of all segments of a run that were recorded on this machine since its last
// boot and writes the files, until `deadline`; what is not done by then is looked up by readers,
// where the program's files are at hand. May be called again.
Result<void> SymbolizeRecording(const std::filesystem::path& run_dir,
                                std::chrono::steady_clock::time_point deadline);

}  // namespace trainprof::recording
