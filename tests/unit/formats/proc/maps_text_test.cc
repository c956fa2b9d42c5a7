#include "formats/proc/maps_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/auxv.h>

#include "os/file_io.h"

namespace clrsampler {
namespace {

TEST(MapsTextTest, ReadsEveryField) {
  const auto line =
      ParseMapsLine("7f5c1a000000-7f5c1a021000 r-xp 001d0000 fd:10 131082                     /usr/lib/libcoreclr.so");
  ASSERT_TRUE(line.has_value());
  EXPECT_EQ(line->start, 0x7f5c1a000000u);
  EXPECT_EQ(line->end, 0x7f5c1a021000u);
  EXPECT_TRUE(line->readable && line->executable && !line->writable && !line->shared);
  EXPECT_EQ(line->file_offset, 0x1d0000u);
  EXPECT_EQ(line->device_major, 0xfdu);
  EXPECT_EQ(line->device_minor, 0x10u);
  EXPECT_EQ(line->inode, 131082u);
  EXPECT_EQ(line->path, "/usr/lib/libcoreclr.so");
}

TEST(MapsTextTest, AnonymousMemoryHasNoPath) {
  for (const char* text : {"1000-2000 rw-p 00000000 00:00 0", "1000-2000 rw-p 00000000 00:00 0 "}) {
    const auto line = ParseMapsLine(text);
    ASSERT_TRUE(line.has_value()) << text;
    EXPECT_EQ(line->path, "");
    EXPECT_EQ(line->inode, 0u);
  }
}

TEST(MapsTextTest, PathsKeepBlanksAndMarksAndGetNewlinesBack) {
  EXPECT_EQ(ParseMapsLine("1000-2000 r-xs 00000000 00:01 2050   /memfd:doublemapper (deleted)")->path,
            "/memfd:doublemapper (deleted)");
  EXPECT_EQ(ParseMapsLine("1000-2000 r-xp 00000000 00:01 7      /opt/my app/a\\012b.so")->path, "/opt/my app/a\nb.so");
  EXPECT_EQ(WithoutDeletedMark("/opt/a.so (deleted)"), "/opt/a.so");
  EXPECT_EQ(WithoutDeletedMark("/opt/a.so"), "/opt/a.so");
}

TEST(MapsTextTest, RefusesWhatIsNoLine) {
  for (const char* text :
       {"", "garbage", "1000-2000", "2000-1000 r-xp 00000000 00:00 0", "1000-1000 r-xp 00000000 00:00 0",
        "1000-2000 rwxq 00000000 00:00 0", "1000-2000 r-xp zz 00:00 0", "1000-2000 r-xp 0 00 0",
        "11112222333344445-2000 r-xp 00000000 00:00 0", "1000-2000 r-xp 00000000 00:00 99999999999999999999",
        "1000-2000 r-xp 00000000 1ffffffff:00 0", "1000-2000 r-xp 00000000 00:00 0x"}) {
    EXPECT_FALSE(ParseMapsLine(text).has_value()) << text;
  }
}

TEST(MapsTextTest, CountsDamagedLinesAndKeepsTheOthers) {
  const MapsText maps = ParseMaps("1000-2000 r-xp 00000000 00:00 0\nnoise\n3000-4000 rw-p 00000000 00:00 0\n5000-");
  EXPECT_EQ(maps.lines.size(), 2u);
  EXPECT_EQ(maps.damaged_lines, 2u);
  EXPECT_EQ(ParseMaps("1000-2000 r-xp 00000000 00:00 0\n3000-4000 rw-p 00000000 00:00 0\n", true).lines.size(), 1u);
}

TEST(MapsTextTest, ReadsOurOwnMaps) {
  const auto text = ReadWholeFile("/proc/self/maps", 64 << 20);
  ASSERT_TRUE(text.ok());
  const MapsText maps = ParseMaps(*text);
  EXPECT_EQ(maps.damaged_lines, 0u);
  const auto here = reinterpret_cast<uint64_t>(&ParseMapsLine);
  bool found_code = false, found_vdso = false;
  for (const MapsLine& line : maps.lines) {
    if (line.start <= here && here < line.end) found_code = line.executable && line.inode != 0;
    if (line.path == "[vdso]") found_vdso = line.start == getauxval(AT_SYSINFO_EHDR);
  }
  EXPECT_TRUE(found_code);
  EXPECT_TRUE(found_vdso);
}

}  // namespace
}  // namespace clrsampler
