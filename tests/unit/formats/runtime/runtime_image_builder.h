// Small images of a runtime with the tables that name its functions. For tests and fuzz corpora.
#ifndef CLRSAMPLER_TESTS_UNIT_FORMATS_RUNTIME_RUNTIME_IMAGE_BUILDER_H_
#define CLRSAMPLER_TESTS_UNIT_FORMATS_RUNTIME_RUNTIME_IMAGE_BUILDER_H_

#include <cstdint>
#include <initializer_list>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "formats/runtime/jit_helper_tables.h"
#include "unit/formats/elf/linked_image.h"

namespace clrsampler {

// Code at kCode: functions of 16 bytes. Names at kNames, tables at kPairs and kHelpers, each as tests change them.
class RuntimeImageBuilder {
 public:
  static constexpr uint64_t kCode = 0x100000, kNames = 0x10000, kPairs = 0x40000, kHelpers = 0x60000, kMore = 0x70000,
                            kClasses = 0x80000, kCalls = 0x90000, kDynamic = 0xa0000;
  static constexpr uint64_t kFunctionBytes = 16;
  static constexpr size_t kFirstHelper = 100;

  explicit RuntimeImageBuilder(uint16_t machine = EM_X86_64) : machine_(machine) {}

  static uint64_t Function(size_t index) { return kCode + index * kFunctionBytes; }

  // A table of entry points at kPairs: names[i] leads to Function(i).
  void AddPairs(const std::vector<std::string>& names) {
    for (size_t i = 0; i < names.size(); ++i) SetPair(kPairs + 16 * i, names[i], Function(i));
  }
  void SetPair(uint64_t at, const std::string& name, uint64_t function) {
    slots[at] = kNames + text.size();
    slots[at + 8] = function;
    text += name + '\0';
  }
  // The table of dynamic helpers at kDynamic: functions of one name are one, those of the static table the same ones.
  void AddDynamicHelpers(const JitHelperTable& table) {
    std::map<absl::string_view, uint64_t> known;
    size_t functions = 0;
    for (const JitHelper& one : table.helpers) {
      if (one.kind == JitHelperKind::kFunction) known.try_emplace(one.function, Function(kFirstHelper + functions++));
    }
    known.erase("");
    for (const JitHelper& one : table.helpers) {
      if (one.kind != JitHelperKind::kDynamic) continue;
      if (one.leads_to_function) {
        const uint64_t fresh = Function(kFirstHelper + functions++);
        slots[kDynamic + 8 * dynamic_words.size()] =
            one.function.empty() ? fresh : known.try_emplace(one.function, fresh).first->second;
      }
      dynamic_words.push_back(0);
    }
  }

  // Classes of FCalls at kClasses, each with one function, one with a signature and one that is filled in later. Those
  // of class i are Function(3 * i) and Function(3 * i + 1).
  void AddFCalls(size_t classes) {
    const auto words = [this](std::initializer_list<uint64_t> values) {
      for (const uint64_t value : values) call_words.push_back(value);
    };
    const auto name = [this](const std::string& value) {
      const uint64_t at = kNames + text.size();
      text += value + '\0';
      return at;
    };
    for (size_t i = 0; i < classes; ++i) {
      slots[kClasses + 24 * i] = name("Thread" + std::to_string(i));
      slots[kClasses + 24 * i + 8] = name("System.Threading");
      slots[kClasses + 24 * i + 16] = kCalls + 8 * call_words.size();
      const uint64_t at = kCalls + 8 * call_words.size();
      words({0xffffffffff000000, 0, 0});
      slots[at + 8] = Function(3 * i);
      slots[at + 16] = name("SpinWaitInternal");
      words({0xffffffffff000002, 0, 0, 0});
      slots[at + 32] = Function(3 * i + 1);
      slots[at + 40] = name(".ctor");
      slots[at + 48] = kNames;
      words({0xffffffff01000000, 0, 0, 0xffffffffff000001});
      slots[at + 72] = name("Alloc");
    }
  }

  // The functions of this class are all filled in later.
  void DropFCallsOf(size_t index) {
    slots.erase(kCalls + 8 * (11 * index + 1));
    slots.erase(kCalls + 8 * (11 * index + 4));
  }

  // The table of this version at kHelpers. The n-th of its functions is Function(kFirstHelper + n).
  void AddHelpers(const JitHelperTable& table) {
    size_t functions = 0;
    uint64_t dynamic = 0;
    for (size_t i = 0; i < table.helpers.size(); ++i) {
      uint64_t word = 0;
      if (table.helpers[i].kind == JitHelperKind::kFunction)
        slots[kHelpers + 8 * i] = Function(kFirstHelper + functions++);
      if (table.helpers[i].kind == JitHelperKind::kDynamic) word = ++dynamic;
      helper_words.push_back(word);
    }
  }

  std::string Build() const {
    LinkedImage image(machine_);
    image.AddSymbols(".dynsym", ".dynstr", {{runtime_export, 0x20, 8, STT_OBJECT}});
    if (!symbols.empty()) image.AddSymbols(".symtab", ".strtab", symbols);
    if (!build_id.empty()) image.BuildId(build_id);
    std::vector<std::pair<uint64_t, uint64_t>> functions;
    for (size_t i = 0; i < kFunctions; ++i) {
      if (Function(i) != without_unwind) functions.emplace_back(Function(i), kFunctionBytes);
    }
    image.AddUnwindTables(0x200000, functions);
    image.Add({.name = ".text",
               .flags = SHF_ALLOC | SHF_EXECINSTR,
               .address = kCode,
               .bytes = std::string(kFunctions * kFunctionBytes, '\x90')});
    image.Add({.name = ".rodata", .address = kNames, .bytes = text});
    std::string words;
    for (const uint64_t word : helper_words) words += RawBytes(word);
    if (!words.empty()) image.Add({.name = ".data.rel.ro", .address = kHelpers, .bytes = words});
    std::string dynamic;
    for (const uint64_t word : dynamic_words) dynamic += RawBytes(word);
    if (!dynamic.empty()) image.Add({.name = ".data", .address = kDynamic, .bytes = dynamic});
    std::string calls;
    for (const uint64_t word : call_words) calls += RawBytes(word);
    if (!calls.empty()) image.Add({.name = ".calls", .address = kCalls, .bytes = calls});
    image.AddRelocations(0x1000, {slots.begin(), slots.end()});
    return image.Build();
  }

  std::map<uint64_t, uint64_t> slots;  // and the address that each holds
  std::string text;
  std::vector<uint64_t> helper_words, call_words, dynamic_words;
  uint64_t without_unwind = 0;
  std::vector<LinkedImage::Symbol> symbols;  // of .symtab
  std::string build_id;
  std::string runtime_export = "g_dacTable";

 private:
  static constexpr size_t kFunctions = 300;
  uint16_t machine_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_TESTS_UNIT_FORMATS_RUNTIME_RUNTIME_IMAGE_BUILDER_H_
