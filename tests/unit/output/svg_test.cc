#include "output/svg.h"

#include <gmock/gmock.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "output/svg_text.h"

namespace clrsampler {
namespace {

using testing::HasSubstr;
using testing::Not;

std::string Svg(ProfileModelBuilder& builder) {
  absl::StatusOr<ProfileModel> model = std::move(builder).Build();
  EXPECT_TRUE(model.ok());
  std::string out;
  EXPECT_TRUE(SvgWriter()
                  .Write(*model,
                         [&](absl::string_view text) {
                           out.append(text.data(), text.size());
                           return absl::OkStatus();
                         })
                  .ok());
  return out;
}

NodeIndex PlainStack(ProfileModelBuilder& builder, const std::vector<std::string>& frames) {
  NodeIndex node = kRootNode;
  for (const std::string& frame : frames) {
    node = builder.Node(node, builder.Frame({.kind = ModelFrameKind::kJit, .name = builder.String(frame)}));
  }
  return node;
}

size_t Count(absl::string_view text, absl::string_view part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != absl::string_view::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

TEST(SvgTest, BoxesAreAsWideAsTheirSamples) {
  ProfileModelBuilder builder;
  const ThreadIndex thread = builder.Thread({.pid = 1, .comm = builder.String("app")});
  builder.Add({.thread = thread, .stack = PlainStack(builder, {"main", "Small"}), .weight = 1});
  builder.Add({.thread = thread, .stack = PlainStack(builder, {"main", "Large"}), .weight = 3});
  const std::string svg = Svg(builder);
  EXPECT_THAT(svg, HasSubstr("<title>all: 4 samples, 100.00 %</title><rect x=\"10.0\" y=\"98\" width=\"1179.4\""));
  EXPECT_THAT(svg, HasSubstr("<title>main: 4 samples, 100.00 %</title><rect x=\"10.0\" y=\"81\" width=\"1179.4\""));
  EXPECT_THAT(svg, HasSubstr("<title>Large: 3 samples, 75.00 %</title><rect x=\"10.0\" y=\"64\" width=\"884.4\""));
  EXPECT_THAT(svg, HasSubstr("<title>Small: 1 sample, 25.00 %</title><rect x=\"895.0\" y=\"64\" width=\"294.4\""));
  EXPECT_THAT(svg, HasSubstr(">app (1)</text>"));
  EXPECT_THAT(svg, Not(HasSubstr("not drawn")));
}

TEST(SvgTest, LinesOfAMethodAreOneBox) {
  ProfileModelBuilder builder;
  const ThreadIndex thread = builder.Thread({.pid = 1, .comm = builder.String("app")});
  for (const uint32_t line : {57, 58}) {
    const FrameIndex total = builder.Frame({.name = builder.String("Total"), .line = line});
    builder.Add({.thread = thread, .stack = builder.Node(kRootNode, total), .weight = line});
  }
  const std::string svg = Svg(builder);
  EXPECT_THAT(svg, HasSubstr("<title>Total: 115 samples, 100.00 %</title>"));
  EXPECT_EQ(Count(svg, "<title>Total"), 1u);
}

TEST(SvgTest, EachOfSeveralProcessesIsABox) {
  ProfileModelBuilder builder;
  const NodeIndex stack = PlainStack(builder, {"main"});
  builder.Add({.thread = builder.Thread({.pid = 1, .tid = 1, .comm = builder.String("one")}), .stack = stack});
  builder.Add({.thread = builder.Thread({.pid = 1, .tid = 2, .comm = builder.String("one")}), .stack = stack});
  builder.Add({.thread = builder.Thread({.pid = 2, .tid = 3, .comm = builder.String("two")}), .stack = stack});
  const std::string svg = Svg(builder);
  EXPECT_THAT(svg, HasSubstr("<title>one (1): 2 samples, 66.67 %</title>"));
  EXPECT_THAT(svg, HasSubstr("<title>two (2): 1 sample, 33.33 %</title>"));
  EXPECT_THAT(svg, HasSubstr("<title>main: 2 samples, 66.67 %</title>"));
  EXPECT_THAT(svg, HasSubstr("<title>main: 1 sample, 33.33 %</title>"));
}

TEST(SvgTest, NamesAreInert) {
  ProfileModelBuilder builder;
  const ThreadIndex thread = builder.Thread({.comm = builder.String("<x>&\"")});
  builder.Add({.thread = thread, .stack = PlainStack(builder, {"<script>alert(1)</script>&\"\x01\xff"})});
  const std::string svg = Svg(builder);
  EXPECT_THAT(svg, Not(HasSubstr("<script")));
  EXPECT_THAT(svg, HasSubstr("&lt;script&gt;alert(1)&lt;/script&gt;&amp;&quot;\uFFFD\uFFFD"));
}

TEST(SvgTest, WhatIsTooNarrowIsLeftOutAndCounted) {
  ProfileModelBuilder builder;
  const ThreadIndex thread = builder.Thread({});
  builder.Add({.thread = thread, .stack = PlainStack(builder, {"main"}), .weight = 1'000'000});
  for (int i = 0; i < 5; ++i) builder.Add({.thread = thread, .stack = PlainStack(builder, {absl::StrCat("rare", i)})});
  const std::string svg = Svg(builder);
  EXPECT_THAT(svg, Not(HasSubstr("rare")));
  EXPECT_THAT(svg, HasSubstr(">5 frames too narrow or too deep"));
}

TEST(SvgTest, ThePictureIsBounded) {
  ProfileModelBuilder builder;
  const ThreadIndex thread = builder.Thread({});
  std::vector<std::string> deep;
  for (int i = 0; i < 3000; ++i) deep.push_back(absl::StrCat("deep", i));
  builder.Add({.thread = thread, .stack = PlainStack(builder, deep), .weight = 40'000});
  // One of 2000 stacks is wide enough, and with 30 frames each they are too many.
  for (int i = 0; i < 2000; ++i) {
    std::vector<std::string> frames(30, absl::StrCat("f", i));
    builder.Add({.thread = thread, .stack = PlainStack(builder, frames), .weight = 40 + static_cast<uint64_t>(i) % 7});
  }
  const std::string svg = Svg(builder);
  EXPECT_LE(Count(svg, "<g>"), kMostSvgFrames);
  EXPECT_GE(Count(svg, "<g>"), kMostSvgRows);
  EXPECT_THAT(svg, Not(HasSubstr("deep399:")));
  EXPECT_THAT(svg, HasSubstr("deep398:"));
}

TEST(SvgTextTest, XmlTextKeepsWhatXmlAllows) {
  EXPECT_EQ(XmlText("a<b>&\"ü日\U0001F600"), "a&lt;b&gt;&amp;&quot;ü日\U0001F600");
  EXPECT_EQ(XmlText(absl::string_view("\0\t\x7f", 3)), "\uFFFD\uFFFD\uFFFD");
  EXPECT_EQ(XmlText("\xc0\x80"), "\uFFFD\uFFFD");                      // overlong
  EXPECT_EQ(XmlText("\xed\xa0\x80"), "\uFFFD\uFFFD\uFFFD");            // a surrogate
  EXPECT_EQ(XmlText("\xf4\x90\x80\x80"), "\uFFFD\uFFFD\uFFFD\uFFFD");  // beyond Unicode
  EXPECT_EQ(XmlText("\xef\xbf\xbf\xe2\x80\xae"), "\uFFFD\uFFFD");      // U+FFFF, and what reverses text
  EXPECT_EQ(XmlText("x\xe2\x82"), "x\uFFFD\uFFFD");                    // cut
}

TEST(SvgTextTest, ShortNameTakesTheLongestFormThatFits) {
  EXPECT_EQ(ShortName("Shop.Order.Add", true, 14), "Shop.Order.Add");
  EXPECT_EQ(ShortName("Shop.Order.Add", true, 13), "Order.Add");
  EXPECT_EQ(ShortName("Shop.Order.Add", true, 8), "Add");
  EXPECT_EQ(ShortName("Shop.Order.Add", false, 8), "Shop.O..");
  EXPECT_EQ(ShortName("Shop.List<System.Int32>.Add", true, 20), "Add");
  EXPECT_EQ(ShortName("WKS::gc_heap::mark", false, 13), "gc_heap::mark");
  EXPECT_EQ(ShortName("[jit: no map. really]", true, 10), "[jit: no..");
  EXPECT_EQ(ShortName("日本日本", true, 3), "日..");
  EXPECT_EQ(ShortName("main", true, 2), "");
  EXPECT_EQ(ShortName("", true, 0), "");
}

}  // namespace
}  // namespace clrsampler
