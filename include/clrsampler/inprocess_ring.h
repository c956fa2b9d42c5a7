// The interface between the profiler library inside a .NET process and the agent: a ring of records in a memfd, and the
// message by which the agent hands it over. The one header that both sides include; nothing but fixed-width fields.
//
// The library writes records and the agent takes them out. Both have the memory mapped and writable, so neither may
// trust what it reads there: the agent least of all, since the target can write anything anywhere at any time.
//
// A record lies at a multiple of 8 bytes and never goes around the end. Its first word is written last: while it is 0,
// the record is not there yet. The agent fills the place of a record with zeros before it gives it back.
// Times are CLOCK_MONOTONIC nanoseconds. Thread numbers are those of the target's own pid namespace.
#ifndef CLRSAMPLER_INPROCESS_RING_H_
#define CLRSAMPLER_INPROCESS_RING_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace clrsampler
{

inline constexpr uint64_t kInprocessMagic = 0x32474e4952524c43; // "CLRRING2" in memory
inline constexpr size_t kInprocessHeaderBytes = 4096;
// The size of the part behind the header; a power of two.
inline constexpr uint64_t kMinInprocessCapacity = 64 << 10;
inline constexpr uint64_t kMaxInprocessCapacity = 1 << 30;

// At the front of the memory.
struct InprocessRingHeader {
	uint64_t magic;
	uint64_t capacity;
	// Bytes that were ever reserved by the library, and given back by the agent. Their difference is at most
	// `capacity`.
	alignas(64) std::atomic<uint64_t> reserved;
	alignas(64) std::atomic<uint64_t> returned;
	// Records for which there was no room.
	alignas(64) std::atomic<uint64_t> lost;
	// Methods whose maps were not sent, since a module was unloaded while maps of all methods were.
	std::atomic<uint64_t> left_out;
	// 1 from when the library runs. One that leaves before has refused to.
	std::atomic<uint64_t> runs;
};

static_assert(std::atomic<uint64_t>::is_always_lock_free && sizeof(std::atomic<uint64_t>) == 8);
static_assert(sizeof(InprocessRingHeader) <= kInprocessHeaderBytes);
static_assert(offsetof(InprocessRingHeader, reserved) == 64);
static_assert(offsetof(InprocessRingHeader, returned) == 128);
static_assert(offsetof(InprocessRingHeader, lost) == 192);
static_assert(offsetof(InprocessRingHeader, left_out) == 200);
static_assert(offsetof(InprocessRingHeader, runs) == 208);

// The kind of event. The names are those of ICorProfilerCallback. In brackets: values, then texts.
enum class InprocessKind : uint32_t {
	kPadding = 0,			// up to the end of the ring, since the next record did not fit there
	kThreadCreated = 1,		// [ThreadID]
	kThreadDestroyed = 2,		// [ThreadID]
	kThreadAssignedToOSThread = 3,	// [ThreadID, thread number]
	kThreadNameChanged = 4,		// [ThreadID] {name}
	kAssemblyLoadFinished = 5,	// [AssemblyID, HRESULT] {name}
	kAssemblyUnloadFinished = 6,	// [AssemblyID, HRESULT]
	kModuleLoadFinished = 7,	// [ModuleID, HRESULT, AssemblyID] {path}
	kModuleUnloadStarted = 8,	// [ModuleID, 0, AssemblyID] {path}
	kModuleUnloadFinished = 9,	// [ModuleID, HRESULT]
	kClassLoadFinished = 10,	// [ClassID, HRESULT] {type}
	kClassUnloadStarted = 11,	// [ClassID] {type}
	kJitCompilationStarted = 12,	// [FunctionID, ModuleID, token] {type, method}
	kJitCompilationFinished = 13,	// [FunctionID, ModuleID, token, HRESULT] {type, method}
	kDynamicMethodJitFinished = 14, // [FunctionID, 0, 0, HRESULT] {"", method}
	kDynamicMethodUnloaded = 15,	// [FunctionID]
	kFunctionUnloadStarted = 16,	// [FunctionID, ModuleID, token] {type, method}
	kExceptionThrown = 17,		// [ObjectID, ClassID] {type}
	// Exceptions, the pass that looks for a handler: [FunctionID, ModuleID, token] {type, method}, nothing in a
	// Leave.
	kExceptionSearchFunctionEnter = 18,
	kExceptionSearchFunctionLeave = 19,
	kExceptionSearchFilterEnter = 20,
	kExceptionSearchFilterLeave = 21,
	kExceptionSearchCatcherFound = 22,
	// And the pass that unwinds.
	kExceptionUnwindFunctionEnter = 23,
	kExceptionUnwindFunctionLeave = 24,
	kExceptionUnwindFinallyEnter = 25,
	kExceptionUnwindFinallyLeave = 26,
	kExceptionCatcherEnter = 27,
	kExceptionCatcherLeave = 28,
	kRuntimeSuspendStarted = 29,	 // [COR_PRF_SUSPEND_REASON]
	kRuntimeSuspendFinished = 30,	 // []
	kRuntimeSuspendAborted = 31,	 // []
	kRuntimeResumeStarted = 32,	 // []
	kRuntimeResumeFinished = 33,	 // []
	kRuntimeThreadSuspended = 34,	 // [ThreadID]
	kRuntimeThreadResumed = 35,	 // [ThreadID]
	kGarbageCollectionStarted = 36,	 // [oldest generation, COR_PRF_GC_REASON]
	kGarbageCollectionFinished = 37, // []
	kMovedReferences = 38,		 // [ranges, bytes in them]
	kObjectAllocated = 39,		 // [ObjectID, ClassID, bytes] {type}
	kModuleAttachedToAssembly = 40,	 // [ModuleID, AssemblyID]
	kILToNativeMap = 41,	       // [FunctionID, code start, entries in all] {"", entries}: InprocessMapEntry each
	kDynamicMethodJitStarted = 42, // [FunctionID] {"", method}
	kCount = 43,
};
static_assert(static_cast<uint32_t>(InprocessKind::kCount) <= 64, "a set of kinds is a word");

constexpr uint64_t InprocessKindBit(InprocessKind kind)
{
	return uint64_t{1} << static_cast<uint32_t>(kind);
}

// Behind it come the two texts, UTF-16, and zeros up to a multiple of 8.
struct InprocessRecord {
	std::atomic<uint64_t> word; // bytes of all of it in the lower half, its InprocessKind in the upper one
	uint64_t time_ns;
	uint32_t tid;
	uint16_t text_units[2];
	uint64_t values[4];
};
static_assert(sizeof(InprocessRecord) == 56);
static_assert(offsetof(InprocessRecord, time_ns) == 8);
static_assert(offsetof(InprocessRecord, tid) == 16);
static_assert(offsetof(InprocessRecord, text_units) == 20);
static_assert(offsetof(InprocessRecord, values) == 24);

// A range of machine code and the place in IL that it was made from, as ICorProfilerInfo9::GetILToNativeMapping3 has
// it. `il_offset` is -1 for none, -2 for a prolog and -3 for an epilog.
struct InprocessMapEntry {
	uint32_t il_offset;
	uint32_t native_start;
	uint32_t native_end;
};
static_assert(sizeof(InprocessMapEntry) == 12);

inline constexpr size_t kMaxInprocessTextUnits = 512;
inline constexpr size_t kMaxInprocessMapEntries = 512;
inline constexpr size_t kMaxInprocessRecordBytes =
    sizeof(InprocessRecord) + 2 * kMaxInprocessTextUnits + sizeof(InprocessMapEntry) * kMaxInprocessMapEntries;
static_assert(kMaxInprocessRecordBytes % 8 == 0 && kMaxInprocessRecordBytes * 2 < kMinInprocessCapacity);

// The one message on the socket, from the agent, with the descriptor of the ring beside it (SCM_RIGHTS). When the
// connection ends, so does the work of the library.
struct InprocessConfig {
	uint64_t magic;	      // kInprocessMagic
	uint64_t ring_bytes;  // header and capacity
	uint64_t kinds;	      // bits of InprocessKindBit: what is sent
	uint32_t events_low;  // COR_PRF_MONITOR, as ICorProfilerInfo5::SetEventMask2 takes it
	uint32_t events_high; // COR_PRF_HIGH_MONITOR
};
static_assert(sizeof(InprocessConfig) == 32);

} // namespace clrsampler

#endif // CLRSAMPLER_INPROCESS_RING_H_
