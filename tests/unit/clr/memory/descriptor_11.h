// The part of the contract descriptor of .NET 11.0.0 (x64) that clrsampler reads, word for word.
#ifndef CLRSAMPLER_TESTS_UNIT_CLR_MEMORY_DESCRIPTOR_11_H_
#define CLRSAMPLER_TESTS_UNIT_CLR_MEMORY_DESCRIPTOR_11_H_

#include <string>

namespace clrsampler {

inline std::string Descriptor11() {
  return R"({"version":2,"baseline":"empty","types":{
"AsyncMethodData":{"Flags":0},
"CodeHeapListNode":{"StartAddress":16,"EndAddress":24,"MapBase":32,"HeaderMap":40},
"CodeRangeMapRangeList":{"RangeListType":288},
"DynamicMethodDesc":{"MethodName":32},
"FnPtrTypeDesc":{"NumArgs":24,"RetAndArgTypes":32},
"HashMap":{"Buckets":16},
"InstantiatedMethodDesc":{"PerInstInfo":24,"NumGenericArgs":34,"!":40},
"MethodDesc":{"Flags3AndTokenRemainder":0,"ChunkIndex":2,"Slot":4,"Flags":6,"CodeData":8,"!":16},
"MethodDescChunk":{"MethodTable":0,"Size":16,"FlagsAndTokenRange":18,"!":24},
"MethodDescVersioningState":{"NativeCodeVersionNode":16},
"MethodImpl":{"!":16},
"MethodTable":{"MTFlags":0,"BaseSize":4,"MTFlags2":8,"NumVirtuals":12,"Module":24,"PerInstInfo":48},
"Module":{"PEAssembly":216,"Base":224,"Flags":232,"ReadyToRunInfo":704,"DynamicMetadata":840},
"NativeCodeSlot":{"!":8},
"NativeCodeVersionNode":{"NativeCode":0,"MethodDesc":8,"Next":24,"OptimizationTier":36},
"NonVtableSlot":{"!":8},
"PEAssembly":{"PEImage":8},
"PEImage":{"LoadedImageLayout":128,"FlatImageLayout":120},
"PEImageLayout":{"Base":16,"Size":24,"Flags":28},
"ParamTypeDesc":{"TypeArg":16},
"RangeSection":{"RangeBegin":0,"RangeEndOpen":8,"Flags":16,"JitManager":24,"R2RModule":32,"HeapList":40,"RangeList":48},
"RangeSectionFragment":{"Next":0,"RangeBegin":8,"RangeEndOpen":16,"RangeSection":24},
"ReadyToRunInfo":{"ReadyToRunHeader":16,"CompositeInfo":40,"RuntimeFunctions":80,"NumRuntimeFunctions":88,"EntryPointToMethodDescMap":376},
"RealCodeHeader":{"MethodDesc":24,"NumUnwindInfos":32,"UnwindInfos":36},
"TypeVarTypeDesc":{"Module":16,"Token":40}},
"globals":{"ExecutionManagerCodeRangeMapAddress":[[0],"pointer"],"MethodDescTokenRemainderBitCount":"0xc"},
"contracts":{"CodeVersions":"c1","ExecutionManager":"c1","Loader":"c1","RuntimeTypeSystem":"c1"}})";
}

}  // namespace clrsampler

#endif  // CLRSAMPLER_TESTS_UNIT_CLR_MEMORY_DESCRIPTOR_11_H_
