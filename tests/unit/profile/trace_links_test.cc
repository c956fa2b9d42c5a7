#include "profile/trace_links.h"

#include <gtest/gtest.h>

#include "formats/profile/trace_link.h"

namespace clrsampler {
namespace {

TraceLink LinkOf(char span) {
  TraceLink link;
  link.trace_id.fill(7);
  link.span_id.fill(span);
  return link;
}

TEST(TraceLinks, EachSpanHasOneNumberAndNoneIsZero) {
  TraceLinks links(10);
  const uint32_t one = links.Number(LinkOf(1)), two = links.Number(LinkOf(2));
  EXPECT_NE(one, 0u);
  EXPECT_NE(two, one);
  EXPECT_EQ(links.Number(LinkOf(1)), one);
  EXPECT_EQ(links.at(two), LinkOf(2));
  EXPECT_EQ(links.Number(TraceLink()), 0u);
  EXPECT_FALSE(links.at(0).valid());
  EXPECT_EQ(links.left_out(), 0u);
}

TEST(TraceLinks, SamplesOfSpansBeyondTheLimitAreCountedAndKnownSpansStay) {
  TraceLinks links(2);
  const uint32_t one = links.Number(LinkOf(1));
  links.Number(LinkOf(2));
  EXPECT_EQ(links.Number(LinkOf(3)), 0u);
  EXPECT_EQ(links.Number(LinkOf(3)), 0u);
  EXPECT_EQ(links.left_out(), 2u);
  EXPECT_EQ(links.Number(LinkOf(1)), one);
}

TEST(TraceLink, OneIdWithoutTheOtherIsNone) {
  TraceLink link;
  link.SetTrace("0102030405060708090a0b0c0d0e0f10");
  EXPECT_FALSE(link.valid());
  link.SetSpan("not hexadecimal!");
  EXPECT_FALSE(link.valid());
  link.SetSpan("1112131415161718");
  EXPECT_TRUE(link.valid());
  EXPECT_EQ(link.TraceText(), "0102030405060708090a0b0c0d0e0f10");
  EXPECT_EQ(link.SpanText(), "1112131415161718");
}

}  // namespace
}  // namespace clrsampler
