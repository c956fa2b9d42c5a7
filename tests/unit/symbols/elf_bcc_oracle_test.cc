// bcc names the same functions (bcc_syms.h): for the middle of every function of libraries that are loaded here, both
// answers are the same name, or two names of one function.
#include <bcc/bcc_syms.h>
#include <dlfcn.h>
#include <glob.h>
#include <gtest/gtest.h>
#include <link.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "formats/elf/elf_symbols.h"
#include "os/file_io.h"
#include "os/mapped_file.h"
#include "unit/formats/elf/find_symbol.h"

namespace clrsampler {
namespace {

struct Loaded {
  uint64_t base = 0;
  std::string path;
};

Loaded Find(const std::string& part) {
  struct Search {
    const std::string* part;
    Loaded found;
  } search{&part, {}};
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* opaque) {
        auto* s = static_cast<Search*>(opaque);
        if (std::string(info->dlpi_name).find(*s->part) != std::string::npos)
          s->found = {info->dlpi_addr, info->dlpi_name};
        return 0;
      },
      &search);
  return search.found;
}

void Compare(const Loaded& library, size_t at_least) {
  ASSERT_FALSE(library.path.empty());
  auto fd = OpenForReading(library.path);
  ASSERT_TRUE(fd.ok());
  auto file = MappedFile::Map(fd->get(), 0, 0, 1 << 30);
  ASSERT_TRUE(file.ok());
  const auto image = ElfImage::Parse(file->bytes());
  ASSERT_TRUE(image.ok());
  const ElfSymbols symbols = ElfSymbols::Build(*image, *image);

  bcc_symbol_option option{};
  option.use_debug_file = 0;
  option.use_symbol_type = (1 << STT_FUNC) | (1 << STT_GNU_IFUNC);
  void* cache = bcc_symcache_new(getpid(), &option);
  ASSERT_NE(cache, nullptr);
  size_t same_name = 0, alias = 0, differ = 0;
  for (size_t i = 0; i < symbols.size(); ++i) {
    const FunctionSymbol ours = symbols.At(i);
    const uint64_t address = ours.start.value + (ours.end.value - ours.start.value) / 2;
    bcc_symbol theirs{};
    if (bcc_symcache_resolve_no_demangle(cache, library.base + address, &theirs) != 0) {
      // bcc gives a symbol without size no extent.
      const auto entry = FindSymbol(*image, ours.name);
      if (!entry || entry->size != 0) ++differ;
      continue;
    }
    if (ours.name == absl::string_view(theirs.name)) {
      ++same_name;
    } else if (address - theirs.offset == ours.start.value) {
      ++alias;
    } else {
      ++differ;
      ADD_FAILURE() << library.path << " 0x" << std::hex << address << ": ours " << std::string(ours.name) << ", bcc "
                    << theirs.name;
    }
  }
  bcc_free_symcache(cache, getpid());
  EXPECT_EQ(differ, 0u);
  EXPECT_GE(same_name + alias, at_least);
  std::printf("%s: %zu the same name, %zu aliases of the same function\n", library.path.c_str(), same_name, alias);
}

TEST(ElfBccOracleTest, Libc) { Compare(Find("libc.so.6"), 1000); }

TEST(ElfBccOracleTest, Libstdcxx) { Compare(Find("libstdc++.so"), 3000); }

TEST(ElfBccOracleTest, TheJitOfDotnet) {
  glob_t found{};
  const bool any = glob("/usr/share/dotnet/shared/Microsoft.NETCore.App/*/libclrjit.so", 0, nullptr, &found) == 0;
  const std::string path = any ? found.gl_pathv[0] : "";
  globfree(&found);
  if (!any) {
    if (std::getenv("CLRSAMPLER_REQUIRE_LIVE") != nullptr) FAIL() << "no .NET runtime is installed";
    GTEST_SKIP() << "no .NET runtime is installed";
  }
  ASSERT_NE(dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL), nullptr) << dlerror();
  Compare(Find("libclrjit.so"), 4);
}

}  // namespace
}  // namespace clrsampler
