// The names of the facts that a recording tells of its processes and machine: pairs of a name and a
// text, of one name the last counts. Trace::environment holds them (trace/tables/environment.h).
// Counts are decimal numbers, of one process, and absent while they are 0.
// Free of the C++ runtime: the in-process library includes it.
#pragma once

namespace trainprof::fact {

// Of a process that uses CUDA, written by the collector in it.

// What became of the recording of GPU work: kGpuRecording, or why there is none (any more).
inline constexpr char kCuptiState[] = "cupti.state";
// Its values where no GPU work is missing that the user wanted.
inline constexpr char kGpuRecording[] = "recording";
inline constexpr char kGpuOff[] = "off: ";  // begins it; the option that the user gave follows
// Another client of CUPTI in the process registered its own buffers and clock, and has not ended.
inline constexpr char kGpuTaken[] =
    "another profiler in this process has taken CUPTI over, as torch.profiler may";
inline constexpr char kGpuForked[] = "forked after CUDA init";  // is in it; no child can use CUDA

inline constexpr char kDriverVersion[] = "driver.version";  // "12.4": the CUDA that it serves
inline constexpr char kCuptiVersion[] = "cupti.version";    // "12.4 (22)": CUDA's, and CUPTI's own
inline constexpr char kCuptiPath[] = "cupti.path";          // the libcupti in use
// "subscriber" where other tools may record as well, by CUPTI's functions that name one.
inline constexpr char kCuptiScope[] = "cupti.scope";
inline constexpr char kCuptiCalls[] = "cupti.calls";      // which calls are traced, in words
inline constexpr char kCuptiGraphs[] = "cupti.graphs";    // "graph" or "node": what a row is
inline constexpr char kCuptiClock[] = "cupti.clock";      // where CUPTI does not take ours
inline constexpr char kCuptiBuffers[] = "cupti.buffers";  // where they are no file, or elsewhere
inline constexpr char kCuptiRefused[] = "cupti.refused";  // "CALL gives RESULT; ...": goes on
// The program waited so long: microseconds for finding a libcupti, and for all set-up.
inline constexpr char kCuptiAnswerUs[] = "cupti.answer_us";
inline constexpr char kCuptiSetupUs[] = "cupti.setup_us";
// What CUPTI may take of the GPU's memory, in words: "up to 102 MB of ...".
inline constexpr char kCuptiDeviceMemory[] = "cupti.device_memory";
// The longest that CUPTI held a record back, in milliseconds.
inline constexpr char kCuptiLargestUndeliveredMs[] = "cupti.largest_undelivered_ms";
// The longest that a call into CUPTI took, in milliseconds; absent where none took long.
inline constexpr char kCuptiLongestCallMs[] = "cupti.longest_call_ms";
// Why kernels stay switched on between two windows, in words; absent where they do not.
inline constexpr char kCuptiKeptOn[] = "cupti.kept_on";
inline constexpr char kCuptiNames[] = "cupti.names";  // where kernels may have those of others
// That CUPTI_ENABLE_HW_TRACE is set, and what it does in this version; absent where it is not.
inline constexpr char kCuptiHwTrace[] = "cupti.hw_trace";

// How often another profiler took CUPTI over without a word.
inline constexpr char kCuptiTaken[] = "cupti.taken_over";

// Counts of what was lost, or is odd.
inline constexpr char kCuptiDropped[] = "cupti.dropped";             // records, by CUPTI
inline constexpr char kCuptiUntimed[] = "cupti.untimed";             // records left out
inline constexpr char kCuptiInFlight[] = "cupti.in_flight_at_exit";  // under way then; no loss
inline constexpr char kCuptiUnderWay[] = "cupti.calls_at_exit";      // had not returned; no loss
inline constexpr char kCuptiMisdated[] = "cupti.misdated";           // by another's clock
inline constexpr char kCuptiUnreadableBytes[] = "cupti.unreadable_bytes";    // of its buffers
inline constexpr char kCuptiOverwrittenBytes[] = "cupti.overwritten_bytes";  // no buffer was free
inline constexpr char kCuptiRefusedBuffers[] = "cupti.refused_buffers";      // CUPTI asked in vain
inline constexpr char kCuptiReorderedBuffers[] = "cupti.reordered_buffers";  // after younger ones
inline constexpr char kCuptiNamelessKernels[] = "cupti.nameless_kernels";    // CUPTI has no name
inline constexpr char kCuptiRepeatedCallbacks[] = "cupti.repeated_callbacks";
inline constexpr char kCuptiStacksSkipped[] = "cupti.stacks_skipped";  // calls, to save time
// What taking one took of the thread, in ns: the median.
inline constexpr char kCuptiStackCostNs[] = "cupti.stack_cost_ns";
// Stacks above a frame of CUDA's that cannot be unwound.
inline constexpr char kCuptiStacksScanned[] = "cupti.stacks_scanned";
inline constexpr char kCuptiForks[] = "cupti.forks";  // children after CUDA's set-up
// Written by salvage, into the recording of a process that died.
inline constexpr char kCuptiSalvagedRows[] = "cupti.salvaged_rows";      // of its buffers
inline constexpr char kCuptiUnnamedKernels[] = "cupti.unnamed_kernels";  // their names died with it

// Of a process that trains with Python's torch, written by its hooks (collectors/python).

inline constexpr char kPythonVersion[] = "python.version";
inline constexpr char kTorchVersion[] = "torch.version";
// "NAME (ERROR); ...": what of torch could not be watched.
inline constexpr char kPythonUnwatched[] = "python.unwatched";
// "python.cell FILE": "In[3]", the notebook's cell that Python was given as this file, last.
inline constexpr char kPythonCell[] = "python.cell ";
// With --ops: nanoseconds that an operator takes longer because it is recorded.
inline constexpr char kOperatorCostNs[] = "ops.cost_ns";
// With --memory, of the process that steps: nanoseconds that this takes at the end of each step;
inline constexpr char kMemoryCostNs[] = "memory.cost_ns";
// the most memory that was resident, in bytes;
inline constexpr char kMemoryPeak[] = "memory.peak_resident";
// "FIRST LAST NS": the steps, from 1, at whose ends lines were looked for, and what that took;
inline constexpr char kMemoryWindow[] = "memory.window";
// what could not be seen, in words;
inline constexpr char kMemoryMissing[] = "memory.missing";
// "memory.kept N", the largest first: what a line keeps each step, with tabs between: "tensor",
// "graph" (of a tensor whose graph grows), "block" (of a device) or "python"; the device; bytes;
// how many; how many with a graph (of a graph: its nodes), all of a step; the variable; the line
// and its file; the same of the line that called it (0 where there is none).
inline constexpr char kMemoryKept[] = "memory.kept ";
// The settings of the DataLoader that feeds it, as torch names and prints them.
inline constexpr char kLoaderWorkers[] = "loader.workers";
inline constexpr char kLoaderBatchSize[] = "loader.batch_size";
inline constexpr char kLoaderPinMemory[] = "loader.pin_memory";
inline constexpr char kLoaderPrefetchFactor[] = "loader.prefetch_factor";
inline constexpr char kLoaderPersistentWorkers[] = "loader.persistent_workers";
inline constexpr char kLoaderSampler[] = "loader.sampler";
inline constexpr char kLoaderStartMethod[] = "loader.start_method";

// Of a machine, written by its host sampler, in words.

inline constexpr char kProcessor[] = "processor";  // "AMD EPYC 7763 64-Core Processor"
// "GPU 0": UUID and name; also kNotSampled and why, as of "GPU 0 power".
inline constexpr char kGpuPrefix[] = "GPU ";
inline constexpr char kMigMode[] = "MIG mode";  // ends it, behind a comma, of a GPU cut into slices
inline constexpr char kNotSampled[] = "not sampled: ";  // begins such a text; the cause follows
inline constexpr char kNvml[] = "NVML";                 // its library and version, or its absence
inline constexpr char kNvmlHang[] = "NVML hang";        // a call that does not return
inline constexpr char kHostSampler[] = "host sampler";  // what it cost
// What it cost, and how many stacks it read.
inline constexpr char kStackSampler[] = "stack sampler";
// "COMMAND: why": Python processes whose stacks cannot be read.
inline constexpr char kNoStacks[] = "no stacks";
// "no hooks PID": why a Python process that uses torch lacks our hooks, and what to do.
inline constexpr char kNoHooks[] = "no hooks ";
inline constexpr char kHostProcesses[] = "host processes";  // that some are not sampled
// "COMMAND (process PID)": what tells a process to record did not reach it.
inline constexpr char kWipedEnvironment[] = "wiped environment";

// Of a rank, added by the reader.

inline constexpr char kHost[] = "host";                           // its name
inline constexpr char kCores[] = "cores";                         // of the host, a count
inline constexpr char kRanksOnHost[] = "ranks on this host";      // a count
inline constexpr char kCommand[] = "command";                     // its first process's
inline constexpr char kProcesses[] = "processes";                 // that recorded, a count
inline constexpr char kRecordingOptions[] = "recording options";  // as layout.h spells them
inline constexpr char kClock[] = "clock";                         // which one, its error in ns

}  // namespace trainprof::fact
