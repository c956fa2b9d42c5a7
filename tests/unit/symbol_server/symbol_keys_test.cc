#include "symbol_server/symbol_keys.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/escaping.h"
#include "formats/byte_reader.h"
#include "status/status.h"

namespace clrsampler {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::optional<SymbolFileKey> ElfKey(absl::string_view id_hex, absl::string_view path) {
  const std::string id = absl::HexStringToBytes(id_hex);
  return ElfDebugKey(AsBytes(id), path);
}

// The examples of SSQP_Key_Conventions.md.
TEST(SymbolKeysTest, DocumentedExamplesOfSsqp) {
  EXPECT_THAT(SsqpPaths(*ElfKey("180a373d6afbabf0eb1f09be1bc45bd796a71085", "/usr/lib/foo.so")),
              ElementsAre("_.debug/elf-buildid-sym-180a373d6afbabf0eb1f09be1bc45bd796a71085/_.debug",
                          "foo.so/elf-buildid-180a373d6afbabf0eb1f09be1bc45bd796a71085/foo.so"));
  EXPECT_THAT(SsqpPaths(*ElfKey("180a373d6afbabf0eb1f09be1bc45bd7", "bar.so")),
              ElementsAre("_.debug/elf-buildid-sym-180a373d6afbabf0eb1f09be1bc45bd700000000/_.debug",
                          "bar.so/elf-buildid-180a373d6afbabf0eb1f09be1bc45bd700000000/bar.so"));
}

TEST(SymbolKeysTest, AnR2rMapIsKeyedByNameVersionAndSignature) {
  const std::array<uint8_t, 16> signature = {0x0a, 0xff, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14};
  const auto key = R2rMapKey(signature, 1, "C:\\build\\System.Private.CoreLib.ni.r2rmap");
  ASSERT_TRUE(key.has_value());
  EXPECT_THAT(SsqpPaths(*key),
              ElementsAre("system.private.corelib.ni.r2rmap/r2rmap-v1-0aff0102030405060708090a0b0c0d0e/"
                          "system.private.corelib.ni.r2rmap"));
  EXPECT_EQ(CacheFileName(*key), "r2rmap-v1-0aff0102030405060708090a0b0c0d0e.r2rmap");
  EXPECT_FALSE(R2rMapKey(signature, 1, "folder/").has_value());
}

PdbReference Reference(const std::string& path) {
  PdbReference reference;
  for (uint8_t i = 0; i < reference.id.bytes.size(); ++i) reference.id.bytes[i] = i;
  reference.path = path;
  return reference;
}

// The GUID's first three numbers stand with their low byte first.
TEST(SymbolKeysTest, APortablePdbIsKeyedByNameAndGuid) {
  const std::string hash("\x0a\xff", 2);
  const std::vector<PdbChecksum> checksums = {
      {"no name", AsBytes(hash)}, {"SHA256", AsBytes(hash)}, {"MD5", AsBytes(hash)}};
  const auto key = PortablePdbKey(Reference("D:\\a\\obj\\My.Library.pdb"), checksums);
  ASSERT_TRUE(key.has_value());
  EXPECT_THAT(SsqpPaths(*key), ElementsAre("my.library.pdb/030201000504070608090a0b0c0d0e0fffffffff/my.library.pdb"));
  EXPECT_THAT(DebuginfodPaths(*key), IsEmpty());
  EXPECT_EQ(SsqpHeader(*key), "SymbolChecksum: SHA256:0aff");
  EXPECT_EQ(CacheFileName(*key), "pdb-030201000504070608090a0b0c0d0e0fffffffff-13121110.pdb");
}

TEST(SymbolKeysTest, APdbWithoutANameOrAnIdIsNotAskedFor) {
  EXPECT_FALSE(PortablePdbKey(Reference("/obj/"), {}).has_value());
  PdbReference zero;
  zero.path = "a.pdb";
  EXPECT_FALSE(PortablePdbKey(zero, {}).has_value());
}

TEST(SymbolKeysTest, AChecksumThatIsNoneIsNotSent) {
  const std::string hash("\x0a", 1), long_hash(65, 'x');
  for (const PdbChecksum& checksum :
       {PdbChecksum{"SHA256\r\nHost: other", AsBytes(hash)}, PdbChecksum{"", AsBytes(hash)}, PdbChecksum{"SHA256", {}},
        PdbChecksum{"SHA256", AsBytes(long_hash)}}) {
    const auto key = PortablePdbKey(Reference("a.pdb"), std::span(&checksum, 1));
    ASSERT_TRUE(key.has_value());
    EXPECT_EQ(SsqpHeader(*key), "") << checksum.algorithm;
  }
}

TEST(SymbolKeysTest, HostileNamesStayInTheirPlace) {
  const std::string id = "180a373d6afbabf0eb1f09be1bc45bd796a71085";
  const auto by_name = [&](absl::string_view path) {
    const auto paths = SsqpPaths(*ElfKey(id, path));
    return paths.size() == 2 ? paths[1] : "";
  };
  EXPECT_EQ(by_name("/lib/../../etc/passwd"), "passwd/elf-buildid-" + id + "/passwd");
  EXPECT_EQ(by_name("/lib/.."), "");
  EXPECT_EQ(by_name("/lib/a\nHost: other"), "");
  EXPECT_EQ(by_name("/lib/" + std::string(300, 'a')), "");
  EXPECT_EQ(by_name("/lib/a b?c#d%2e%2e.so"),
            "a%20b%3Fc%23d%252e%252e.so/elf-buildid-" + id + "/a%20b%3Fc%23d%252e%252e.so");
  EXPECT_EQ(by_name("/lib/..\\..\\x.so"), "x.so/elf-buildid-" + id + "/x.so");
  EXPECT_EQ(CacheFileName(*ElfKey(id, "/../../x")), "elf-" + id + ".debug") << "no name gets into the cache";
}

TEST(SymbolKeysTest, BuildIdsThatTellNoBuildsApartAreNoKeys) {
  EXPECT_FALSE(ElfKey("", "a.so").has_value());
  EXPECT_FALSE(ElfKey("01020304", "a.so").has_value());
  EXPECT_FALSE(ElfKey(std::string(40, '0'), "a.so").has_value());
  EXPECT_FALSE(ElfKey(std::string(2 * 65, 'a'), "a.so").has_value());
  // Longer than SSQP knows, but debuginfod takes it.
  const auto sha256 = ElfKey(std::string(64, 'b'), "a.so");
  ASSERT_TRUE(sha256.has_value());
  EXPECT_THAT(SsqpPaths(*sha256), IsEmpty());
}

TEST(SymbolKeysTest, AddressesOfServers) {
  EXPECT_EQ(*ParseSymbolServerUrl("https://debuginfod.debian.net/"),
            (SymbolServerUrl{"https://debuginfod.debian.net", true, true}));
  EXPECT_EQ(*ParseSymbolServerUrl("debuginfod.debian.net"),
            (SymbolServerUrl{"https://debuginfod.debian.net", true, true}));
  EXPECT_EQ(*ParseSymbolServerUrl("ssqp+https://msdl.microsoft.com/download/symbols"),
            (SymbolServerUrl{"https://msdl.microsoft.com/download/symbols", false, true}));
  EXPECT_EQ(*ParseSymbolServerUrl("debuginfod+http://localhost:8002"),
            (SymbolServerUrl{"http://localhost:8002", true, false}));
  EXPECT_EQ(*ParseSymbolServerUrl("microsoft"),
            *ParseSymbolServerUrl("ssqp+https://msdl.microsoft.com/download/symbols"));
  EXPECT_EQ(*ParseSymbolServerUrl("nuget"),
            (SymbolServerUrl{absl::StrCat("https://symbols.", "nuget", ".org/download/symbols"), false, true}));
  EXPECT_EQ(ParseSymbolServerUrl("https://microsoft")->base, "https://microsoft")
      << "a host of that name can be asked too";
  for (const char* bad : {"", "ftp://host", "file:///etc", "https://", "https:///path", "https://user:secret@host/",
                          "https://host?x", "https://host#x", "https://a b", "https://a\nb", "https://:80/"}) {
    const auto server = ParseSymbolServerUrl(bad);
    EXPECT_TRUE(absl::IsInvalidArgument(server.status())) << bad;
    EXPECT_FALSE(HintOf(server.status()).empty()) << bad;
  }
}

}  // namespace
}  // namespace clrsampler
