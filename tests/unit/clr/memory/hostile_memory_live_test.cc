// The memory of a real, stopped .NET process with errors put into what is read of it: CLRSAMPLER_TARGET_PID, as
// tests/e2e/hostile_memory_live_test.py sets it. A lookup always ends within its budget; and with any one offset of the
// runtime's structures wrong, names are right or missing.
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <random>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "clr/memory/runtime_memory.h"
#include "clr/memory/target_images.h"
#include "clr/runtime_discovery.h"
#include "process/process_table.h"
#include "process/target_memory.h"

namespace clrsampler {
namespace {

// Gives what the process has, and now and then something else.
class FaultyMemory : public MemoryReader {
 public:
  explicit FaultyMemory(MemoryReader& real) : real_(real) {}
  bool Read(uint64_t address, std::span<std::byte> into) override {
    ++reads;
    bytes += into.size();
    const bool done = real_.Read(address, into);
    if (one_in == 0 || into.empty() || random() % one_in != 0) return done;
    const size_t at = random() % into.size();
    switch (random() % 4) {
      case 0:
        return false;
      case 1:
        into[at] ^= std::byte{1} << random() % 8;
        return done;
      case 2: {  // the neighbour of what a pointer points to
        const size_t word = at & ~size_t{7};
        if (word + 8 > into.size()) return done;
        uint64_t value = 0;
        std::memcpy(&value, into.data() + word, sizeof value);
        value += (random() % 33 - 16) * 8;
        std::memcpy(into.data() + word, &value, sizeof value);
        return done;
      }
      default:  // anything that is mapped
        if (into.size() >= 8 && !places.empty()) {
          const uint64_t value = places[random() % places.size()] + random() % 4096;
          std::memcpy(into.data() + (at & ~size_t{7}) % (into.size() - 7), &value, sizeof value);
        }
        return done;
    }
  }
  uint64_t one_in = 0;  // 0: no errors
  std::vector<uint64_t> places;
  std::mt19937_64 random{71};
  uint64_t reads = 0, bytes = 0;

 private:
  MemoryReader& real_;
};

// Arguments of generic methods may be missing, as a whole: nobody vouches for where they are.
std::string Text(const ManagedCode& code, bool with_method_arguments = true) {
  return absl::StrCat(code.name.module, "!", code.name.type, "[", absl::StrJoin(code.name.type_args, ","),
                      "]::", code.name.method, "[",
                      with_method_arguments ? absl::StrJoin(code.name.method_args, ",") : "", "](",
                      absl::StrJoin(code.name.parameters.value_or(std::vector<std::string>()), ","), ")");
}

bool IsMethod(const ManagedCode& code) {
  return code.kind == ManagedCode::Kind::kMethod || code.kind == ManagedCode::Kind::kPrecompiled;
}

class HostileMemoryLiveTest : public testing::Test {
 protected:
  void SetUp() override {
    const char* pid = std::getenv("CLRSAMPLER_TARGET_PID");
    if (pid == nullptr) GTEST_SKIP() << "NOT TESTED: tests/e2e/hostile_memory_live_test.py gives it a process";
    process_ = &table_.FindOrScan(static_cast<uint32_t>(std::atoi(pid)), 0);
    const auto found = discovery_.Find(*process_);
    ASSERT_TRUE(found.has_value()) << "no runtime";
    target_images_ = std::make_unique<TargetImages>(*process_, images_, clock_);
    place_.major = found->version.major;
    place_.image = target_images_->ImageAround(found->mapping);
    place_.dac_table = found->AddressOf("g_dacTable").value_or(0);
    place_.descriptor = found->AddressOf("DotNetRuntimeContractDescriptor").value_or(0);
    auto memory = TargetMemory::Open("/proc", process_->key.tgid);
    ASSERT_TRUE(memory.ok()) << memory.status();
    real_ = *std::move(memory);
    memory_ = std::make_unique<FaultyMemory>(*real_);
    for (const Mapping& mapping : process_->mappings.all()) memory_->places.push_back(mapping.start);
    auto runtime = Attach();
    ASSERT_TRUE(runtime.ok()) << runtime.status();
    EXPECT_GE((*runtime)->self_test().compared, 20u);
    Collect(**runtime);
    ASSERT_GT(names_.size(), 300u);
  }

  absl::StatusOr<std::unique_ptr<RuntimeMemory>> Attach() {
    return RuntimeMemory::Attach(
        place_, *memory_, [this](uint64_t address) { return target_images_->ContentAt(address); }, copies_, false);
  }

  // Methods of both kinds, generic ones before others.
  void Collect(RuntimeMemory& runtime) {
    std::vector<uint64_t> compiled, prepared;
    for (const CodeSection& section : runtime.Sections()) {
      if (section.kind == CodeSectionKind::kCodeHeap) {
        for (const uint64_t start : runtime.Starts(section)) compiled.push_back(start);
      } else if (section.kind == CodeSectionKind::kPrecompiled) {
        for (const auto& method : runtime.PreparedMethods(section)) prepared.push_back(method.entry_point);
      }
    }
    std::mt19937_64 random(72);
    for (std::vector<uint64_t>* starts : {&compiled, &prepared}) {
      std::shuffle(starts->begin(), starts->end(), random);
      size_t generic = 0, plain = 0;
      for (const uint64_t start : *starts) {
        const auto found = runtime.Find(start);
        if (!found || !IsMethod(*found)) continue;
        size_t& count = found->name.method_args.empty() && found->name.type_args.empty() ? plain : generic;
        if (++count > 200) continue;
        names_[start] = Text(*found);
        bare_names_[start] = Text(*found, /*with_method_arguments=*/false);
      }
    }
  }

  SystemClock clock_;
  ImageFiles images_;
  ProcessTable table_{"/proc", clock_};
  RuntimeDiscovery discovery_{images_, RuntimeDiscovery::CacheBy::kFile};
  Process* process_ = nullptr;
  std::unique_ptr<TargetImages> target_images_;
  std::unique_ptr<TargetMemory> real_;
  std::unique_ptr<FaultyMemory> memory_;
  MetadataCopies copies_;
  RuntimePlace place_;
  std::map<uint64_t, std::string> names_;  // what the unmodified process says
  std::map<uint64_t, std::string> bare_names_;
};

TEST_F(HostileMemoryLiveTest, TheSameProcessHasTheSameNames) {
  auto runtime = Attach();
  ASSERT_TRUE(runtime.ok()) << runtime.status();
  for (const auto& [address, name] : names_) {
    const auto found = (*runtime)->Find(address);
    ASSERT_TRUE(found.has_value()) << name << ": " << (*runtime)->last_detail();
    EXPECT_EQ(Text(*found), name);
  }
}

TEST_F(HostileMemoryLiveTest, FaultsEndWithinTheBudget) {
  std::vector<uint64_t> known;
  for (const auto& [address, name] : names_) known.push_back(address);
  uint64_t lookups = 0, named = 0, most_reads = 0, most_bytes = 0;
  std::mt19937_64 random(73);
  for (const uint64_t one_in : {4, 16, 64, 256}) {
    for (int round = 0; round < 5; ++round) {
      memory_->one_in = 0;
      auto runtime = Attach();
      ASSERT_TRUE(runtime.ok()) << runtime.status();
      memory_->one_in = one_in;
      for (int i = 0; i < 2000; ++i) {
        uint64_t address = known[random() % known.size()] + random() % 64;
        if (i % 4 == 2) address = memory_->places[random() % memory_->places.size()] + random() % (1 << 20);
        if (i % 4 == 3) address = random() >> random() % 48;
        const uint64_t reads = memory_->reads, bytes = memory_->bytes;
        const auto found = (*runtime)->Find(address);
        named += found && IsMethod(*found) ? 1 : 0;
        ++lookups;
        most_reads = std::max(most_reads, memory_->reads - reads);
        most_bytes = std::max(most_bytes, memory_->bytes - bytes);
      }
    }
  }
  std::printf("%s\n", absl::StrCat(lookups, " lookups, ", named, " named; at most ", most_reads, " reads and ",
                                   most_bytes, " bytes for one")
                          .c_str());
  EXPECT_GT(named, 1000u);
  EXPECT_LT(named, lookups);
  // Lists of entry points, of functions and of versions, and metadata that is read anew, besides the 512 of the name.
  EXPECT_LT(most_reads, 30'000u);
  EXPECT_LT(most_bytes, uint64_t{256} << 20);
}

TEST_F(HostileMemoryLiveTest, FaultsWhileAttachingAreErrorsOrNone) {
  int attached = 0;
  for (const uint64_t one_in : {10, 100, 1000, 10'000}) {
    memory_->one_in = one_in;
    for (int round = 0; round < 20; ++round) {
      auto runtime = Attach();
      if (!runtime.ok()) {
        EXPECT_TRUE(absl::IsFailedPrecondition(runtime.status()) || absl::IsUnavailable(runtime.status()) ||
                    absl::IsDataLoss(runtime.status()) || absl::IsUnimplemented(runtime.status()) ||
                    absl::IsAborted(runtime.status()))
            << runtime.status();
        continue;
      }
      ++attached;
      for (const auto& [address, name] : names_) (*runtime)->Find(address);
    }
  }
  std::printf("%d of 80 attached\n", attached);
}

struct Field {
  const char* name;
  uint32_t* (*of)(RuntimeLayout& layout);
};
template <typename T>
uint32_t* At(T& value) {
  if constexpr (std::is_same_v<T, uint32_t>) {
    return &value;
  } else {
    return value.has_value() ? &*value : nullptr;
  }
}
const Field kFields[] = {
    {"fragment.next", [](RuntimeLayout& l) { return At(l.range_fragment.next); }},
    {"fragment.begin", [](RuntimeLayout& l) { return At(l.range_fragment.begin); }},
    {"fragment.end", [](RuntimeLayout& l) { return At(l.range_fragment.end); }},
    {"fragment.section", [](RuntimeLayout& l) { return At(l.range_fragment.section); }},
    {"section.begin", [](RuntimeLayout& l) { return At(l.range_section.begin); }},
    {"section.end", [](RuntimeLayout& l) { return At(l.range_section.end); }},
    {"section.flags", [](RuntimeLayout& l) { return At(l.range_section.flags); }},
    {"section.jit_manager", [](RuntimeLayout& l) { return At(l.range_section.jit_manager); }},
    {"section.r2r_module", [](RuntimeLayout& l) { return At(l.range_section.r2r_module); }},
    {"section.heap_list", [](RuntimeLayout& l) { return At(l.range_section.heap_list); }},
    {"section.range_list", [](RuntimeLayout& l) { return At(l.range_section.range_list); }},
    {"range_list_kind", [](RuntimeLayout& l) { return At(l.range_list_kind); }},
    {"code_heap.start", [](RuntimeLayout& l) { return At(l.code_heap.start); }},
    {"code_heap.end", [](RuntimeLayout& l) { return At(l.code_heap.end); }},
    {"code_heap.map_base", [](RuntimeLayout& l) { return At(l.code_heap.map_base); }},
    {"code_heap.header_map", [](RuntimeLayout& l) { return At(l.code_heap.header_map); }},
    {"code_header.method_desc", [](RuntimeLayout& l) { return At(l.code_header.method_desc); }},
    {"code_header.unwind_count", [](RuntimeLayout& l) { return At(l.code_header.unwind_count); }},
    {"code_header.unwinds", [](RuntimeLayout& l) { return At(l.code_header.unwinds); }},
    {"method_desc.flags3", [](RuntimeLayout& l) { return At(l.method_desc.flags3); }},
    {"method_desc.chunk_index", [](RuntimeLayout& l) { return At(l.method_desc.chunk_index); }},
    {"method_desc.slot", [](RuntimeLayout& l) { return At(l.method_desc.slot); }},
    {"method_desc.flags", [](RuntimeLayout& l) { return At(l.method_desc.flags); }},
    {"method_desc.code_data", [](RuntimeLayout& l) { return At(l.method_desc.code_data); }},
    {"chunk.method_table", [](RuntimeLayout& l) { return At(l.method_desc_chunk.method_table); }},
    {"chunk.size", [](RuntimeLayout& l) { return At(l.method_desc_chunk.size); }},
    {"chunk.token_range", [](RuntimeLayout& l) { return At(l.method_desc_chunk.token_range); }},
    {"chunk.bytes", [](RuntimeLayout& l) { return At(l.method_desc_chunk.bytes); }},
    {"instantiated.arguments", [](RuntimeLayout& l) { return At(l.instantiated_method.arguments); }},
    {"instantiated.count", [](RuntimeLayout& l) { return At(l.instantiated_method.count); }},
    {"dynamic_method_name", [](RuntimeLayout& l) { return At(l.dynamic_method_name); }},
    {"method_table.flags", [](RuntimeLayout& l) { return At(l.method_table.flags); }},
    {"method_table.base_size", [](RuntimeLayout& l) { return At(l.method_table.base_size); }},
    {"method_table.flags2", [](RuntimeLayout& l) { return At(l.method_table.flags2); }},
    {"method_table.virtuals", [](RuntimeLayout& l) { return At(l.method_table.virtuals); }},
    {"method_table.module", [](RuntimeLayout& l) { return At(l.method_table.module); }},
    {"method_table.arguments", [](RuntimeLayout& l) { return At(l.method_table.arguments); }},
    {"type_desc.argument", [](RuntimeLayout& l) { return At(l.type_desc.argument); }},
    {"type_desc.variable_module", [](RuntimeLayout& l) { return At(l.type_desc.variable_module); }},
    {"type_desc.variable_token", [](RuntimeLayout& l) { return At(l.type_desc.variable_token); }},
    {"type_desc.function_count", [](RuntimeLayout& l) { return At(l.type_desc.function_count); }},
    {"type_desc.function_types", [](RuntimeLayout& l) { return At(l.type_desc.function_types); }},
    {"module.assembly_file", [](RuntimeLayout& l) { return At(l.module.assembly_file); }},
    {"module.base", [](RuntimeLayout& l) { return At(l.module.base); }},
    {"module.flags", [](RuntimeLayout& l) { return At(l.module.flags); }},
    {"module.r2r_info", [](RuntimeLayout& l) { return At(l.module.r2r_info); }},
    {"module.dynamic_metadata", [](RuntimeLayout& l) { return At(l.module.dynamic_metadata); }},
    {"pe_assembly_image", [](RuntimeLayout& l) { return At(l.pe_assembly_image); }},
    {"pe_image.flat", [](RuntimeLayout& l) { return At(l.pe_image.flat); }},
    {"pe_image.loaded", [](RuntimeLayout& l) { return At(l.pe_image.loaded); }},
    {"pe_layout.base", [](RuntimeLayout& l) { return At(l.pe_layout.base); }},
    {"pe_layout.flags", [](RuntimeLayout& l) { return At(l.pe_layout.flags); }},
    {"r2r_info.module", [](RuntimeLayout& l) { return At(l.r2r_info.module); }},
    {"r2r_info.composite", [](RuntimeLayout& l) { return At(l.r2r_info.composite); }},
    {"r2r_info.functions", [](RuntimeLayout& l) { return At(l.r2r_info.functions); }},
    {"r2r_info.function_count", [](RuntimeLayout& l) { return At(l.r2r_info.function_count); }},
    {"r2r_info.entry_points", [](RuntimeLayout& l) { return At(l.r2r_info.entry_points); }},
    {"hash_map_buckets", [](RuntimeLayout& l) { return At(l.hash_map_buckets); }},
    {"version_state.first_node", [](RuntimeLayout& l) { return At(l.version_state.first_node); }},
    {"version_node.code", [](RuntimeLayout& l) { return At(l.version_node.code); }},
    {"version_node.method_desc", [](RuntimeLayout& l) { return At(l.version_node.method_desc); }},
    {"version_node.next", [](RuntimeLayout& l) { return At(l.version_node.next); }},
    {"version_node.tier", [](RuntimeLayout& l) { return At(l.version_node.tier); }},
    {"version_table.table", [](RuntimeLayout& l) { return At(l.version_table.table); }},
};

// Whether `text` says of some types no more than their tokens, "<emitted>!0x020000c7", and else what `name` says.
bool SaysTokensOf(absl::string_view text, absl::string_view name) {
  constexpr absl::string_view kToken = "<emitted>!0x";
  constexpr size_t kDigits = 8;
  size_t tokens = 0;
  for (size_t at = text.find(kToken); at != absl::string_view::npos; at = text.find(kToken)) {
    ++tokens;
    const absl::string_view before = text.substr(0, at);
    text.remove_prefix(std::min(text.size(), at + kToken.size() + kDigits));
    const size_t found = name.find(before);
    if (found == absl::string_view::npos || (tokens == 1 && found != 0)) return false;
    name.remove_prefix(found + before.size());
  }
  return tokens > 0 && absl::EndsWith(name, text);
}

TEST_F(HostileMemoryLiveTest, OneWrongOffsetGivesNoWrongName) {
  int refused = 0, attached = 0;
  uint64_t right = 0, bare = 0, by_token = 0, missing = 0, wrong = 0;
  for (const Field& field : kFields) {
    for (const int shift : {-8, 8, -2, 2}) {
      bool applied = false;
      place_.alter_layout = [&](RuntimeLayout& layout) {
        uint32_t* offset = field.of(layout);
        if (offset == nullptr || static_cast<int64_t>(*offset) + shift < 0) return;
        *offset = static_cast<uint32_t>(static_cast<int64_t>(*offset) + shift);
        applied = true;
      };
      auto runtime = Attach();
      if (!applied) continue;
      if (!runtime.ok()) {
        ++refused;
        continue;
      }
      ++attached;
      // Nobody vouches for a layout with which nothing could be compared.
      EXPECT_GT((*runtime)->self_test().compared, 0u) << field.name << (shift > 0 ? " +" : " ") << shift;
      uint64_t wrong_here = 0;
      std::string example;
      for (const auto& [address, name] : names_) {
        const auto found = (*runtime)->Find(address);
        if (!found || !IsMethod(*found)) {
          ++missing;
          continue;
        }
        const std::string text = Text(*found);
        if (text == name) {
          ++right;
        } else if (found->name.method_args.empty() && text == bare_names_[address]) {
          ++bare;
        } else if (SaysTokensOf(text, name)) {
          ++by_token;
        } else if (++wrong_here == 1) {
          example = absl::StrCat(text, " is ", name);
        }
      }
      wrong += wrong_here;
      EXPECT_EQ(wrong_here, 0u) << field.name << (shift > 0 ? " +" : " ") << shift << ": " << example;
    }
  }
  std::printf("%d layouts refused, %d attached: %s\n", refused, attached,
              absl::StrCat(right, " names right, ", bare, " without the method's arguments, ", by_token,
                           " with a type by its token, ", missing, " missing, ", wrong, " wrong")
                  .c_str());
  EXPECT_GT(refused, 10);
}

}  // namespace
}  // namespace clrsampler
