#include "formats/labels/process_context.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "absl/strings/str_cat.h"
#include "formats/byte_reader.h"

namespace clrsampler {
namespace {

std::string Field(int number, const std::string& bytes) {
  std::string length;
  for (size_t rest = bytes.size(); length.empty() || rest != 0; rest >>= 7) {
    length += static_cast<char>((rest & 0x7f) | (rest > 0x7f ? 0x80 : 0));
  }
  return absl::StrCat(std::string(1, static_cast<char>(number << 3 | 2)), length, bytes);
}

std::string Attribute(const std::string& key, const std::string& value) {
  return Field(1, Field(1, key) + Field(2, Field(1, value)));
}

std::string Header(uint32_t version, uint32_t size, uint64_t published, uint64_t payload) {
  std::string bytes = "OTEL_CTX";
  const auto add = [&](const auto& value) {
    char raw[sizeof value];
    std::memcpy(raw, &value, sizeof value);
    bytes.append(raw, sizeof value);
  };
  add(version);
  add(size);
  add(published);
  add(payload);
  return bytes;
}

TEST(ProcessContextTest, TheHeaderSaysWhereThePayloadIs) {
  const auto header = ParseContextHeader(AsBytes(Header(2, 77, 99, 0x7f0012345678)));
  ASSERT_TRUE(header.ok()) << header.status();
  EXPECT_EQ(header->payload_bytes, 77u);
  EXPECT_EQ(header->published_ns, 99u);
  EXPECT_EQ(header->payload, 0x7f0012345678u);
}

TEST(ProcessContextTest, OtherBytesAreNoHeader) {
  const std::string good = Header(2, 77, 99, 1);
  EXPECT_EQ(ParseContextHeader(AsBytes(good.substr(0, 31))).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ParseContextHeader(AsBytes("X" + good.substr(1))).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ParseContextHeader(AsBytes(Header(1, 77, 99, 1))).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ParseContextHeader(AsBytes(Header(2, kMaxContextBytes + 1, 99, 1))).status().code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(ParseContextHeader(AsBytes(Header(2, kMaxContextBytes + 1, 0, 1))).ok()) << "it is being changed";
}

TEST(ProcessContextTest, TheResourceHasTheLabels) {
  const std::string resource = Attribute("service.name", "shop") + Attribute("service.instance.id", "7-7") +
                               Attribute("service.version", "1.2") + Attribute("service.name", "other");
  // Attributes beside the resource are for readers of threads.
  const auto labels = ParseContextPayload(
      AsBytes(Field(1, resource) + Field(2, Field(1, "service.namespace") + Field(2, Field(1, "no")))));
  ASSERT_TRUE(labels.ok()) << labels.status();
  ProcessLabels expected;
  expected.Set(LabelKey::kServiceName, "shop");
  expected.Set(LabelKey::kServiceVersion, "1.2");
  EXPECT_EQ(*labels, expected);
}

TEST(ProcessContextTest, DamagedPayloadsGiveNothing) {
  const std::string good = Field(1, Attribute("service.name", "shop"));
  for (size_t size = 1; size < good.size(); ++size) {
    EXPECT_FALSE(ParseContextPayload(AsBytes(absl::string_view(good).substr(0, size))).ok()) << size;
  }
  EXPECT_TRUE(ParseContextPayload({}).ok());
  EXPECT_FALSE(ParseContextPayload(AsBytes(std::string(kMaxContextBytes + 1, 'x'))).ok());
}

TEST(ProcessContextTest, NamesOfMappings) {
  for (const char* path : {"[anon_shmem:OTEL_CTX]", "[anon:OTEL_CTX]", "/memfd:OTEL_CTX (deleted)"}) {
    EXPECT_TRUE(IsContextMapping(path)) << path;
  }
  for (const char* path : {"", "[anon:OTEL]", "/tmp/memfd:OTEL_CTX", "OTEL_CTX"}) {
    EXPECT_FALSE(IsContextMapping(path)) << path;
  }
}

}  // namespace
}  // namespace clrsampler
