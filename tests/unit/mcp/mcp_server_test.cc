#include "mcp/mcp_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "status/status.h"

namespace clrsampler {
namespace {

using nlohmann::json;
using testing::HasSubstr;

class McpServerTest : public testing::Test {
 protected:
  json Ask(const std::string& message) { return json::parse(server_.Handle(message)); }
  json Request(const std::string& method, const json& params) {
    return Ask(json{{"jsonrpc", "2.0"}, {"id", 7}, {"method", method}, {"params", params}}.dump());
  }
  json Call(const std::string& tool, const json& arguments) {
    return Request("tools/call", {{"name", tool}, {"arguments", arguments}});
  }

  json called_;
  McpServer server_{"1.2.3", [this](const std::string& tool, const json& arguments) -> absl::StatusOr<McpAnswer> {
                      called_ = {{"tool", tool}, {"arguments", arguments}};
                      if (tool == "pauses") return WithHint(absl::NotFoundError("no such file"), "give another");
                      return McpAnswer{"# text", R"({"title":"t"})"};
                    }};
};

TEST_F(McpServerTest, TheVersionIsTheClientsWhereItIsKnownAndElseTheNewest) {
  EXPECT_EQ(Request("initialize", {{"protocolVersion", "2024-11-05"}})["result"]["protocolVersion"], "2024-11-05");
  EXPECT_EQ(Request("initialize", {{"protocolVersion", "2025-06-18"}})["result"]["protocolVersion"], "2025-06-18");
  const json answer = Request("initialize", {{"protocolVersion", "2099-01-01"}});
  EXPECT_EQ(answer["result"]["protocolVersion"], "2025-06-18");
  EXPECT_EQ(answer["result"]["serverInfo"]["version"], "1.2.3");
  EXPECT_EQ(answer["id"], 7);
  EXPECT_EQ(answer["jsonrpc"], "2.0");
}

TEST_F(McpServerTest, SevenToolsHaveSchemasOfInputAndOutput) {
  const json tools = Request("tools/list", json::object())["result"]["tools"];
  std::set<std::string> names;
  for (const json& tool : tools) {
    names.insert(tool["name"].get<std::string>());
    EXPECT_EQ(tool["inputSchema"]["type"], "object");
    EXPECT_EQ(tool["outputSchema"]["type"], "object");
  }
  EXPECT_EQ(names, (std::set<std::string>{"report", "top", "callers", "lines", "diff", "pauses", "waits"}));
}

TEST_F(McpServerTest, AnAnswerIsTextAndStructured) {
  const json result = Call("diff", {{"before", "a"}, {"after", "b"}})["result"];
  EXPECT_EQ(result["content"], json::parse(R"([{"type":"text","text":"# text"}])"));
  EXPECT_EQ(result["structuredContent"]["title"], "t");
  EXPECT_EQ(result["isError"], false);
  EXPECT_EQ(called_["arguments"]["after"], "b");
}

TEST_F(McpServerTest, WhatAToolCanNotDoIsAnAnswerWithItsHint) {
  const json result = Call("pauses", {{"file", "x"}})["result"];
  EXPECT_EQ(result["isError"], true);
  EXPECT_EQ(result["content"][0]["text"], "error: no such file\nhint: give another");
}

TEST_F(McpServerTest, ArgumentsThatDoNotFitTheSchemaAreRefused) {
  const auto fault = [&](const std::string& tool, const json& arguments) {
    const json answer = Call(tool, arguments);
    EXPECT_EQ(answer["error"]["code"], -32602);
    return answer["error"]["message"].get<std::string>();
  };
  EXPECT_THAT(fault("diff", {{"before", "a"}}), HasSubstr("after is missing"));
  EXPECT_THAT(fault("top", {{"file", 7}}), HasSubstr("file is no string"));
  EXPECT_THAT(fault("top", {{"pid", 0}}), HasSubstr("pid is too small"));
  EXPECT_THAT(fault("top", {{"pid", 1.5}}), HasSubstr("pid is no integer"));
  EXPECT_THAT(fault("top", {{"pid", 1e300}}), HasSubstr("pid is no integer"));
  EXPECT_THAT(fault("top", {{"pid", uint64_t{1} << 63}}), HasSubstr("pid is too large"));
  EXPECT_THAT(fault("top", {{"seconds", 1e9}}), HasSubstr("seconds is too large"));
  EXPECT_THAT(fault("top", {{"filee", "x"}}), HasSubstr("there is no argument filee"));
  EXPECT_THAT(fault("report", {{"files", json::array()}}), HasSubstr("files has too few entries"));
  EXPECT_THAT(fault("report", {{"files", {"a", 7}}}), HasSubstr("an entry of files is no string"));
  EXPECT_THAT(fault("callers", {{"file", "a"}, {"method", ""}}), HasSubstr("method is too short"));
  EXPECT_THAT(fault("nothing", json::object()), HasSubstr("there is no tool nothing"));
  EXPECT_THAT(fault("top", json::array()), HasSubstr("the arguments are no object"));
  EXPECT_TRUE(called_.is_null());
}

TEST_F(McpServerTest, NotificationsAndAnswersGetNoAnswer) {
  EXPECT_EQ(server_.Handle(R"({"jsonrpc":"2.0","method":"notifications/initialized"})"), "");
  EXPECT_EQ(server_.Handle(R"({"jsonrpc":"2.0","id":3,"result":{}})"), "");
  EXPECT_EQ(server_.Handle(" \r"), "");
}

TEST_F(McpServerTest, BrokenMessagesHaveTheCodesOfJsonRpc) {
  EXPECT_EQ(Ask("{")["error"]["code"], -32700);
  EXPECT_EQ(Ask(std::string(kMaxMcpMessageBytes + 1, ' ') + "{}")["error"]["code"], -32700);
  EXPECT_EQ(Ask("7")["error"]["code"], -32600);
  EXPECT_EQ(Ask("[]")["error"]["code"], -32600);
  EXPECT_EQ(Ask(R"({"id":1,"method":"ping"})")["error"]["code"], -32600);
  EXPECT_EQ(Ask(R"({"jsonrpc":"2.0","id":{},"method":"ping"})")["error"]["code"], -32600);
  EXPECT_EQ(Ask(R"({"jsonrpc":"2.0","id":1,"method":"resources/list"})")["error"]["code"], -32601);
  EXPECT_EQ(Ask(R"({"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"cursor":"x"}})")["error"]["code"], -32602);
  EXPECT_EQ(Ask(R"({"jsonrpc":"2.0","id":1,"method":"tools/call","params":[]})")["error"]["code"], -32602);
}

TEST_F(McpServerTest, AMessageOfBracketsIsRefused) {
  const auto ping = [&](size_t depth) {
    const std::string nested = std::string(depth, '[') + std::string(depth, ']');
    return Ask(absl::StrCat(R"({"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":)", nested, "}}"));
  };
  EXPECT_TRUE(ping(60).contains("result"));
  EXPECT_EQ(ping(500'000)["error"]["code"], -32700);
  EXPECT_EQ(Ask(std::string(1 << 20, '['))["error"]["code"], -32700);
  // Brackets within text are no nesting.
  const json named = Call("top", {{"file", "\\\"" + std::string(1000, '[')}});
  EXPECT_EQ(called_["arguments"]["file"], "\\\"" + std::string(1000, '['));
  EXPECT_TRUE(named.contains("result"));
}

TEST_F(McpServerTest, ABatchIsAnsweredAsOne) {
  const json answer =
      Ask(R"([{"jsonrpc":"2.0","id":"a","method":"ping"},{"jsonrpc":"2.0","method":"notifications/x"}])");
  EXPECT_EQ(answer, json::parse(R"([{"jsonrpc":"2.0","id":"a","result":{}}])"));
}

TEST_F(McpServerTest, ABatchOfManyMessagesIsRefused) {
  const auto lists = [&](size_t count) {
    const std::vector<std::string> batch(count, R"({"jsonrpc":"2.0","id":1,"method":"tools/list"})");
    return Ask(absl::StrCat("[", absl::StrJoin(batch, ","), "]"));
  };
  EXPECT_EQ(lists(kMaxMcpBatch).size(), kMaxMcpBatch);
  const json refused = lists(kMaxMcpBatch + 1);
  EXPECT_EQ(refused["error"]["code"], -32600);
  EXPECT_THAT(refused["error"]["message"], HasSubstr("at most 32 messages"));
}

}  // namespace
}  // namespace clrsampler
