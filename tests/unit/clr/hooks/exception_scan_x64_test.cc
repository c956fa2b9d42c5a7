// Code as it stands in libcoreclr.so of 8.0.34 (linux-x64), at 0x3b7cf0 and 0x20b9f0.
#include "clr/hooks/exception_scan_x64.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/escaping.h"
#include "formats/byte_reader.h"

namespace clrsampler {
namespace {

constexpr VirtualAddress kStart{0x3b7cf0}, kReaderStart{0x20b9f0};

std::string Code(const char* hex) { return absl::HexStringToBytes(hex); }

// ETW::ExceptionLog::ExceptionThrown, to where it has the address that it reports.
const std::string kReport = Code(
    "554889e54157415641554154534881ecc800000064488b042528000000488945d009f20f84420300004189f64889fb803d7bb02e0000741c"
    "803d71b02e0001741348b8008000000200000048230566b02e00752f488b0565b02e00807809000f8406030000807808010f84fc02000048"
    "b90080000002000000488548100f84e802000066488d3dad512c00666648e84d672a004989c7488b08c745a80000000048c745b000000000"
    "48894db84885c97409488b41108b490ceb0431c031c9488945c0894dc80f57c00f114598488d05dd4e2c0048894590e85433dfff48894598"
    "488b0848894da0488d4d9048890848b8020000000200000048898578ffffffc7458010000000488d054b55d1ff48894588488d35041dceff"
    "488dbd78ffffffe88c4a10004d8b3f0f57c00f298560ffffff48c78570ffffff00000000488dbd40ffffff488d9560ffffff4c89feb90300"
    "00004531c0e866d9e5ff4981c7e00100004c89ffe8973be5ff48898560ffffff488b482048898d68ffffff498b0f4c8b7908488b38e8867b"
    "e4ff85c07439488b8560ffffff4c8b20488d05f1482e00488b4008488b80b00800004885c0750abf16010000e827a9e0ff4939c40f95c089"
    "8530ffffffeb0ac78530ffffff000000004d85ff0f958537ffffff4531e44585f6410f94c5410f95c74531f64883bd68ffffff000f958528"
    "ffffff80bb04020000007413488b8328020000488b00488b80f8000000eb0d488bbb18020000488b07ff5038");

// ThreadExceptionState::GetThrowable.
const std::string kReader = Code("554889e5488b074885c0740e488b40404885c07405488b005dc3");

std::string Changed(const std::string& code, const char* from, const char* to) {
  const size_t at = code.find(Code(from));
  EXPECT_NE(at, std::string::npos) << from;
  std::string changed = code;
  return changed.replace(at, Code(to).size(), Code(to));
}

TEST(ExceptionScanX64Test, TheReportLeadsToWhatReadsTheObject) {
  const auto reader = x64::ObjectReaderOfReport(AsBytes(kReport), kStart);
  ASSERT_TRUE(reader.has_value());
  EXPECT_EQ(reader->value, kReaderStart.value);
  EXPECT_TRUE(x64::ReadsObjectOfTracker(AsBytes(kReader)));
}

TEST(ExceptionScanX64Test, OtherNumbersAreOtherStructures) {
  for (const auto& [from, to] : {std::pair("09f20f84", "09f10f84"),                          // other arguments
                                 std::pair("48b80080000002000000", "48b80080000000000000"),  // another keyword
                                 std::pair("4981c7e0010000", "4981c7e8010000"),              // the tracker elsewhere
                                 std::pair("80bb0402000000", "80bb0502000000"),              // another kind of frame
                                 std::pair("488b8328020000", "488b8330020000"),              // the registers elsewhere
                                 std::pair("488b80f8000000", "488b8000010000")}) {
    EXPECT_FALSE(x64::ObjectReaderOfReport(AsBytes(Changed(kReport, from, to)), kStart)) << from;
  }
  EXPECT_FALSE(x64::ReadsObjectOfTracker(AsBytes(Changed(kReader, "488b4040", "488b4048"))));
  EXPECT_FALSE(x64::ReadsObjectOfTracker(AsBytes(kReport)));
  EXPECT_FALSE(x64::ObjectReaderOfReport(AsBytes(kReader), kReaderStart));
}

TEST(ExceptionScanX64Test, WhatIsInsideOfAnotherInstructionDoesNotCount) {
  // The bytes of `or edx, esi; je` as the number of a mov before them.
  std::string code = Changed(kReport, "09f20f84", "90900f84");
  code.insert(0, Code("b809f20f84"));
  EXPECT_FALSE(x64::ObjectReaderOfReport(AsBytes(code), kStart));
}

TEST(ExceptionScanX64Test, NothingIsReadBeyondTheEnd) {
  for (size_t size = 0; size < kReport.size(); ++size) {
    const std::string part = kReport.substr(0, size);
    const bool whole = kReport.find(Code("488b8328020000488b00488b80f8000000")) + 17 <= size;
    EXPECT_EQ(x64::ObjectReaderOfReport(AsBytes(part), kStart).has_value(), whole) << size;
  }
  for (size_t size = 0; size < kReader.size(); ++size) {
    const std::string part = kReader.substr(0, size);
    EXPECT_FALSE(x64::ReadsObjectOfTracker(AsBytes(part))) << size;
  }
}

}  // namespace
}  // namespace clrsampler
