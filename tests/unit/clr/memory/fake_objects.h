// Managed objects, classes with fields, threads and monitors in the made-up memory of a FakeRuntime.
#ifndef CLRSAMPLER_TESTS_UNIT_CLR_MEMORY_FAKE_OBJECTS_H_
#define CLRSAMPLER_TESTS_UNIT_CLR_MEMORY_FAKE_OBJECTS_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "unit/clr/memory/fake_runtime.h"

namespace clrsampler {

// A class of CoreLib: fields of instances lie one after the other, 8 bytes each; those with an 's' in front are static.
struct FakeClass {
  std::string name_space, name, outer;
  std::vector<std::string> fields;
};

class FakeObjects {
 public:
  explicit FakeObjects(RuntimeKind kind, const std::vector<FakeClass>& classes = {}) : fake(kind) {
    store_ = Variable(fake.memory.Allocate(256));
    sync_table_ = Variable(fake.memory.Allocate(16 * kSyncBlocks));
    MetadataBuilder metadata("System.Private.CoreLib");
    std::map<std::string, uint32_t> rids = {{"Object", metadata.Type("System", "Object")}};
    std::map<uint32_t, uint32_t> first_field;
    for (const FakeClass& one : classes) {
      const uint32_t rid = rids[one.name] = metadata.Type(one.name_space, one.name);
      for (const std::string& field : one.fields) {
        const uint32_t row = metadata.Field(IsStatic(field) ? field.substr(2) : field);
        first_field.emplace(rid, row);
      }
    }
    metadata.Type("Shop", "Stock");
    for (const FakeClass& one : classes) {
      if (!one.outer.empty()) metadata.Nested(rids[one.name], rids[one.outer]);
    }
    core_lib = fake.AddModule(metadata.Build());
    const uint64_t map = core_lib + fake.layout.fields.type_map, table = fake.memory.Allocate(8 * (classes.size() + 3));
    fake.memory.Set<uint64_t>(map + 8, table);
    fake.memory.Set<uint32_t>(map + 16, static_cast<uint32_t>(classes.size() + 3));
    object_ = Variable(fake.AddType(core_lib, 1));
    for (const FakeClass& one : classes) {
      types[one.name] = AddClass(one, rids[one.name], first_field[rids[one.name]]);
      fake.memory.Set<uint64_t>(table + 8 * rids[one.name], types[one.name]);
    }
    stock = fake.AddType(core_lib, static_cast<uint32_t>(classes.size()) + 2);
    TellVariables();
    fake.AddHeap(kHeap, 0x10000);  // a runtime without code has not begun
  }

  static constexpr uint64_t kHeap = 0x7E10'0000'0000;
  static constexpr uint32_t kSyncBlocks = 16;
  FakeRuntime fake;
  uint64_t core_lib = 0, stock = 0;
  std::map<std::string, uint64_t> types;
  std::map<std::string, uint64_t> statics;  // where a static field lies, by "Class.field"

  uint64_t Object(uint64_t type, size_t bytes = 256) {
    const uint64_t object = fake.memory.Allocate(bytes + 16) + 16;
    fake.memory.Set<uint64_t>(object, type);
    return object;
  }
  // Fields of an instance, as AddClass has laid them out.
  uint64_t Place(uint64_t object, size_t field) const { return object + 8 + 8 * field; }
  uint64_t Array(const std::vector<uint64_t>& elements) {
    const uint64_t array = fake.memory.Allocate(16 + 8 * elements.size());
    fake.memory.Set<uint32_t>(array + 8, static_cast<uint32_t>(elements.size()));
    for (size_t i = 0; i < elements.size(); ++i) fake.memory.Set<uint64_t>(array + 16 + 8 * i, elements[i]);
    return array;
  }

  // The address of the Thread.
  uint64_t Thread(uint32_t os_id, uint32_t managed_id) {
    const auto& at = fake.layout.thread_list;
    const uint64_t thread = fake.memory.Allocate(1400), first = *fake.memory.Value<uint64_t>(store_) + at.first;
    fake.memory.Set<uint64_t>(thread + at.os_id, os_id);
    if (fake.layout.major > 8) fake.memory.Set<uint32_t>(thread + at.managed_id, managed_id);
    fake.memory.Set<uint64_t>(thread + at.next, *fake.memory.Value<uint64_t>(first));
    fake.memory.Set<uint64_t>(first, at.leads_to_threads ? thread : thread + at.next);
    return thread;
  }

  // Gives an object a sync block; its address.
  uint64_t SyncBlock(uint64_t object) {
    const uint64_t block = fake.memory.Allocate(96), entry = *fake.memory.Value<uint64_t>(sync_table_) + 16 * ++used_;
    fake.memory.Set<uint64_t>(entry, block);
    fake.memory.Set<uint64_t>(entry + 8, object);
    fake.memory.Set<uint32_t>(object - 4, 0x0800'0000 | used_);
    if (!fake.layout.sync_block.lock) {
      fake.memory.Set<uint32_t>(block + fake.layout.sync_block.table_index, 0x8000'0000 | used_);
    }
    return block;
  }
  // Up to 10: the thread that holds a monitor, and how often it was entered.
  void Hold(uint64_t block, uint32_t os_id, uint32_t times) {
    const auto& at = fake.layout.sync_block;
    fake.memory.Set<uint32_t>(block + at.state, os_id == 0 ? 0x40 : 0x41);
    fake.memory.Set<uint32_t>(block + at.recursion, times);
    fake.memory.Set<uint64_t>(block + at.owner_os_id, os_id);
  }
  // Up to 10: what a thread waits for. kind 0: it enters; 1: it waits for a pulse.
  void Block(uint64_t thread, uint64_t block, uint32_t kind = 0, uint32_t milliseconds = UINT32_MAX) {
    const uint64_t item = fake.memory.Allocate(40);
    fake.memory.Set<uint64_t>(item, block);
    fake.memory.Set<uint32_t>(item + 16, kind);
    fake.memory.Set<uint32_t>(item + 20, milliseconds);
    fake.memory.Set<uint64_t>(thread + *fake.layout.thread_list.blocking_item, item);
  }
  // Since 11: the Lock behind a sync block.
  void SetLock(uint64_t block, uint64_t lock) {
    fake.memory.Set<uint64_t>(block + *fake.layout.sync_block.lock, Variable(lock));
  }
  uint64_t Variable(uint64_t value) {
    const uint64_t variable = fake.memory.Allocate(8);
    fake.memory.Set<uint64_t>(variable, value);
    return variable;
  }

 private:
  static bool IsStatic(const std::string& field) { return field.starts_with("s:"); }

  uint64_t AddClass(const FakeClass& one, uint32_t rid, uint32_t first_row) {
    const uint64_t type = fake.AddType(core_lib, rid), owner = fake.memory.Allocate(64),
                   descriptors = fake.memory.Allocate(16 * one.fields.size() + 16);
    const auto& at = fake.layout.fields;
    fake.memory.Set<uint64_t>(type + at.class_or_canonical, owner);
    fake.memory.Set<uint64_t>(owner + at.descriptors, descriptors);
    uint32_t instances = 0, statics_count = 0;
    for (size_t i = 0; i < one.fields.size(); ++i) {
      const bool is_static = IsStatic(one.fields[i]);
      const uint32_t offset = 8 * (is_static ? statics_count++ : instances++);
      fake.memory.Set<uint64_t>(descriptors + 16 * i, type);
      fake.memory.Set<uint32_t>(descriptors + 16 * i + 8,
                                (first_row + static_cast<uint32_t>(i)) | (is_static ? 0x3100'0000 : 0x0800'0000));
      fake.memory.Set<uint32_t>(descriptors + 16 * i + 12, offset | 0x9000'0000);
    }
    if (statics_count != 0) AddStatics(one, type, descriptors);
    return type;
  }
  // 8 has all static objects of a module in one place; newer ones those of a class.
  void AddStatics(const FakeClass& one, uint64_t type, uint64_t descriptors) {
    const auto& at = fake.layout.fields;
    if (at.local_module && statics_ == 0) {
      statics_ = fake.memory.Allocate(1024);
      const uint64_t local = fake.memory.Allocate(64);
      fake.memory.Set<uint64_t>(local + at.local_module_objects, statics_);
      fake.memory.Set<uint64_t>(core_lib + *at.local_module, local);
    }
    uint64_t objects = statics_;
    if (!at.local_module) {
      objects = fake.memory.Allocate(256);
      const uint64_t auxiliary = fake.memory.Allocate(64) + 32;
      fake.memory.Set<uint64_t>(type + at.auxiliary, auxiliary);
      fake.memory.Set<uint64_t>(auxiliary - 24, objects);
      fake.memory.Set<uint64_t>(auxiliary - 8, type);
    }
    for (size_t i = 0; i < one.fields.size(); ++i) {
      if (!IsStatic(one.fields[i])) continue;
      uint32_t offset = *fake.memory.Value<uint32_t>(descriptors + 16 * i + 12) & 0x7FF'FFFF;
      if (at.local_module) {
        offset = 8 * used_statics_++;
        fake.memory.Set<uint32_t>(descriptors + 16 * i + 12, offset | 0x9000'0000);
      }
      statics[absl::StrCat(one.name, ".", one.fields[i].substr(2))] = objects + offset;
    }
  }
  void TellVariables() {
    const std::vector<uint64_t> pointers = {FakeRuntime::kRangeMap, store_, object_, sync_table_};
    if (fake.layout.major == 8) {
      const auto& at = fake.layout.variables;
      fake.memory.Set<uint64_t>(FakeRuntime::kDacTable + 8 * at.thread_store, store_);
      fake.memory.Set<uint64_t>(FakeRuntime::kDacTable + 8 * at.object_type, object_);
      fake.memory.Set<uint64_t>(FakeRuntime::kDacTable + 8 * at.sync_table, sync_table_);
      return;
    }
    const std::string globals =
        R"("globals":{"ThreadStore":[[1],"pointer"],"ObjectMethodTable":[[2],"pointer"],"SyncTableEntries":[[3],"pointer"],)";
    const std::string older =
        R"({"types":{},"globals":{"ExecutionManagerCodeRangeMapAddress":[[0],"pointer"]},"contracts":{"CodeVersions":1,)"
        R"("ExecutionManager":)" +
        std::string(fake.layout.major >= 10 ? "2" : "1") + R"(,"Loader":1,"RuntimeTypeSystem":1}})";
    fake.SetDescriptor(
        absl::StrReplaceAll(fake.layout.major >= 11 ? Descriptor11() : older, {{R"("globals":{)", globals}}), pointers);
  }

  uint64_t store_ = 0, sync_table_ = 0, object_ = 0, statics_ = 0;
  uint32_t used_ = 0, used_statics_ = 0;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_TESTS_UNIT_CLR_MEMORY_FAKE_OBJECTS_H_
