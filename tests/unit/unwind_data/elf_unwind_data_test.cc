#include "unwind_data/elf_unwind_data.h"

#include <execinfo.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/auxv.h>
#include <ucontext.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "formats/byte_reader.h"
#include "os/file_io.h"
#include "process/maps_mapping.h"
#include "unit/formats/elf/find_symbol.h"
#include "unit/formats/elf/frame_builder.h"
#include "unit/formats/elf/linked_image.h"
#include "unit/process/hanging_tape.h"
#include "unwind/cfi_step.h"

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define HAS_ADDRESS_SANITIZER  // clang's way of saying it
#endif
#endif
#include "unit/process/mapping_of_file.h"

namespace clrsampler {
namespace {

using testing::ElementsAreArray;
using testing::HasSubstr;

// The words of our own stack, as they are.
class OwnMemory : public StackMemory {
 public:
  std::optional<uint64_t> Word(uint64_t address) const override {
    if (address % 8 != 0 || address < low_ || address >= low_ + (64 << 20)) return std::nullopt;
    return *reinterpret_cast<const uint64_t*>(address);
  }
  explicit OwnMemory(uint64_t low) : low_(low) {}

 private:
  uint64_t low_;
};

class ElfUnwindDataTest : public testing::Test {
 protected:
  ElfUnwindDataTest()
      : process_(ProcessKey{static_cast<uint32_t>(getpid()), 1},
                 TargetFiles("/proc", static_cast<uint32_t>(getpid()))) {}

  void ReadOwnMappings() {
    const auto text = ReadWholeFile("/proc/self/maps", 64 << 20);
    for (const MapsLine& line : ParseMaps(*text, /*executable_only=*/true).lines) {
      process_.mappings.Insert(clrsampler::MappingOf(line));
    }
  }

  CodeAt At(uint64_t address) {
    const Mapping* mapping = process_.mappings.Find(address);
    return mapping == nullptr ? CodeAt() : data_->Find(process_, *mapping, address);
  }

  // As if the whole file were mapped at kBase.
  static constexpr uint64_t kBase = 0x7f0000000000;
  static Mapping MappingOf(const std::string& path, uint64_t base = kBase) { return MappingOfFile(path, base); }

  ImageFiles images_;
  Process process_;
  std::optional<ElfUnwindData> data_{std::in_place, images_};
};

class Folder {
 public:
  Folder() {
    char name[] = "/tmp/clrsampler_unwind_XXXXXX";
    path_ = mkdtemp(name);
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  std::string Write(const std::string& name, const std::string& bytes) {
    std::ofstream(path_ + "/" + name, std::ios::binary) << bytes;
    return path_ + "/" + name;
  }

 private:
  std::string path_;
};

std::string ImageWithFrames(int functions = 1, bool with_header = true) {
  FrameBuilder builder;
  const uint64_t common = builder.AddCommon();
  for (int i = 0; i < functions; ++i) {
    const uint64_t start = FrameBuilder::kCode + static_cast<uint64_t>(i) * 0x20;
    builder.AddFunction(common, start, 0x10, cfa::DefCfaOffset(24));
  }
  return builder.Build(with_header);
}

// Where FrameBuilder's code lies in a mapping of the whole file.
uint64_t CodeIn(const std::string& image) {
  return ElfImage::Parse(AsBytes(image))->ToOffset({FrameBuilder::kCode})->value;
}

#if defined(__x86_64__)
// Registers here, and what glibc says of the callers, both seen from the same frame.
struct Sight {
  ucontext_t context{};
  void* addresses[64];
  int count = 0;
};

class LiveUnwindTest : public ElfUnwindDataTest {
 protected:
  std::vector<uint64_t> Unwind(const Sight& sight) {
    ReadOwnMappings();
    const auto& gregs = sight.context.uc_mcontext.gregs;
    UnwindRegisters registers{static_cast<uint64_t>(gregs[REG_RIP]), static_cast<uint64_t>(gregs[REG_RSP]),
                              static_cast<uint64_t>(gregs[REG_RBP]), 0};
    std::vector<uint64_t> ips;
    bool exact = true;
    while (ips.size() < 64) {
      const CodeAt code = At(registers.ip - (exact ? 0 : 1));
      if (!code.has_row) {
        ADD_FAILURE() << "no row for 0x" << std::hex << registers.ip;
        break;
      }
      const CfiStepResult step = CfiStep(code.row, exact, registers, OwnMemory(registers.sp));
      if (step.outcome != CfiStepOutcome::kCaller) {
        EXPECT_EQ(step.outcome, CfiStepOutcome::kOutermost) << "at 0x" << std::hex << registers.ip;
        break;
      }
      interruptions_ += step.interrupted ? 1 : 0;
      registers = step.caller;
      exact = step.interrupted;
      ips.push_back(registers.ip);
    }
    return ips;
  }
  // glibc's walk begins with the frame that asked, ours with its caller. AddressSanitizer has a frame between the two.
  static std::vector<uint64_t> Expected(const Sight& sight) {
    std::vector<uint64_t> ips;
#if defined(__SANITIZE_ADDRESS__) || defined(HAS_ADDRESS_SANITIZER)
    constexpr int kFirst = 2;
#else
    constexpr int kFirst = 1;
#endif
    for (int i = kFirst; i < sight.count; ++i) ips.push_back(reinterpret_cast<uint64_t>(sight.addresses[i]));
    return ips;
  }
  int interruptions_ = 0;
};

TEST_F(LiveUnwindTest, OurOwnStackToItsRootAsGlibcSeesIt) {
  Sight sight;
  const auto look = [&]() {
    getcontext(&sight.context);
    sight.count = backtrace(sight.addresses, 64);
    const std::vector<uint64_t> ips = Unwind(sight);
    EXPECT_GT(ips.size(), 8u);
    EXPECT_THAT(ips, ElementsAreArray(Expected(sight)));
  };
  look();
}

LiveUnwindTest* live_test = nullptr;
std::vector<uint64_t> handler_ips;
Sight handler_sight;

class LiveSignalTest : public LiveUnwindTest {
 public:
  static void OnSignal(int) {
    getcontext(&handler_sight.context);
    handler_sight.count = backtrace(handler_sight.addresses, 64);
    auto* test = static_cast<LiveSignalTest*>(live_test);
    handler_ips = test->Unwind(handler_sight);
  }
  int interruptions() const { return interruptions_; }
};

TEST_F(LiveSignalTest, ThroughASignalHandlerAsGlibcSeesIt) {
  live_test = this;
  void* warm_up[1];
  backtrace(warm_up, 1);  // loads libgcc, before the handler does
  struct sigaction action {
  }, before{};
  action.sa_handler = OnSignal;
  ASSERT_EQ(sigaction(SIGUSR2, &action, &before), 0);
  raise(SIGUSR2);
  sigaction(SIGUSR2, &before, nullptr);
  EXPECT_EQ(interruptions(), 1);
  EXPECT_GT(handler_ips.size(), 8u);
  EXPECT_THAT(handler_ips, ElementsAreArray(Expected(handler_sight)));
}
#endif

TEST_F(ElfUnwindDataTest, TheVdsoIsReadFromOurOwn) {
  ReadOwnMappings();
  const uint64_t start = getauxval(AT_SYSINFO_EHDR);
  const Mapping* mapping = process_.mappings.Find(start);
  ASSERT_NE(mapping, nullptr);
  EXPECT_EQ(At(start).kind, CodeKind::kNative);
  EXPECT_TRUE(At(start).between_rows) << "the ELF header is no function";
  const auto* bytes = reinterpret_cast<const std::byte*>(start);
  const auto image = ElfImage::Parse({bytes, mapping->end - start});
  const auto symbol = FindSymbol(*image, "__vdso_clock_gettime");
  ASSERT_TRUE(symbol.has_value());
  EXPECT_TRUE(At(start + symbol->address.value - image->lowest_address().value).has_row);
  Mapping other = *mapping;  // of a 32-bit process
  other.end = other.start + 0x1000;
  EXPECT_FALSE(data_->Find(process_, other, start + 0x800).has_row);
}

TEST_F(ElfUnwindDataTest, BetweenFunctionsIsToldFromNoData) {
  Folder folder;
  const std::string image = ImageWithFrames();
  const Mapping mapping = MappingOf(folder.Write("frames.so", image));
  const uint64_t code = kBase + CodeIn(image);
  const CodeAt inside = data_->Find(process_, mapping, code + 0xf);
  EXPECT_EQ(inside.kind, CodeKind::kNative);
  EXPECT_TRUE(inside.has_row);
  EXPECT_EQ(inside.row.cfa_offset, 24);
  const CodeAt behind = data_->Find(process_, mapping, code + 0x10);
  EXPECT_EQ(behind.kind, CodeKind::kNative);
  EXPECT_FALSE(behind.has_row);
  EXPECT_TRUE(behind.between_rows);

  const std::string bare = FrameBuilder().Build(/*with_header=*/false);
  const std::string bare_path = folder.Write("bare.so", bare);
  const CodeAt nothing = data_->Find(process_, MappingOf(bare_path), kBase + CodeIn(bare));
  EXPECT_EQ(nothing.kind, CodeKind::kNative);
  EXPECT_FALSE(nothing.has_row);
  EXPECT_FALSE(nothing.between_rows);
  ASSERT_EQ(data_->unusable().size(), 1u);
  EXPECT_EQ(data_->unusable()[0].path, bare_path);
  EXPECT_THAT(data_->unusable()[0].reason, HasSubstr("without functions"));
}

TEST_F(ElfUnwindDataTest, WhereTheRuntimeMakesThreadsReturnTo) {
  // OnHijackTripThread of 10.0.14, to where its frame is complete.
  const std::string trap("\x50\x55\x53\x41\x57\x41\x56\x41\x55\x41\x54\x51\x52\x50\x48\x89\xe7\xe8", 18);
  const auto image_of = [](const std::string& text) {
    FrameBuilder builder;
    const uint64_t common = builder.AddCommon();
    builder.Code(FrameBuilder::kCode + 0x120, text);
    builder.AddFunction(common, FrameBuilder::kCode, 0x120, cfa::DefCfaOffset(24));
    // As if it had been called.
    builder.AddFunction(common, FrameBuilder::kCode + 0x120, 0x40,
                        cfa::Advance(1) + cfa::DefCfaOffset(16) + cfa::Advance(1) + cfa::DefCfaOffset(24));
    builder.AddFunction(common, FrameBuilder::kCode + 0x160, 0x40, cfa::Advance(1) + cfa::DefCfaOffset(16));
    return builder.Build();
  };
  Folder folder;
  const std::string image = image_of(trap);
  const Mapping mapping = MappingOf(folder.Write("runtime.so", image));
  const uint64_t code = kBase + CodeIn(image);
  EXPECT_EQ(data_->Find(process_, mapping, code + 0x11f).kind, CodeKind::kNative);
  EXPECT_EQ(data_->Find(process_, mapping, code + 0x120).kind, CodeKind::kReturnTrap);
  const CodeAt body = data_->Find(process_, mapping, code + 0x120 + 16);
  EXPECT_EQ(body.kind, CodeKind::kNative);
  EXPECT_EQ(body.row.cfa_offset, 16);
  EXPECT_EQ(data_->Find(process_, mapping, code + 0x15f).row.cfa_offset, 16);
  EXPECT_EQ(data_->Find(process_, mapping, code + 0x161).row.cfa_offset, 16) << "the function behind it is as it says";

  const std::string other = image_of(std::string("\x53\x55") + trap.substr(2));  // push rbx; push rbp
  const Mapping there = MappingOf(folder.Write("other.so", other));
  EXPECT_EQ(data_->Find(process_, there, code + 0x120).kind, CodeKind::kNative);
  EXPECT_EQ(data_->Find(process_, there, code + 0x120 + 16).row.cfa_offset, 24);
}

TEST_F(ElfUnwindDataTest, NativeAotsEpiloguesAreToldByItsCode) {
  constexpr uint64_t kFunction = FrameBuilder::kCode + 0x100;
  // push rbp; push rbx; sub rsp,8; call; add rsp,8; pop rbx; pop rbp; ret
  const std::string code("\x55\x53\x48\x83\xec\x08\xe8\0\0\0\0\x48\x83\xc4\x08\x5b\x5d\xc3", 18);
  const auto image_of = [&](const std::string& section) {
    FrameBuilder builder;
    const uint64_t common = builder.AddCommon();
    builder.Code(kFunction, code).CodeSection(section, kFunction, 0x100);
    for (const uint64_t start : {kFunction, kFunction + 0x100}) {
      builder.AddFunction(common, start, code.size(),
                          cfa::Advance(1) + cfa::DefCfaOffset(16) + cfa::Offset(6, 2) + cfa::Advance(1) +
                              cfa::DefCfaOffset(24) + cfa::Advance(4) + cfa::DefCfaOffset(32));
    }
    builder.Code(kFunction + 0x100, code);  // behind the section
    return builder.Build();
  };
  Folder folder;
  const std::string image = image_of("__managedcode");
  const Mapping mapping = MappingOf(folder.Write("program", image));
  const uint64_t start = kBase + CodeIn(image) + 0x100;
  const auto at = [&](uint64_t offset) { return data_->Find(process_, mapping, start + offset); };
  for (const uint64_t offset : {0, 1, 2, 6, 10, 11}) {
    EXPECT_TRUE(at(offset).has_row) << offset;
    EXPECT_FALSE(at(offset).has_leaf_row) << offset;  // where the row says the same, too
  }
  for (const auto& [offset, cfa_offset] : {std::pair(15, 24), {16, 16}, {17, 8}}) {
    const CodeAt code_at = at(static_cast<uint64_t>(offset));
    EXPECT_EQ(code_at.row.cfa_offset, 32) << offset;
    ASSERT_TRUE(code_at.has_leaf_row) << offset;
    EXPECT_EQ(code_at.leaf_row.cfa, CfaRule::kSpOffset) << offset;
    EXPECT_EQ(code_at.leaf_row.cfa_offset, cfa_offset) << offset;
    EXPECT_EQ(code_at.leaf_row.fp, offset == 17 ? RegisterRule::kSame : RegisterRule::kAtCfaOffset) << offset;
  }
  EXPECT_FALSE(at(0x100 + 17).has_leaf_row) << "other compilers' tables say where an epilogue is";

  const Mapping plain = MappingOf(folder.Write("plain", image_of(".managed")));
  EXPECT_FALSE(data_->Find(process_, plain, start + 17).has_leaf_row);
}

TEST_F(ElfUnwindDataTest, NativeAotsArm64LeavesAreToldByItsCode) {
  FrameBuilder::Common common;
  common.code_alignment = 4;
  common.return_register = 30;
  common.instructions = cfa::DefCfa(31, 0);
  FrameBuilder builder;
  const uint64_t common_at = builder.AddCommon(common);
  // stp x29, x30, [sp, #-32]!; mov x29, sp; bl; ldp x29, x30, [sp], #32; ret
  std::string code;
  for (const uint32_t instruction : {0xa9be7bfd, 0x910003fd, 0x94000010, 0xa8c27bfd, 0xd65f03c0})
    code += Raw(instruction);
  builder.Machine(EM_AARCH64).Code(FrameBuilder::kCode, code);
  builder.CodeSection("__managedcode", FrameBuilder::kCode, 0x100);
  builder.AddFunction(common_at, FrameBuilder::kCode, code.size(),
                      cfa::Advance(2) + cfa::DefCfa(29, 32) + cfa::Offset(29, 4) + cfa::Offset(30, 3));
  const std::string image = builder.Build();
  Folder folder;
  const Mapping mapping = MappingOf(folder.Write("program", image));
  const auto at = [&](uint64_t offset) { return data_->Find(process_, mapping, kBase + CodeIn(image) + offset); };
  for (const uint64_t offset : {0, 8, 12}) EXPECT_FALSE(at(offset).has_leaf_row) << offset;
  EXPECT_FALSE(at(15).has_leaf_row) << "a return address less one";
  for (const auto& [offset, above] : {std::pair(4, 32), {16, 0}}) {
    const CodeAt code_at = at(static_cast<uint64_t>(offset));
    ASSERT_TRUE(code_at.has_leaf_row) << offset;
    EXPECT_EQ(code_at.leaf_row.cfa, CfaRule::kSpOffset) << offset;
    EXPECT_EQ(code_at.leaf_row.cfa_offset, above) << offset;
    EXPECT_EQ(code_at.leaf_row.ra, RegisterRule::kSame) << offset;
    EXPECT_EQ(code_at.leaf_row.fp, RegisterRule::kSame) << offset;
  }
  EXPECT_EQ(at(16).row.cfa, CfaRule::kFpOffset);
}

TEST_F(ElfUnwindDataTest, WhereNativeAotMakesThreadsReturnTo) {
  // RhpGcProbeHijack of 8.0.30, which has no directives.
  const std::string trap("\x50\x52\x64\x48\x8b\x04\x25\0\0\0\0\x48\x8d\x80\x18\xff\xff\xff\x49\x89\xc3\x5a\x58", 23);
  const auto image_of = [&](const std::string& section) {
    FrameBuilder builder;
    builder.AddFunction(builder.AddCommon(), FrameBuilder::kCode + 0x120, 0x40, "");
    builder.Code(FrameBuilder::kCode + 0x120, trap).Code(FrameBuilder::kCode + 0x140, trap);
    builder.CodeSection(section, FrameBuilder::kCode + 0x1000, 0x100);
    return builder.Build();
  };
  Folder folder;
  const std::string image = image_of("__managedcode");
  const Mapping mapping = MappingOf(folder.Write("program", image));
  const uint64_t code = kBase + CodeIn(image);
  EXPECT_EQ(data_->Find(process_, mapping, code + 0x120).kind, CodeKind::kReturnTrap);
  EXPECT_EQ(data_->Find(process_, mapping, code + 0x140).kind, CodeKind::kNative) << "inside";
  EXPECT_TRUE(data_->Find(process_, mapping, code + 0x11f).no_call);
  const Mapping other = MappingOf(folder.Write("other", image_of(".data")));
  EXPECT_EQ(data_->Find(process_, other, code + 0x120).kind, CodeKind::kNative);
}

std::string Arm64Code(std::initializer_list<uint32_t> instructions) {
  std::string code;
  for (const uint32_t instruction : instructions) code += Raw(instruction);
  return code;
}

// Three functions of 64 bytes; `code` is that of the one in the middle, which has `instructions`.
std::string Arm64Image(const std::string& code, const std::string& instructions, const std::string& section) {
  FrameBuilder::Common common;
  common.code_alignment = 4;
  common.return_register = 30;
  common.instructions = cfa::DefCfa(31, 0);
  FrameBuilder builder;
  builder.Machine(EM_AARCH64).Code(FrameBuilder::kCode + 0x3c, Arm64Code({0xd61f0180}));  // br x12
  const uint64_t common_at = builder.AddCommon(common);
  for (const uint64_t at : {0x0, 0x40, 0x80}) {
    builder.AddFunction(common_at, FrameBuilder::kCode + at, 0x40, at == 0x40 ? instructions : "");
  }
  builder.Code(FrameBuilder::kCode + 0x40, code).CodeSection(section, FrameBuilder::kCode + 0x1000, 0x100);
  return builder.Build();
}

TEST_F(ElfUnwindDataTest, WhereTheRuntimeMakesThreadsReturnToOnArm64) {
  const std::string saved = Arm64Code(
      {0x910003fd, 0xa90153f3, 0xa9025bf5, 0xa90363f7, 0xa9046bf9, 0xa90573fb, 0xa90607e0});  // from mov x29, sp on
  Folder folder;
  uint64_t base = kBase;
  const auto kind_of = [&](const std::string& code, uint64_t offset) {
    const std::string image = Arm64Image(code, cfa::Advance(1) + cfa::DefCfaOffset(176), ".text");
    base += 1 << 30;
    const Mapping mapping = MappingOf(folder.Write(absl::StrCat(base, ".so"), image), base);
    EXPECT_TRUE(data_->Find(process_, mapping, base + CodeIn(image) + 0x3f).no_call);
    return data_->Find(process_, mapping, base + CodeIn(image) + offset).kind;
  };
  // OnHijackTripThread of 9.0.23, 10.0.15 and 11.0.0.
  const std::string of_9 = Arm64Code({0xa9b57bfd}) + saved + Arm64Code({0xad0387e0});
  EXPECT_EQ(kind_of(of_9, 0x40), CodeKind::kReturnTrap);
  EXPECT_EQ(kind_of(of_9, 0x44), CodeKind::kNative) << "only its first byte is returned to";
  EXPECT_EQ(kind_of(of_9, 0x3f), CodeKind::kNative) << "the function before it";
  const std::string of_10 = saved + Arm64Code({0xf9003be2, 0xad0407e0});
  EXPECT_EQ(kind_of(Arm64Code({0xa9b47bfd}) + of_10, 0x40), CodeKind::kReturnTrap);
  EXPECT_EQ(kind_of(Arm64Code({0xa9b37bfd}) + of_10, 0x40), CodeKind::kReturnTrap);
  // A compiler's function that saves as many registers.
  EXPECT_EQ(kind_of(Arm64Code({0xa9b57bfd}) + saved + Arm64Code({0xf9003be2, 0xf9003fe3}), 0x40), CodeKind::kNative);
}

TEST_F(ElfUnwindDataTest, WhereNativeAotMakesThreadsReturnToOnArm64) {
  // RhpGcProbeHijack of 9.0.23, as a linker leaves it.
  const std::string trap = Arm64Code({0xa9bf7be0, 0xd2a00000, 0xf2800400, 0xd503201f, 0xd503201f, 0xd53bd042,
                                      0x8b000042, 0xa8c17be0, 0xa947305e, 0xa906fc5f});
  const std::string image = Arm64Image(trap, "", "__managedcode");
  Folder folder;
  const Mapping mapping = MappingOf(folder.Write("program", image));
  const uint64_t code = kBase + CodeIn(image);
  EXPECT_EQ(data_->Find(process_, mapping, code + 0x40).kind, CodeKind::kReturnTrap);
  EXPECT_EQ(data_->Find(process_, mapping, code + 0x44).kind, CodeKind::kNative);
  EXPECT_TRUE(data_->Find(process_, mapping, code + 0x3f).no_call) << "so that the one behind it is asked about";
  const std::string other_image = Arm64Image(trap, "", ".text");
  const Mapping other = MappingOf(folder.Write("other", other_image));
  EXPECT_EQ(data_->Find(process_, other, code + 0x40).kind, CodeKind::kNative) << "no program of NativeAOT";
}

TEST_F(ElfUnwindDataTest, WhatACallBeforeAReturnAddressCalls) {
  constexpr uint64_t kCode = FrameBuilder::kCode;
  FrameBuilder builder;
  builder.AddFunction(builder.AddCommon(), kCode, 0x10, cfa::DefCfaOffset(24));
  builder.Code(kCode + 0x20, "\xe8" + Raw(int32_t{0x1b}));  // to 0x40
  builder.Code(kCode + 0x30, "\xff\xd0");                   // call rax
  builder.Code(kCode + 0x40, "\xc3");
  builder.Code(kCode + 0x50, "\xe8" + Raw(int32_t{0x2b}));                              // to 0x80
  builder.Code(kCode + 0x80, std::string("\xf3\x0f\x1e\xfa\xf2\xff\x25\0\0\0\0", 11));  // endbr64; bnd jmp [rip+n]
  builder.Code(kCode + 0x90, "\xe8" + Raw(int32_t{0x7fffffff}));                        // to nowhere
  const std::string image = builder.Build();
  Folder folder;
  const Mapping mapping = MappingOf(folder.Write("calls.so", image));
  const uint64_t code = kBase + CodeIn(image);
  const auto before = [&](uint64_t return_address) {
    return data_->Find(process_, mapping, code + return_address - 1);
  };
  EXPECT_EQ(before(0x25).call_distance, 0x1b);
  EXPECT_FALSE(before(0x25).no_call);
  EXPECT_EQ(before(0x32).call_distance, 0);
  EXPECT_FALSE(before(0x32).no_call);
  EXPECT_TRUE(before(0x24).no_call) << "inside the call";
  EXPECT_TRUE(before(0x41).no_call) << "behind a return";
  EXPECT_EQ(before(0x55).call_distance, 0) << "where an entry of the PLT leads is not known";
  EXPECT_FALSE(before(0x55).no_call);
  EXPECT_EQ(before(0x95).call_distance, 0x7fffffff);
}

TEST_F(ElfUnwindDataTest, FailuresAreRememberedAndListedOnce) {
  Folder folder;
  const std::string path = folder.Write("torn.so", ImageWithFrames().substr(0, 100));
  const Mapping torn = MappingOf(path);
  Mapping gone = MappingOf(path, 2 * kBase);
  gone.path = "/nowhere/gone.so";
  gone.inode += 1'000'000;
  for (int i = 0; i < 5; ++i) {
    EXPECT_FALSE(data_->Find(process_, torn, kBase + 10).has_row);
    EXPECT_FALSE(data_->Find(process_, gone, 2 * kBase + 10).has_row);
  }
  EXPECT_EQ(data_->counters().images_unusable, 2u);
  ASSERT_EQ(data_->unusable().size(), 2u);
  EXPECT_EQ(data_->unusable()[0].path, path);
  EXPECT_EQ(data_->unusable()[1].path, "/nowhere/gone.so");
  EXPECT_FALSE(data_->unusable()[1].reason.empty());
}

// musl's libc: 16 KB of code, and a table of what the compiler's own start-up files bring.
TEST_F(ElfUnwindDataTest, WithNextToNoUnwindDataTheDebugFileIsAskedAndThenTheCode) {
  constexpr uint64_t kText = 0x1000, kFunction = 0x1020;
  std::string code(0x4000, '\xcc');
  code.replace(0, 3, "\x53\x5b\xc3");
  code.replace(kFunction - kText, 11, "\x53\x48\x83\xec\x10\x48\x83\xc4\x10\x5b\xc3");  // push; sub; add; pop; ret
  LinkedImage library(EM_X86_64);
  library.Add({.name = ".text", .flags = SHF_ALLOC | SHF_EXECINSTR, .address = kText, .bytes = code});
  library.AddUnwindTables(0x8000, {{kText, 3}}).AddSymbols(".dynsym", ".dynstr", {{"f", kFunction, 0}}).BuildId("0123");
  const std::string image = library.Build();
  Folder folder;
  const Mapping mapping = MappingOf(folder.Write("libc.so", image));
  const uint64_t function = kBase + ElfImage::Parse(AsBytes(image))->ToOffset({kFunction})->value;

  const CodeAt by_code = data_->Find(process_, mapping, function + 5);
  ASSERT_TRUE(by_code.has_row);
  EXPECT_EQ(by_code.row.cfa_offset, 32);
  EXPECT_FALSE(data_->Find(process_, mapping, function + 0x1000).has_row);
  EXPECT_EQ(data_->counters().images_by_code, 1u);
  EXPECT_EQ(data_->counters().debug_files_used, 0u);
  ASSERT_EQ(data_->extents().size(), 1u);
  EXPECT_TRUE(data_->extents()[0].by_code);
  EXPECT_EQ(data_->extents()[0].extent.code_bytes, code.size());
  EXPECT_EQ(data_->extents()[0].extent.covered_bytes, 14u);

  FrameBuilder frames(FrameBuilder::Section::kDebugFrame);
  FrameBuilder::Common common;
  common.augmentation = "";
  frames.AddFunction(frames.AddCommon(common), kFunction, 0x3000, cfa::Advance(1) + cfa::DefCfaOffset(48));
  LinkedImage debug(EM_X86_64);
  debug.Add({.name = ".text",
             .type = SHT_NOBITS,
             .flags = SHF_ALLOC | SHF_EXECINSTR,
             .address = kText,
             .memory_bytes = code.size()});
  debug.Add({.name = ".debug_frame", .flags = 0, .bytes = frames.bytes()}).BuildId("0123");
  debug.AddSymbols(".symtab", ".strtab", {{"f", kFunction, 11}});
  const std::string path = folder.Write("x", "");
  const std::string root = std::filesystem::path(path).parent_path() / "debug";
  std::filesystem::create_directories(root + "/.build-id/30");
  folder.Write("debug/.build-id/30/313233.debug", debug.Build());
  ElfUnwindData with_debug_file(images_, {.max_bytes = 32 << 20, .host_debug_root = root});
  const CodeAt by_debug_file = with_debug_file.Find(process_, mapping, function + 5);
  ASSERT_TRUE(by_debug_file.has_row);
  EXPECT_EQ(by_debug_file.row.cfa_offset, 48);
  EXPECT_EQ(with_debug_file.counters().debug_files_used, 1u);
  EXPECT_EQ(with_debug_file.counters().images_by_code, 0u);
}

TEST_F(ElfUnwindDataTest, OtherFilesAndOtherPartsOfAFileAreNotNativeCode) {
  Folder folder;
  EXPECT_EQ(data_->Find(process_, MappingOf(folder.Write("a.dll", "MZ, no ELF image")), kBase + 4).kind,
            CodeKind::kUnknown);
  const std::string image = ImageWithFrames() + std::string(0x1000, 'b');
  const Mapping bundle = MappingOf(folder.Write("host", image), 2 * kBase);
  EXPECT_EQ(data_->Find(process_, bundle, bundle.end - 8).kind, CodeKind::kUnknown);
  Mapping jit = bundle;
  jit.kind = MappingKind::kJitMemory;
  EXPECT_EQ(data_->Find(process_, jit, jit.start + CodeIn(image)).kind, CodeKind::kUnknown);
  EXPECT_EQ(data_->Find(process_, bundle, bundle.end).kind, CodeKind::kUnknown);
  EXPECT_TRUE(data_->unusable().empty());
}

TEST_F(ElfUnwindDataTest, ProcessesShareAnImage) {
  Folder folder;
  const std::string image = ImageWithFrames(200, /*with_header=*/false);
  const Mapping mapping = MappingOf(folder.Write("shared.so", image));
  EXPECT_TRUE(data_->Find(process_, mapping, kBase + CodeIn(image)).has_row);
  const uint64_t bytes = data_->counters().bytes;
  Process other(ProcessKey{static_cast<uint32_t>(getpid()), 2}, TargetFiles("/proc", static_cast<uint32_t>(getpid())));
  EXPECT_TRUE(data_->Find(other, mapping, kBase + CodeIn(image)).has_row);
  EXPECT_EQ(data_->counters().images_opened, 1u);
  EXPECT_EQ(data_->counters().bytes, bytes);
  process_.ends->Announce(process_.key);
  EXPECT_TRUE(data_->Find(other, mapping, kBase + CodeIn(image)).has_row);
}

TEST_F(ElfUnwindDataTest, WhatWasUsedLongestAgoGoesWhenThereIsNoRoom) {
  Folder folder;
  const std::string image = ImageWithFrames(500, /*with_header=*/false);
  constexpr size_t kMaxBytes = 30'000;
  data_.emplace(images_, ElfUnwindData::Options{.max_bytes = kMaxBytes});
  std::vector<Mapping> mappings;
  for (uint64_t i = 0; i < 12; ++i) {
    mappings.push_back(MappingOf(folder.Write(absl::StrCat(i, ".so"), image), kBase + (i << 30)));
    const CodeAt code = data_->Find(process_, mappings.back(), mappings.back().start + CodeIn(image));
    EXPECT_TRUE(code.has_row);
    EXPECT_LE(data_->counters().bytes, kMaxBytes);
  }
  EXPECT_GT(data_->counters().images_evicted, 5u);
  const uint64_t opened = data_->counters().images_opened;
  EXPECT_TRUE(data_->Find(process_, mappings[11], mappings[11].start + CodeIn(image)).has_row);
  EXPECT_EQ(data_->counters().images_opened, opened) << "the last one is still there";
  EXPECT_TRUE(data_->Find(process_, mappings[0], mappings[0].start + CodeIn(image)).has_row);
  EXPECT_EQ(data_->counters().images_opened, opened + 1) << "the first one is made again";
  EXPECT_TRUE(data_->unusable().empty());
}

TEST_F(ElfUnwindDataTest, AnImageThatIsLargerThanAllTheRoomIsUnusable) {
  Folder folder;
  const std::string path = folder.Write("large.so", ImageWithFrames(2000, /*with_header=*/false));
  data_.emplace(images_, ElfUnwindData::Options{.max_bytes = 8000});
  EXPECT_FALSE(data_->Find(process_, MappingOf(path), kBase + 0x2000).has_row);
  ASSERT_EQ(data_->unusable().size(), 1u);
  EXPECT_LE(data_->counters().bytes, 8000u);
}

TEST_F(ElfUnwindDataTest, AFileThatIsTruncatedWhileItIsUsedIsNotBelieved) {
  Folder folder;
  const std::string image = ImageWithFrames(400);
  const std::string path = folder.Write("shrinks.so", image);
  const Mapping mapping = MappingOf(path);
  const uint64_t code = kBase + CodeIn(image);
  EXPECT_TRUE(data_->Find(process_, mapping, code).has_row);
  std::filesystem::resize_file(path, 0x1000);
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(data_->Find(process_, mapping, code + 300 * 0x20).has_row);
  ASSERT_EQ(data_->unusable().size(), 1u);
  EXPECT_THAT(data_->unusable()[0].reason, HasSubstr("truncated"));
}

TEST_F(ElfUnwindDataTest, AFileSystemThatDoesNotAnswerIsAskedAgainAfterASecond) {
  Folder folder;
  const std::string image = ImageWithFrames();
  const Mapping mapping = MappingOf(folder.Write("a.so", image));
  HangingTape tape;
  const Process slow(ProcessKey{1, 1}, TargetFiles("/proc", static_cast<uint32_t>(getpid()), &tape));
  FakeClock clock;
  ImageFiles images(nullptr, &clock);
  data_.emplace(images);
  const auto at = [&](uint64_t time_ns) {
    clock.Set({time_ns});
    return data_->Find(slow, mapping, kBase + CodeIn(image));
  };
  EXPECT_TRUE(at(kSecondNs).unavailable);
  EXPECT_FALSE(at(kSecondNs).has_row);
  EXPECT_TRUE(at(2 * kSecondNs - 1).unavailable);
  EXPECT_EQ(tape.opens, 1);
  EXPECT_TRUE(at(2 * kSecondNs).unavailable);
  EXPECT_EQ(tape.opens, 2);
  EXPECT_EQ(data_->counters().images_unusable, 1u) << "it is said once";
  tape.hangs = false;
  EXPECT_FALSE(at(3 * kSecondNs).unavailable);
  EXPECT_TRUE(at(3 * kSecondNs).has_row);
  data_.reset();
}

}  // namespace
}  // namespace clrsampler
