#include "formats/runtime/diagnostics_message.h"

#include <gtest/gtest.h>

#include <string>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "formats/byte_reader.h"

namespace clrsampler {
namespace {

// Replies of .NET 10.0.12 and 8.0.30 to a request each, recorded from `dotnet workload.dll idle` (file names shortened
// by hand, with their counts). The payload follows the header of 20 bytes.
constexpr char kPayload1[] =
    "c33f000000000000"
    "45069661b96b5d408285e720d6c36d34"
    "0b000000"
    "64006f0074006e0065007400200061002e0064000000"  // "dotnet a.d"
    "06000000"
    "4c0069006e00750078000000"
    "04000000"
    "7800360034000000";
constexpr char kVersion2Fields[] =
    "09000000"
    "77006f0072006b006c006f00610064000000"
    "08000000"
    "310030002e0030002e00310032000000";
constexpr char kVersion3Fields[] =
    "0a000000"
    "6c0069006e00750078002d007800360034000000";
constexpr char kReplyHeaderOk[] =
    "444f544e45545f4950435f563100"
    "1800"
    "ff00"
    "0000";
constexpr char kReplyHeaderError[] =
    "444f544e45545f4950435f563100"
    "1800"
    "ffff"
    "0000";

std::string Bytes(absl::string_view hex) { return absl::HexStringToBytes(hex); }

absl::StatusOr<RuntimeProcessInfo> Info(DiagnosticsCommand command, absl::string_view hex) {
  const std::string bytes = Bytes(hex);
  return ParseRuntimeProcessInfo(command, AsBytes(bytes));
}

// Where this was tried, runtimes answered so: 9.0.23, 10.0.15 and 11.0.0 to the first, 8.0.34 to the second, and all of
// them to the one that ends a session.
TEST(DiagnosticsMessageTest, SessionsAreAskedForInTheFormNettrace) {
  EXPECT_EQ(absl::BytesToHexString(EncodeCollectTracing(
                DiagnosticsCommand::kCollectTracing3,
                {.provider = "P", .keywords = 0xc819, .level = 5, .buffer_megabytes = 4, .stacks = true})),
            "444f544e45545f4950435f563100"
            "3a00"
            "0204"
            "0000"
            "04000000"
            "01000000"
            "00"
            "01"
            "01000000"
            "19c8000000000000"
            "05000000"
            "02000000"
            "50000000"
            "00000000");
  EXPECT_EQ(absl::BytesToHexString(EncodeCollectTracing(DiagnosticsCommand::kCollectTracing2,
                                                        {.provider = "", .level = 2, .buffer_megabytes = 1})),
            "444f544e45545f4950435f563100"
            "3700"
            "0203"
            "0000"
            "01000000"
            "01000000"
            "00"
            "01000000"
            "0000000000000000"
            "02000000"
            "01000000"
            "0000"
            "00000000");
  EXPECT_EQ(absl::BytesToHexString(EncodeStopTracing(0x1234)),
            "444f544e45545f4950435f563100"
            "1c00"
            "0201"
            "0000"
            "3412000000000000");
}

// The bytes that Microsoft.Diagnostics.NETCore.Client makes of these arguments, by its code of 2026-08: a CLSID has 16.
TEST(DiagnosticsMessageTest, AnAttachNamesClassPathAndData) {
  AttachRequest request;
  request.timeout_seconds = 5;
  for (size_t i = 0; i < request.profiler.size(); ++i) request.profiler[i] = static_cast<std::byte>(0xa0 + i);
  request.path = "/p";
  request.data = "hi";
  EXPECT_EQ(absl::BytesToHexString(EncodeAttachProfiler(request)),
            "444f544e45545f4950435f563100"
            "3800"
            "0301"
            "0000"
            "05000000"
            "a0a1a2a3a4a5a6a7a8a9aaabacadaeaf"
            "03000000"
            "2f0070000000"
            "02000000"
            "6869");
}

TEST(DiagnosticsMessageTest, ASessionHasANumber) {
  EXPECT_EQ(*ParseTracingSession(AsBytes(Bytes("f01000140000007f"))), 0x7f000000140010f0u);
  EXPECT_TRUE(absl::IsDataLoss(ParseTracingSession(AsBytes(Bytes("f0100014000000"))).status()));
}

TEST(DiagnosticsMessageTest, RequestsAreTheRecordedBytes) {
  EXPECT_EQ(absl::BytesToHexString(EncodeEnablePerfMap(PerfMapKind::kPerfMap)),
            "444f544e45545f4950435f563100"
            "1800"
            "0405"
            "0000"
            "03000000");
  EXPECT_EQ(absl::BytesToHexString(EncodeDiagnosticsRequest(DiagnosticsCommand::kDisablePerfMap)),
            "444f544e45545f4950435f563100"
            "1400"
            "0406"
            "0000");
  EXPECT_EQ(absl::BytesToHexString(EncodeDiagnosticsRequest(DiagnosticsCommand::kProcessInfo2)),
            "444f544e45545f4950435f563100"
            "1400"
            "0404"
            "0000");
}

TEST(DiagnosticsMessageTest, ReadsSuccessAndRefusal) {
  const std::string ok = Bytes(absl::StrCat(kReplyHeaderOk, "00000000"));
  const auto accepted = ParseDiagnosticsReply(AsBytes(ok));
  ASSERT_TRUE(accepted.ok() && accepted->has_value());
  EXPECT_FALSE((*accepted)->error.has_value());
  EXPECT_EQ((*accepted)->payload.size(), 4u);

  const std::string unknown = Bytes(absl::StrCat(kReplyHeaderError, "85131380"));
  const auto refused = ParseDiagnosticsReply(AsBytes(unknown));
  ASSERT_TRUE(refused.ok() && refused->has_value());
  EXPECT_EQ((*refused)->error, kDiagnosticsUnknownCommand);
  EXPECT_NE(DiagnosticsErrorText(*(*refused)->error).find(".NET 8"), std::string::npos);
}

TEST(DiagnosticsMessageTest, EveryShorterPartOfAReplyAsksForMore) {
  const std::string whole = Bytes(absl::StrCat(kReplyHeaderOk, "00000000"));
  for (size_t size = 0; size < whole.size(); ++size) {
    const auto part = ParseDiagnosticsReply(AsBytes(absl::string_view(whole).substr(0, size)));
    ASSERT_TRUE(part.ok()) << size;
    EXPECT_FALSE(part->has_value()) << size;
  }
}

TEST(DiagnosticsMessageTest, NonsenseIsAnErrorAtOnceAndNotAWish) {
  for (const absl::string_view hex : {
           "48",                            // HTTP/1.1
           "444f544e45545f4950435f563200",  // version 2
           "444f544e45545f4950435f563100"
           "1300"
           "ff00"
           "0000",  // shorter than its header
           "444f544e45545f4950435f563100"
           "0000"
           "ff00"
           "0000",  //
           "444f544e45545f4950435f563100"
           "1400"
           "0404"
           "0000",  // a request
           "444f544e45545f4950435f563100"
           "1400"
           "ff07"
           "0000",  // neither success nor refusal
           "444f544e45545f4950435f563100"
           "1600"
           "ffff"
           "0000"
           "0000",  // a refusal without its HRESULT
       }) {
    const std::string bytes = Bytes(hex);
    EXPECT_TRUE(absl::IsDataLoss(ParseDiagnosticsReply(AsBytes(bytes)).status())) << hex;
  }
}

TEST(DiagnosticsMessageTest, ReadsProcessInfoOfEachVersion) {
  const auto first = Info(DiagnosticsCommand::kProcessInfo, kPayload1);
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ(first->pid, 16323u);
  EXPECT_EQ(first->cookie[0], std::byte{0x45});
  EXPECT_EQ(first->command_line, "dotnet a.d");
  EXPECT_EQ(first->operating_system, "Linux");
  EXPECT_EQ(first->architecture, "x64");
  EXPECT_EQ(first->runtime_version, "");

  const auto second = Info(DiagnosticsCommand::kProcessInfo2, absl::StrCat(kPayload1, kVersion2Fields));
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_EQ(second->entry_assembly, "workload");
  EXPECT_EQ(second->runtime_version, "10.0.12");

  const auto third =
      Info(DiagnosticsCommand::kProcessInfo3, absl::StrCat("01000000", kPayload1, kVersion2Fields, kVersion3Fields));
  ASSERT_TRUE(third.ok()) << third.status();
  EXPECT_EQ(third->pid, 16323u);
  EXPECT_EQ(third->runtime_version, "10.0.12");
  EXPECT_EQ(third->runtime_identifier, "linux-x64");
}

TEST(DiagnosticsMessageTest, AProcessInfoThatEndsTooEarlyIsAnErrorWhereverItEnds) {
  const std::string whole = Bytes(absl::StrCat(kPayload1, kVersion2Fields));
  for (size_t size = 0; size < whole.size(); ++size) {
    EXPECT_FALSE(
        ParseRuntimeProcessInfo(DiagnosticsCommand::kProcessInfo2, AsBytes(absl::string_view(whole).substr(0, size)))
            .ok())
        << size;
  }
}

TEST(DiagnosticsMessageTest, ATextsCountIsNotTrusted) {
  const std::string before =
      "c33f000000000000"
      "45069661b96b5d408285e720d6c36d34";
  EXPECT_FALSE(Info(DiagnosticsCommand::kProcessInfo, before + "ffffffff"
                                                               "41000000")
                   .ok());
  EXPECT_FALSE(Info(DiagnosticsCommand::kProcessInfo, before + "00000080"
                                                               "41000000")
                   .ok());
  // No closing NUL.
  EXPECT_FALSE(Info(DiagnosticsCommand::kProcessInfo, before + "01000000"
                                                               "4100"
                                                               "00000000"
                                                               "00000000")
                   .ok());
  EXPECT_TRUE(Info(DiagnosticsCommand::kProcessInfo, before + "00000000"
                                                              "00000000"
                                                              "00000000")
                  .ok());
}

TEST(DiagnosticsMessageTest, TextsBecomeValidUtf8) {
  const std::string before =
      "c33f000000000000"
      "45069661b96b5d408285e720d6c36d34";
  // e-acute, euro, U+1F600 as a pair, a high surrogate alone, a low one alone.
  const auto info = Info(DiagnosticsCommand::kProcessInfo, before +
                                                               "07000000"
                                                               "e900"
                                                               "ac20"
                                                               "3dd8"
                                                               "00de"
                                                               "3dd8"
                                                               "00dc"
                                                               "0000"
                                                               "00000000"
                                                               "00000000");
  ASSERT_TRUE(info.ok()) << info.status();
  EXPECT_EQ(info->command_line, "\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80\xF0\x9F\x90\x80");
  const auto lone = Info(DiagnosticsCommand::kProcessInfo, before +
                                                               "03000000"
                                                               "00dc"
                                                               "3dd8"
                                                               "0000"
                                                               "00000000"
                                                               "00000000");
  ASSERT_TRUE(lone.ok());
  EXPECT_EQ(lone->command_line, "\xEF\xBF\xBD\xEF\xBF\xBD");
}

}  // namespace
}  // namespace clrsampler
