#include "cli/inspect_command.h"

#include <unistd.h>

#include <cinttypes>
#include <cstddef>
#include <cstdio>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "cli/input_file.h"
#include "formats/byte_reader.h"
#include "formats/jit/jitdump_parser.h"
#include "formats/jit/r2rmap_parser.h"
#include "status/status.h"

namespace clrsampler {
namespace {

constexpr char kJitdumpHint[] = "DOTNET_PerfMapEnabled=1 makes a .NET process write /tmp/jit-PID.dump";

// Names come from a file that anybody may have written. No control sequence in them may reach the terminal.
std::string Printable(absl::string_view text) { return absl::Utf8SafeCEscape(text); }

class JitdumpPrinter : public JitdumpSink {
 public:
  void OnHeader(const JitdumpHeader& header) override {
    std::printf("jitdump version %u, pid %u, machine %u, created %" PRIu64 ", %s-endian%s\n", header.version,
                header.pid, header.elf_machine, header.timestamp, header.big_endian ? "big" : "little",
                header.arch_timestamps ? ", time stamps of the processor" : "");
  }
  void OnLoad(const JitdumpLoad& load) override {
    ++records_;
    std::printf("%" PRIu64 " load   %#" PRIx64 " %#" PRIx64 " index %" PRIu64 " tid %u %s%s\n", load.timestamp,
                load.code_address, load.code_size, load.code_index, load.tid, Printable(load.name).c_str(),
                load.body_bytes == load.code_size
                    ? ""
                    : absl::StrCat("  (", load.body_bytes, " bytes of code recorded)").c_str());
  }
  void OnMove(const JitdumpMove& move) override {
    ++records_;
    std::printf("%" PRIu64 " move   %#" PRIx64 " -> %#" PRIx64 " index %" PRIu64 "\n", move.timestamp,
                move.old_code_address, move.new_code_address, move.code_index);
  }
  bool WantsDebugInfo() const override { return true; }
  void OnDebugInfo(const JitdumpDebugInfo& info) override {
    ++records_;
    std::printf("%" PRIu64 " debug  %#" PRIx64 " %zu of %" PRIu64 " entries\n", info.timestamp, info.code_address,
                info.entries.size(), info.announced_entries);
    for (const JitdumpDebugEntry& entry : info.entries) {
      std::printf("    %#" PRIx64 " %s:%u\n", entry.address, Printable(entry.file).c_str(), entry.line);
    }
  }
  void OnUnwinding(const JitdumpUnwinding& unwinding) override {
    ++records_;
    std::printf("%" PRIu64 " unwind %" PRIu64 " bytes, of them .eh_frame_hdr %" PRIu64 ", mapped %" PRIu64 "\n",
                unwinding.timestamp, unwinding.unwind_data_size, unwinding.eh_frame_header_size, unwinding.mapped_size);
  }
  void OnClose(uint64_t timestamp) override {
    ++records_;
    std::printf("%" PRIu64 " close\n", timestamp);
  }
  void OnUnknown(uint32_t id, uint32_t total_size) override {
    ++records_;
    std::printf("- record of unknown kind %u, %u bytes\n", id, total_size);
  }
  uint64_t records() const { return records_; }

 private:
  uint64_t records_ = 0;
};

}  // namespace

absl::Status PrintJitdump(const std::string& path) {
  ASSIGN_OR_RETURN(const MappedFile file, MapInputFile(path));
  JitdumpParser parser;
  JitdumpPrinter printer;
  std::span<const std::byte> rest = file.bytes();
  while (!rest.empty()) {
    const absl::StatusOr<FeedResult> fed = parser.Feed(rest, printer);
    if (!fed.ok() && printer.records() == 0 && !parser.header_seen()) {
      return WithHint(Annotate(fed.status(), path), kJitdumpHint);
    }
    if (!fed.ok()) {
      return WithHint(
          Annotate(fed.status(), absl::StrCat(path, ": damaged after ", printer.records(), " records")),
          "the records above were read before the damage; a jitdump has no mark to find the next record by");
    }
    if (fed->used == 0 && fed->skip == 0) break;  // a last record that was never finished
    rest = rest.subspan(fed->used);
    if (fed->skip > rest.size()) {
      std::printf("# the file ends inside a record: %" PRIu64 " bytes of code are missing\n", fed->skip - rest.size());
      rest = {};
      break;
    }
    rest = rest.subspan(fed->skip);
  }
  if (!parser.header_seen()) {
    return WithHint(absl::DataLossError(absl::StrCat(path, " is not a jitdump: it is too short for a header")),
                    kJitdumpHint);
  }
  if (!rest.empty()) std::printf("# the file ends inside a record: its first %zu bytes are there\n", rest.size());
  std::printf("# %" PRIu64 " records\n", printer.records());
  return absl::OkStatus();
}

absl::Status PrintR2rMap(const std::string& path) {
  ASSIGN_OR_RETURN(const MappedFile file, MapInputFile(path));
  const absl::StatusOr<R2rMap> map = ParseR2rMap(AsText(file.bytes()));
  if (!map.ok()) {
    return WithHint(Annotate(map.status(), path),
                    "crossgen2 --perfmap --perfmap-format-version:1 writes NAME.ni.r2rmap");
  }
  const R2rMapHeader& header = map->header;
  std::printf("r2rmap version %u, signature %s, %s, %s, ABI %s\n", header.version, R2rMapSignatureText(header).c_str(),
              R2rMapOsText(header.os).c_str(), R2rMapArchitectureText(header.architecture).c_str(),
              R2rMapAbiText(header.abi).c_str());
  for (const R2rMapRow& row : map->rows)
    std::printf("%#010x %#x %s\n", row.rva, row.length, Printable(row.name).c_str());
  std::printf("# %zu rows\n", map->rows.size());
  return absl::OkStatus();
}

}  // namespace clrsampler
