// A made-up libcoreclr.so, libclrjit.so or single-file host: as little code as the locator needs to see, in the form
// that compilers give it. Each piece can be replaced, so that one piece of evidence at a time is missing.
#ifndef CLRSAMPLER_TESTS_UNIT_CLR_HOOKS_FAKE_RUNTIME_H_
#define CLRSAMPLER_TESTS_UNIT_CLR_HOOKS_FAKE_RUNTIME_H_

#include <functional>
#include <initializer_list>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "formats/elf/elf_image.h"
#include "unit/formats/elf/linked_image.h"

namespace clrsampler {

// The instructions of one function, at its address.
class Assembly {
 public:
  Assembly(ElfMachine machine, uint64_t start) : x64_(machine == ElfMachine::kX64), start_(start) {}
  const std::string& bytes() const { return bytes_; }

  Assembly& Raw(std::initializer_list<uint8_t> bytes) {
    for (const uint8_t byte : bytes) bytes_.push_back(static_cast<char>(byte));
    return *this;
  }
  Assembly& Text(const std::string& bytes) {
    bytes_ += bytes;
    return *this;
  }
  Assembly& Word(uint32_t instruction) {
    bytes_ += RawBytes(instruction);
    return *this;
  }
  Assembly& Hex(const std::string& digits) {
    for (size_t i = 0; i + 1 < digits.size(); i += 2) {
      bytes_.push_back(static_cast<char>(std::stoi(digits.substr(i, 2), nullptr, 16)));
    }
    return *this;
  }
  Assembly& Frame() { return x64_ ? Raw({0x55, 0x48, 0x89, 0xe5}) : Word(0xa9bf7bfd).Word(0x910003fd); }
  Assembly& Return() { return x64_ ? Raw({0x5d, 0xc3}) : Word(0xa8c17bfd).Word(0xd65f03c0); }
  Assembly& Call(uint64_t target) { return x64_ ? Raw({0xe8}).Distance(target) : Branch(0x94000000, target); }
  Assembly& Jump(uint64_t target) { return x64_ ? Raw({0xe9}).Distance(target) : Branch(0x14000000, target); }
  // cmp dword [address], 0 or ldr w8
  Assembly& Read(uint64_t address) {
    if (x64_) return Raw({0x83, 0x3d}).Distance(address, 1).Raw({0});
    return Adrp(8, address).Word(0xb9400108 | static_cast<uint32_t>((address & 0xfff) / 4) << 10);
  }
  Assembly& AddressOf(uint64_t address) {
    if (x64_) return Raw({0x48, 0x8d, 0x0d}).Distance(address);
    return Adrp(9, address).Word(0x91000129 | static_cast<uint32_t>(address & 0xfff) << 10);
  }
  // A virtual function calls a static one like this: '4' and '8' are the sizes of the arguments.
  Assembly& PassOn(const std::string& arguments) {
    static const std::string kX64[] = {"89f7", "89d6", "89ca", "4489c1", "4589c8"};
    for (uint32_t i = 0; i < arguments.size(); ++i) {
      const bool whole = arguments[i] == '8';
      if (!x64_) {
        Word((whole ? 0xaa0003e0 : 0x2a0003e0) | (i + 1) << 16 | i);
      } else if (whole) {
        Hex(i < 3 ? "48" + kX64[i] : i == 3 ? "4c89c1" : "4d89c8");
      } else {
        Hex(kX64[i]);
      }
    }
    return *this;
  }
  Assembly& Thunk(const std::string& arguments, uint64_t target) {
    return x64_ ? Frame().PassOn(arguments).Raw({0x5d}).Jump(target) : PassOn(arguments).Jump(target);
  }
  Assembly& CopyGuid(uint64_t guid) {
    if (x64_) return Frame().Raw({0x0f, 0x10, 0x05}).Distance(guid).Hex("0f11065dc3");
    return AddressOf(guid).Word(0x3dc00120).Word(0x3d800020).Word(0xd65f03c0);
  }
  // The part of do_post_gc up to the second call.
  Assembly& PostGc(uint64_t settings, uint64_t gc_done, uint64_t diag_gc_end) {
    Frame();
    if (!x64_) {
      Adrp(23, settings).Word(0x910002f7 | static_cast<uint32_t>(settings & 0xfff) << 10);
      Word(0xb9400ae0).Call(gc_done).Word(0xc8dffee8).Word(0xf9000be8).Word(0xf9400be0);
      return Word(0xb9401ee8).Word(0xb9400ae1).Word(0xb9403ee2).Word(0x7100011f).Word(0x1a9f07e3).Call(diag_gc_end);
    }
    Raw({0x8b, 0x3d}).Distance(settings + 8).Call(gc_done);
    Raw({0x48, 0x8b, 0x05}).Distance(settings).Hex("488945c8488b7dc8");
    Raw({0x8b, 0x35}).Distance(settings + 8).Raw({0x8b, 0x15}).Distance(settings + 60).Hex("31c9");
    return Raw({0x83, 0x3d}).Distance(settings + 28, 1).Hex("000f95c1").Call(diag_gc_end);
  }
  // As in the runtimes 8.0.0 to 10.0.14 on x64, and in 10.0.9 on arm64.
  Assembly& CompileMethod(uint64_t native_code) {
    if (x64_) {
      Hex("554889e5415741564154534883ec504d89ce4c89c34989d74989f464488b042528000000488945d80f57c00f2945a048c745b0000000"
          "00");
      Hex("488b06488d75a04c89e7ba18000000ff9078050000488b45b00f2845a00f2945c0488945d048c7459800000000498b3f498b7708");
      Hex("488d45c04c8d45984c89e24c89f94d89f16a0050").Call(native_code);
      Hex("4883c41085c07507488b4d9848890b64488b0c2528000000483b4dd8750d4883c4505b415c415e415f5dc3");
      return Call(native_code);
    }
    for (const uint32_t word :
         {0xd10203ffu, 0xa9057bfdu, 0xa90657f6u, 0xa9074ff4u, 0x910143fdu, 0xb0001a48u, 0xaa0103f6u,
          0xaa0203f5u, 0xf941f508u, 0xaa1603e0u, 0x52800302u, 0xaa0503f4u, 0xaa0403f3u, 0xf9400108u,
          0xf81f83a8u, 0xf9400028u, 0x910043e1u, 0xa9017fffu, 0xf90013ffu, 0xf942bd08u, 0xd63f0100u,
          0xa94006a0u, 0x910023e4u, 0x3dc007e0u, 0xf94013e8u, 0xd10083a6u, 0xaa1603e2u, 0xaa1503e3u,
          0xaa1403e5u, 0xaa1f03e7u, 0x3c9e03a0u, 0xf81f03a8u, 0xf90007ffu}) {
      Word(word);
    }
    Call(native_code);
    for (const uint32_t word :
         {0x35000060u, 0xf94007e8u, 0xf9000268u, 0xb0001a48u, 0xf941f508u, 0xf85f83a9u, 0xf9400108u, 0xeb09011fu,
          0x540000c1u, 0xa9474ff4u, 0xa94657f6u, 0xa9457bfdu, 0x910203ffu, 0xd65f03c0u}) {
      Word(word);
    }
    return Call(native_code);
  }

 private:
  Assembly& Distance(uint64_t target, uint64_t more = 0) {
    bytes_ += RawBytes(static_cast<int32_t>(target - (start_ + bytes_.size() + 4 + more)));
    return *this;
  }
  Assembly& Branch(uint32_t opcode, uint64_t target) {
    return Word(opcode | (static_cast<uint32_t>((target - (start_ + bytes_.size())) / 4) & 0x3ffffff));
  }
  Assembly& Adrp(uint32_t to, uint64_t address) {
    const uint64_t pages = (address >> 12) - ((start_ + bytes_.size()) >> 12);
    return Word(0x90000000 | to | static_cast<uint32_t>(pages & 3) << 29 |
                static_cast<uint32_t>(pages >> 2 & 0x7ffff) << 5);
  }

  bool x64_;
  uint64_t start_;
  std::string bytes_;
};

class FakeRuntime {
 public:
  // How the collector is called back: .NET 8, or 9 and newer.
  enum class Callbacks { kBodies, kThunks };
  using Body = std::function<void(Assembly&, const FakeRuntime&)>;

  static constexpr uint64_t kTables = 0x1000, kRelocations = 0x8000, kStrings = 0x10000, kPoints = 0x11000,
                            kPointers = 0x12000, kData = 0x13000, kConstants = 0x14000, kCode = 0x20000;
  static constexpr uint64_t kPointBytes = 56, kCookie = kConstants + 16;
  static constexpr uint64_t kSettings[] = {kData + 0x100, kData + 0x300};

  static constexpr const char* kSuspendBegin = "DotNETRuntime:GCSuspendEEBegin_V1";
  static constexpr const char* kSuspendEnd = "DotNETRuntime:GCSuspendEEEnd_V1";
  static constexpr const char* kRestartBegin = "DotNETRuntime:GCRestartEEBegin_V1";
  static constexpr const char* kRestartEnd = "DotNETRuntime:GCRestartEEEnd_V1";

  explicit FakeRuntime(ElfMachine machine) : machine_(machine) {
    guid = std::string("\x56\xbc\x8c\x7a\x19\x9e\x21\x43\x80\xb9\xa0\xd2\xc5\x78\xc9\x45", 16);  // of .NET 10
  }

  static FakeRuntime CoreClr(ElfMachine machine, Callbacks callbacks) {
    FakeRuntime runtime(machine);
    runtime.exports = {{"coreclr_initialize", "initialize"}, {"g_dacTable", "initialize"}};
    runtime.AddRuntime(callbacks);
    return runtime;
  }
  // The collector for workstations only. Symbols are in the debug file.
  static FakeRuntime NativeAot(ElfMachine machine) {
    FakeRuntime runtime(machine);
    runtime.data_exports = {{"DotNetRuntimeDebugHeader", kCookie}};
    for (const char* name : {"SuspendEE", "RestartEE", "DiagGCStart", "DiagGCEnd", "GcDone", "initialize"}) {
      runtime.Define(name, [](Assembly& a, const FakeRuntime&) { a.Frame().Return(); });
    }
    runtime.DefinePostGc(0);
    runtime.debug_symbols = {{"_ZN15GCToEEInterface9SuspendEEE14SUSPEND_REASON", "SuspendEE"},
                             {"_ZN15GCToEEInterface9RestartEEEb", "RestartEE"},
                             {"_ZN15GCToEEInterface11DiagGCStartEib", "DiagGCStart"},
                             {"_ZN15GCToEEInterface9DiagGCEndEmiib", "DiagGCEnd"},
                             {"_ZN15GCToEEInterface6GcDoneEi", "GcDone"},
                             {"_ZN3WKS7gc_heap10do_post_gcEv", "do_post_gc:0"}};
    return runtime;
  }
  static FakeRuntime Jit(ElfMachine machine) {
    FakeRuntime runtime(machine);
    runtime.exports = {{"getJit", "getJit"}};
    runtime.AddJit();
    return runtime;
  }
  static FakeRuntime Host(ElfMachine machine, Callbacks callbacks) {
    FakeRuntime runtime(machine);
    runtime.exports = {{"g_dacTable", "initialize"}, {"DotNetRuntimeInfo", "initialize"}};
    runtime.AddRuntime(callbacks);
    runtime.AddJit();
    return runtime;
  }

  // Adds the function, or replaces it where it is.
  void Define(const std::string& name, Body body) {
    for (auto& [other, old] : functions) {
      if (other == name) {
        old = std::move(body);
        return;
      }
    }
    functions.emplace_back(name, std::move(body));
  }
  uint64_t At(const std::string& name) const {
    const auto found = addresses_.find(name);
    return found == addresses_.end() ? kCode : found->second;  // not laid out yet, or a mistake that a test will notice
  }
  uint64_t Offset(const std::string& name) const { return At(name) - kCode + code_offset_; }
  void DefineCalls(const std::string& name, const std::vector<std::string>& callees) {
    Define(name, [=](Assembly& a, const FakeRuntime& r) {
      a.Frame();
      for (const std::string& callee : callees) a.Call(r.At(callee));
      a.Return();
    });
  }
  void DefineFiring(const std::string& name, const std::vector<std::string>& events) {
    std::vector<std::string> callees;
    for (const std::string& event : events) {
      callees.push_back("enabled:" + event);
      callees.push_back("fire:" + event);
    }
    DefineCalls(name, callees);
  }
  void DefineThunk(const std::string& name, const std::string& arguments, const std::string& target) {
    Define(name, [=](Assembly& a, const FakeRuntime& r) { a.Thunk(arguments, r.At(target)); });
  }
  void DefinePostGc(int collector) {
    Define("do_post_gc:" + std::to_string(collector), [collector](Assembly& a, const FakeRuntime& r) {
      a.PostGc(kSettings[collector], r.At("GcDone"), r.At("DiagGCEnd")).Return();
    });
  }

  static std::string Slot(size_t index) { return "slot:" + std::to_string(index); }

  uint64_t Bytes(const std::string& name) const { return sizes_.at(name); }  // after Build
  // Writes over the first bytes of a function.
  void Patch(const std::string& name, const std::string& bytes) { patches[name] = bytes; }

  std::string Build() {
    std::vector<std::pair<std::string, std::string>> laid_out;
    for (int pass = 0; pass < 2; ++pass) {  // sizes do not depend on addresses
      laid_out.clear();
      uint64_t at = kCode;
      for (const auto& [name, body] : functions) {
        addresses_[name] = at;
        Assembly assembly(machine_, at);
        body(assembly, *this);
        laid_out.emplace_back(name, assembly.bytes());
        at += (assembly.bytes().size() + 15) / 16 * 16;
      }
    }
    std::string code;
    std::vector<std::pair<uint64_t, uint64_t>> bounds;
    for (auto& [name, bytes] : laid_out) {
      if (const auto patch = patches.find(name); patch != patches.end()) {
        bytes.replace(0, patch->second.size(), patch->second);
      }
      sizes_[name] = bytes.size();
      if (not_in_unwind_table != name) bounds.emplace_back(kCode + code.size(), bytes.size());
      code += bytes;
      code.resize((code.size() + 15) / 16 * 16, '\xcc');
    }
    if (change_bounds) change_bounds(bounds);

    std::vector<std::pair<uint64_t, uint64_t>> relocations;
    std::string strings(1, '\0');
    for (size_t i = 0; i < tracepoints.size(); ++i) {
      const uint64_t point = kPoints + i * kPointBytes;
      if (!providers_apart) {
        relocations.emplace_back(point, kStrings + strings.size());
        strings += tracepoints[i] + '\0';
        continue;
      }
      const size_t colon = tracepoints[i].find(':');
      relocations.emplace_back(point + 8, kStrings + strings.size());
      strings += tracepoints[i].substr(0, colon) + '\0';
      relocations.emplace_back(point + 16, kStrings + strings.size());
      strings += tracepoints[i].substr(colon + 1) + '\0';
    }
    for (const auto& [slot, name] : pointers) relocations.emplace_back(slot, At(name));
    for (const auto& [slot, target] : data_pointers) relocations.emplace_back(slot, target);
    if (change_relocations) change_relocations(relocations);

    LinkedImage image(machine_ == ElfMachine::kX64 ? EM_X86_64 : EM_AARCH64);
    image.Add({.name = ".text", .flags = SHF_ALLOC | SHF_EXECINSTR, .address = kCode, .bytes = code});
    image.AddUnwindTables(kTables, bounds);
    image.AddRelocations(kRelocations, relocations);
    if (!tracepoints.empty()) {
      const std::string points = providers_apart ? "lttng_ust_tracepoints" : "__tracepoints";
      image.Add({.name = points + "_strings", .address = kStrings, .bytes = strings});
      image.Add({.name = points,
                 .flags = SHF_ALLOC | SHF_WRITE,
                 .address = kPoints,
                 .bytes = std::string(tracepoints.size() * kPointBytes, '\0')});
    }
    image.Add({.name = ".data.rel.ro",
               .flags = SHF_ALLOC | SHF_WRITE,
               .address = kPointers,
               .bytes = std::string(0x800, '\0')});
    image.Add({.name = ".data", .flags = SHF_ALLOC | SHF_WRITE, .address = kData, .bytes = std::string(0x400, '\0')});
    image.Add({.name = ".rodata", .address = kConstants, .bytes = guid + "DNDH"});
    std::vector<LinkedImage::Symbol> exported;
    for (const auto& [name, function] : exports) exported.push_back({name, At(function), 0, STT_FUNC});
    for (const auto& [name, address] : data_exports) exported.push_back({name, address, 0, STT_OBJECT});
    image.AddSymbols(".dynsym", ".dynstr", exported);
    if (!symbols.empty()) image.AddSymbols(".symtab", ".strtab", SymbolsOf(symbols));
    if (change_image) change_image(image);
    const std::string bytes = image.Build();
    const auto parsed = ElfImage::Parse({reinterpret_cast<const std::byte*>(bytes.data()), bytes.size()});
    if (parsed.ok() && parsed->ToOffset({kCode})) code_offset_ = parsed->ToOffset({kCode})->value;
    return bytes;
  }

  // A separate debug file, after Build.
  std::string BuildDebugFile(const std::string& build_id) const {
    LinkedImage image(machine_ == ElfMachine::kX64 ? EM_X86_64 : EM_AARCH64);
    image.Add({.name = ".text",
               .type = SHT_NOBITS,
               .flags = SHF_ALLOC | SHF_EXECINSTR,
               .address = kCode,
               .memory_bytes = 0x1000});
    image.AddSymbols(".symtab", ".strtab", SymbolsOf(debug_symbols));
    if (!build_id.empty()) image.BuildId(build_id);
    return image.Build();
  }

  // All that may be changed before Build.
  std::vector<std::pair<std::string, Body>> functions;  // in the order of their addresses
  std::vector<std::string> tracepoints;                 // by name
  bool providers_apart = false;                         // as lttng-ust 2.13 makes them
  std::map<uint64_t, std::string> pointers;             // slots that hold functions
  std::map<uint64_t, uint64_t> data_pointers;           // slots that hold other addresses
  std::map<std::string, std::string> exports;           // name -> function
  std::map<std::string, uint64_t> data_exports;
  std::map<std::string, std::string> symbols;        // .symtab: name -> function
  std::map<std::string, std::string> debug_symbols;  // of the separate file
  std::map<std::string, uint64_t> symbol_bytes;      // by symbol; else the size is 0
  std::map<std::string, std::string> patches;
  std::string not_in_unwind_table;
  std::string guid;
  std::function<void(std::vector<std::pair<uint64_t, uint64_t>>&)> change_bounds;
  std::function<void(std::vector<std::pair<uint64_t, uint64_t>>&)> change_relocations;
  std::function<void(LinkedImage&)> change_image;

  static constexpr uint64_t kCallbackTable = kPointers + 0x10, kJitTable = kPointers + 0x400, kJitObject = kData + 0x10;
  static constexpr size_t kCallbackSlots = 50;

 private:
  std::vector<LinkedImage::Symbol> SymbolsOf(const std::map<std::string, std::string>& names) const {
    std::vector<LinkedImage::Symbol> result;
    for (const auto& [name, function] : names) {
      const auto bytes = symbol_bytes.find(name);
      result.push_back({name, At(function), bytes == symbol_bytes.end() ? 0 : bytes->second, STT_FUNC});
    }
    return result;
  }

  void AddRuntime(Callbacks callbacks) {
    const auto leaf = [](Assembly& a, const FakeRuntime&) { a.Frame().Return(); };
    Define("initialize", leaf);
    tracepoints = {kRestartEnd, kRestartBegin, "DotNETRuntime:GCStart_V2", kSuspendEnd, kSuspendBegin};
    for (size_t i = 0; i < tracepoints.size(); ++i) {
      const uint64_t point = kPoints + i * kPointBytes;
      Define("enabled:" + tracepoints[i], [=](Assembly& a, const FakeRuntime& r) {
        a.Frame();
        (r.providers_apart ? a.AddressOf(point) : a.Read(point + 8)).Return();
      });
      Define("fire:" + tracepoints[i], [=](Assembly& a, const FakeRuntime& r) {
        (r.providers_apart ? a.Read(point + 24) : a.Read(point + 8)).Frame().Return();
      });
    }
    DefineFiring("SuspendEE", {kSuspendBegin, kSuspendEnd});
    DefineFiring("RestartEE", {kRestartBegin, kRestartEnd});
    // Suspends as a part of something else, and begins another, smaller table of virtual functions.
    for (const std::string name : {"SuspendEE", "RestartEE"}) {
      DefineCalls("other." + name, {name,         "initialize", "initialize", "initialize", "initialize", "initialize",
                                    "initialize", "initialize", "initialize", "initialize", "initialize", "initialize",
                                    "initialize", "initialize", "initialize", "initialize", "initialize", "initialize",
                                    "initialize", "initialize", "initialize", "initialize", "initialize"});
      DefineCalls("gc." + name, {name});
    }
    pointers[kPointers + 0x300] = "other.SuspendEE";
    pointers[kPointers + 0x308] = "other.RestartEE";

    for (const char* name : {"helper:start", "helper:done", "helper:diag"}) Define(name, leaf);
    const auto reads = [](std::vector<uint64_t> offsets, std::string callee, int more) {
      return [=](Assembly& a, const FakeRuntime& r) {
        a.Frame();
        for (const uint64_t offset : offsets) a.Read(kData + offset);
        a.Call(r.At(callee));
        for (int i = 0; i < more; ++i) a.Word(0xd503201f);  // means nothing on both machines
        a.Return();
      };
    };
    Define("GcStartWork", reads({0x20}, "helper:start", 0));
    Define("GcDone", reads({0x24}, "helper:done", 0));
    Define("DiagGCStart", reads({0x28, 0x2c, 0x30, 0x34}, "helper:diag", 0));
    Define("DiagGCEnd", reads({0x28, 0x2c, 0x38, 0x3c}, "helper:diag", 0));
    for (const std::string collector : {"0", "1"}) {
      DefineCalls("garbage_collect:" + collector, {"GcStartWork", "initialize", "DiagGCStart"});
      DefinePostGc(collector == "0" ? 0 : 1);
    }

    for (size_t i = 0; i < kCallbackSlots; ++i) {
      pointers[kCallbackTable + 8 * i] = Slot(i);
      DefineThunk(Slot(i), "8", "initialize");
    }
    if (callbacks == Callbacks::kThunks) {
      DefineThunk(Slot(0), "4", "gc.SuspendEE");
      DefineThunk(Slot(1), "4", "gc.RestartEE");
      DefineThunk(Slot(3), "44", "GcStartWork");
      DefineThunk(Slot(6), "4", "GcDone");
      DefineThunk(Slot(20), "44", "DiagGCStart");
      DefineThunk(Slot(22), "8444", "DiagGCEnd");
    } else {
      DefineCalls(Slot(0), {"SuspendEE"});
      DefineCalls(Slot(1), {"RestartEE"});
      Define(Slot(3), reads({0x20}, "helper:start", 1));
      Define(Slot(6), reads({0x24}, "helper:done", 1));
      Define(Slot(20), reads({0x28, 0x2c, 0x30}, "helper:diag", 1));
      Define(Slot(22), reads({0x28, 0x38, 0x3c}, "helper:diag", 1));
    }
  }

  void AddJit() {
    const auto leaf = [](Assembly& a, const FakeRuntime&) { a.Frame().Return(); };
    Define("jitNativeCode", leaf);
    Define("compileMethod", [](Assembly& a, const FakeRuntime& r) { a.CompileMethod(r.At("jitNativeCode")); });
    Define("ProcessShutdownWork", leaf);
    Define("getVersionIdentifier", [](Assembly& a, const FakeRuntime&) { a.CopyGuid(kConstants); });
    Define("setTargetOS", leaf);
    Define("getJit", [](Assembly& a, const FakeRuntime&) { a.Frame().AddressOf(kJitObject).Return(); });
    data_pointers[kJitObject] = kJitTable;
    pointers[kJitTable] = "compileMethod";
    pointers[kJitTable + 8] = "ProcessShutdownWork";
    pointers[kJitTable + 16] = "getVersionIdentifier";
    pointers[kJitTable + 24] = "setTargetOS";
  }

  ElfMachine machine_;
  std::map<std::string, uint64_t> addresses_, sizes_;
  uint64_t code_offset_ = 0;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_TESTS_UNIT_CLR_HOOKS_FAKE_RUNTIME_H_
