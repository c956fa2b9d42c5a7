#include "mcp/mcp_server.h"

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "mcp/schemas.h"
#include "status/status.h"

namespace clrsampler {
namespace {

using Json = nlohmann::json;

// Newest first.
constexpr std::array<absl::string_view, 3> kProtocolVersions = {"2025-06-18", "2025-03-26", "2024-11-05"};

constexpr int kParseError = -32700;
constexpr int kInvalidRequest = -32600;
constexpr int kMethodNotFound = -32601;
constexpr int kInvalidParams = -32602;

// Far above what tools and the protocol need. Copies of nlohmann::json and its text are made by recursion, which a
// message of a megabyte of brackets would drive out of the stack.
constexpr int kMaxNesting = 64;

constexpr char kInstructions[] =
    "clrsampler profiles .NET programs on Linux. Begin with `report`: coverage says how much its numbers rest on. "
    "`top`, `callers` and `lines` follow a method, `waits` and `pauses` say why threads do not run, and `diff` says "
    "what changed by more than noise.";

Json Error(int code, const std::string& message) { return {{"error", {{"code", code}, {"message", message}}}}; }

std::string TextOf(const Json& object, const char* key) {
  const auto found = object.is_object() ? object.find(key) : object.end();
  return object.is_object() && found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

bool HasType(const Json& value, const std::string& type) {
  if (type == "string") return value.is_string();
  if (type == "integer") return value.is_number_integer();
  if (type == "number") return value.is_number();
  if (type == "array") return value.is_array();
  return type == "object" && value.is_object();
}

std::string FaultOf(const Json& schema, const Json& value, const std::string& name) {
  if (!HasType(value, TextOf(schema, "type"))) return absl::StrCat(name, " is no ", TextOf(schema, "type"));
  if (value.is_number()) {
    const double number = value.get<double>();
    if (schema.contains("minimum") && number < schema["minimum"].get<double>()) return name + " is too small";
    if (schema.contains("maximum") && !(number <= schema["maximum"].get<double>())) return name + " is too large";
  }
  if (value.is_string() && value.get_ref<const std::string&>().size() < schema.value("minLength", size_t{0})) {
    return name + " is too short";
  }
  if (!value.is_array()) return "";
  if (value.size() < schema.value("minItems", size_t{0})) return name + " has too few entries";
  if (value.size() > schema.value("maxItems", value.size())) return name + " has too many entries";
  for (const Json& item : value) {
    std::string fault = FaultOf(schema["items"], item, "an entry of " + name);
    if (!fault.empty()) return fault;
  }
  return "";
}

// The message need not be JSON.
bool NestsTooDeep(absl::string_view message) {
  int depth = 0;
  bool in_text = false;
  for (size_t i = 0; i < message.size(); ++i) {
    const char c = message[i];
    if (in_text) {
      if (c == '\\') ++i;
      if (c == '"') in_text = false;
      continue;
    }
    if (c == '"') in_text = true;
    if (c == ']' || c == '}') --depth;
    if ((c == '[' || c == '{') && ++depth > kMaxNesting) return true;
  }
  return false;
}

// The member, or an empty object. A copy would be as large as the message.
const Json& MemberOf(const Json& object, const char* key) {
  static const Json kNone = Json::object();
  const auto found = object.find(key);
  return found == object.end() ? kNone : *found;
}

Json Result(const std::string& text, bool is_error) {
  return {{"content", Json::array({{{"type", "text"}, {"text", text}}})}, {"isError", is_error}};
}

}  // namespace

std::string FaultOfArguments(const Json& schema, const Json& arguments) {
  if (!arguments.is_object()) return "the arguments are no object";
  for (const Json& required : schema["required"]) {
    const auto& name = required.get_ref<const std::string&>();
    if (!arguments.contains(name)) return name + " is missing";
  }
  for (const auto& [name, value] : arguments.items()) {
    if (!schema["properties"].contains(name)) return "there is no argument " + name;
    std::string fault = FaultOf(schema["properties"][name], value, name);
    if (!fault.empty()) return fault;
  }
  return "";
}

McpServer::McpServer(std::string version, McpCall call)
    : version_(std::move(version)), call_(std::move(call)), tools_(Json::parse(McpToolsJson())["tools"]) {
  for (Json& tool : tools_) tool["outputSchema"] = Json::parse(ReportSchemaJson());
}

Json McpServer::Initialize(const Json& params) const {
  const std::string asked = TextOf(params, "protocolVersion");
  const bool known = std::find(kProtocolVersions.begin(), kProtocolVersions.end(), asked) != kProtocolVersions.end();
  return {{"protocolVersion", known ? asked : std::string(kProtocolVersions.front())},
          {"capabilities", {{"tools", {{"listChanged", false}}}}},
          {"serverInfo", {{"name", "clrsampler"}, {"title", "clrsampler"}, {"version", version_}}},
          {"instructions", kInstructions}};
}

Json McpServer::CallTool(const Json& params) {
  const std::string name = TextOf(params, "name");
  const auto tool =
      std::find_if(tools_.begin(), tools_.end(), [&](const Json& one) { return TextOf(one, "name") == name; });
  if (tool == tools_.end()) return Error(kInvalidParams, absl::StrCat("there is no tool ", name));
  const Json& arguments = MemberOf(params, "arguments");
  if (const std::string fault = FaultOfArguments((*tool)["inputSchema"], arguments); !fault.empty()) {
    return Error(kInvalidParams, absl::StrCat("tool ", name, ": ", fault));
  }
  const absl::StatusOr<McpAnswer> answer = call_(name, arguments);
  if (!answer.ok()) {
    const std::string hint = HintOf(answer.status());
    return Result(absl::StrCat("error: ", answer.status().message(), hint.empty() ? "" : "\nhint: ", hint), true);
  }
  Json result = Result(answer->text, false);
  result["structuredContent"] = Json::parse(answer->structured, nullptr, false);
  return result;
}

Json McpServer::HandleOne(const Json& message) {
  if (!message.is_object() || TextOf(message, "jsonrpc") != "2.0") {
    Json error = Error(kInvalidRequest, "this is no JSON-RPC 2.0 message");
    error.update({{"jsonrpc", "2.0"}, {"id", nullptr}});
    return error;
  }
  const std::string method = TextOf(message, "method");
  const auto id = message.find("id");
  if (id == message.end() || method.empty()) return nullptr;  // a notification, or an answer to nothing that was asked
  if (!id->is_string() && !id->is_number()) {
    Json error = Error(kInvalidRequest, "an id is text or a number");
    error.update({{"jsonrpc", "2.0"}, {"id", nullptr}});
    return error;
  }
  const Json& params = MemberOf(message, "params");
  Json answer;
  if (method == "initialize") {
    answer = Initialize(params);
  } else if (method == "ping") {
    answer = Json::object();
  } else if (method == "tools/list") {
    answer = TextOf(params, "cursor").empty() ? Json{{"tools", tools_}} : Error(kInvalidParams, "no such cursor");
  } else if (method == "tools/call") {
    answer = CallTool(params);
  } else {
    answer = Error(kMethodNotFound, absl::StrCat("there is no method ", method));
  }
  Json response = {{"jsonrpc", "2.0"}, {"id", *id}};
  if (answer.contains("error") && !answer.contains("isError")) {
    response["error"] = std::move(answer["error"]);
  } else {
    response["result"] = std::move(answer);
  }
  return response;
}

std::string McpServer::Handle(absl::string_view message) {
  if (absl::StripAsciiWhitespace(message).empty()) return "";
  Json answer;
  const Json parsed = message.size() > kMaxMcpMessageBytes || NestsTooDeep(message)
                          ? Json(Json::value_t::discarded)
                          : Json::parse(message, nullptr, false);
  if (parsed.is_discarded()) {
    answer = Error(kParseError, "this is no JSON, or too long, or nested too deeply");
    answer.update({{"jsonrpc", "2.0"}, {"id", nullptr}});
  } else if (parsed.is_array() && parsed.size() > kMaxMcpBatch) {
    answer = Error(kInvalidRequest, absl::StrCat("a batch has at most ", kMaxMcpBatch, " messages"));
    answer.update({{"jsonrpc", "2.0"}, {"id", nullptr}});
  } else if (parsed.is_array() && !parsed.empty()) {  // version 2025-03-26 has them
    answer = Json::array();
    for (const Json& one : parsed) {
      if (Json response = HandleOne(one); !response.is_null()) answer.push_back(std::move(response));
    }
    if (answer.empty()) answer = nullptr;
  } else {
    answer = HandleOne(parsed);
  }
  return answer.is_null() ? "" : answer.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace clrsampler
